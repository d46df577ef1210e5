//! Commands: one call of the etcd API each.

use etcd_api::etcdserverpb::{
    CompactionRequest, DeleteRangeRequest, HashKvRequest, LeaseGrantRequest, LeaseRevokeRequest,
    LeaseTimeToLiveRequest, PutRequest, RangeRequest, TxnRequest, WatchCreateRequest,
    range_request::{SortOrder, SortTarget},
};

use super::{Error, ErrorKind, Line, txn, word::Words};

/// What a step asks for, ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Put(PutRequest),
    Range(RangeRequest),
    DeleteRange(DeleteRangeRequest),
    Txn(TxnRequest),
    /// Answered once the work is done if it is physical.
    Compact(CompactionRequest),
    Grant(LeaseGrantRequest),
    Revoke(LeaseRevokeRequest),
    TimeToLive(LeaseTimeToLiveRequest),
    HashKv(HashKvRequest),
    /// To be read up to the current revision, then cancelled.
    Watch(WatchCreateRequest),
}

/// Reads a command from its lines, of which there is at least one.
pub(super) fn parse(lines: &[Line<'_>]) -> Result<Command, Error> {
    let [(line, first), rest @ ..] = lines else { unreachable!("a command has lines") };
    if *first == "txn" {
        return txn::parse(rest).map(Command::Txn);
    }
    if let [(line, _), ..] = rest {
        return Err(Error { line: *line, kind: ErrorKind::NotATxn });
    }
    parse_line(first).map_err(|kind| Error { line: *line, kind })
}

fn parse_line(line: &str) -> Result<Command, ErrorKind> {
    let mut words = Words::of(line)?;
    let name = words.next_text("name")?;
    let command = match name.as_str() {
        "put" => Command::Put(put(&mut words)?),
        "get" => Command::Range(range(&mut words)?),
        "del" => Command::DeleteRange(delete_range(&mut words)?),
        "compact" => Command::Compact(CompactionRequest {
            revision: words.next_number("revision")?,
            physical: words.flag("physical"),
        }),
        "grant" => Command::Grant(LeaseGrantRequest {
            id: words.next_number("lease")?,
            ttl: words.next_number("TTL")?,
        }),
        "revoke" => Command::Revoke(LeaseRevokeRequest { id: words.next_number("lease")? }),
        "timetolive" => Command::TimeToLive(LeaseTimeToLiveRequest {
            id: words.next_number("lease")?,
            keys: true,
        }),
        "hashkv" => Command::HashKv(HashKvRequest { revision: words.flag_number("rev")? }),
        "watch" => Command::Watch(watch(words.flag_number("rev")?)),
        _ => return Err(ErrorKind::UnknownCommand(name)),
    };
    words.finish()?;
    Ok(command)
}

pub(super) fn put(words: &mut Words) -> Result<PutRequest, ErrorKind> {
    Ok(PutRequest {
        key: words.next("key")?,
        value: words.next_or_empty(),
        lease: words.flag_number("lease")?,
        prev_kv: words.flag("prev-kv"),
        ignore_value: words.flag("ignore-value"),
        ignore_lease: words.flag("ignore-lease"),
    })
}

pub(super) fn range(words: &mut Words) -> Result<RangeRequest, ErrorKind> {
    let order = |name: &str| SortOrder::from_str_name(name).map(|order| order as i32);
    let target = |name: &str| SortTarget::from_str_name(name).map(|target| target as i32);
    Ok(RangeRequest {
        key: words.next("key")?,
        range_end: words.next_or_empty(),
        limit: words.flag_number("limit")?,
        revision: words.flag_number("rev")?,
        sort_order: words.flag_enum("order", order)?,
        sort_target: words.flag_enum("sort-by", target)?,
        serializable: false,
        keys_only: words.flag("keys-only"),
        count_only: words.flag("count-only"),
        min_mod_revision: words.flag_number("min-mod-rev")?,
        max_mod_revision: words.flag_number("max-mod-rev")?,
        min_create_revision: words.flag_number("min-create-rev")?,
        max_create_revision: words.flag_number("max-create-rev")?,
    })
}

pub(super) fn delete_range(words: &mut Words) -> Result<DeleteRangeRequest, ErrorKind> {
    Ok(DeleteRangeRequest {
        key: words.next("key")?,
        range_end: words.next_or_empty(),
        prev_kv: words.flag("prev-kv"),
    })
}

/// All keys from a revision on, with what each event replaced.
fn watch(start_revision: i64) -> WatchCreateRequest {
    let everything = || bytes::Bytes::from_static(b"\0");
    WatchCreateRequest {
        key: everything(),
        range_end: everything(),
        start_revision,
        prev_kv: true,
        ..Default::default()
    }
}
