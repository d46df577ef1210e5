//! The numbers of operations, as Ignite 3.1 defines them. Only data.

pub(crate) const HEARTBEAT: i32 = 1;
pub(crate) const TABLE_GET: i32 = 4;
pub(crate) const SCHEMAS_GET: i32 = 5;
pub(crate) const TUPLE_UPSERT: i32 = 10;
pub(crate) const TUPLE_GET: i32 = 12;
pub(crate) const TUPLE_UPSERT_ALL: i32 = 13;
pub(crate) const TUPLE_GET_ALL: i32 = 15;
pub(crate) const TUPLE_INSERT: i32 = 18;
pub(crate) const TUPLE_INSERT_ALL: i32 = 20;
pub(crate) const TUPLE_REPLACE_EXACT: i32 = 24;
pub(crate) const TUPLE_DELETE: i32 = 28;
pub(crate) const TUPLE_DELETE_ALL: i32 = 29;
pub(crate) const TX_BEGIN: i32 = 43;
pub(crate) const TX_COMMIT: i32 = 44;
pub(crate) const TX_ROLLBACK: i32 = 45;
pub(crate) const SQL_EXEC: i32 = 50;
pub(crate) const SQL_CURSOR_NEXT_PAGE: i32 = 51;
pub(crate) const SQL_CURSOR_CLOSE: i32 = 52;
pub(crate) const SQL_EXEC_SCRIPT: i32 = 56;
pub(crate) const SQL_EXEC_BATCH: i32 = 63;
