//! The client on one real node.

use anyhow::{Context, Result, ensure};
use ignite_client::{Client, ColumnType, Columns, Error, Mode, Row, Value};

use crate::stage::{Case, Kind, Stage};

pub(crate) fn cases() -> Vec<Case> {
    let case = |name: &str, play| Case::new(&format!("single::client::{name}"), Kind::Single, play);
    vec![
        case("rows_are_kept_by_key", rows_are_kept_by_key),
        case("every_type_comes_back", every_type_comes_back),
        case("transactions_are_all_or_nothing", transactions_are_all_or_nothing),
        case("a_snapshot_stays_as_it_was", a_snapshot_stays_as_it_was),
        case("the_younger_of_two_writers_fails", the_younger_of_two_writers_fails),
        case("large_values_come_back", large_values_come_back),
        case("results_come_in_pages", results_come_in_pages),
        case("a_changed_table_is_learned_again", a_changed_table_is_learned_again),
        case("wrong_words_are_told_by_name", wrong_words_are_told_by_name),
    ]
}

/// A client, and a schema that nobody else uses.
async fn begin(stage_client: ignite_client::Options, schema: &str) -> Result<Client> {
    let client = Client::connect(stage_client).await?;
    client.execute_script(&format!("CREATE SCHEMA {schema}")).await?;
    Ok(client)
}

/// Runs an async case with a client and a schema of its own.
fn with(stage: &mut Stage, play: impl AsyncFnOnce(&Client, &str) -> Result<()>) -> Result<()> {
    let schema = stage.schema();
    let options = stage.client();
    stage.runtime.clone().block_on(async {
        let client = begin(options, &schema).await?;
        play(&client, &schema).await
    })
}

fn rows_are_kept_by_key(stage: &mut Stage) -> Result<()> {
    with(stage, async |client, schema| {
        // The key is neither first nor in the order of the columns.
        let script =
            format!("CREATE TABLE {schema}.T (V VARCHAR, B INT, A INT, PRIMARY KEY (A, B))");
        client.execute_script(&script).await?;
        let table = client.table(&format!("{schema}.T")).await?;
        let columns = Columns::new(["A", "B", "V"]);
        let row = |a: i32, b: i32, v: &str| columns.row([a.into(), b.into(), v.into()]);
        let key = |a: i32, b: i32| Row::new([("A", a.into()), ("B", b.into())]);
        let value = |row: Option<Row>| row.and_then(|row| row.get("V").cloned());

        table.upsert(None, &row(1, 2, "x")).await?;
        ensure!(value(table.get(None, &key(1, 2)).await?) == Some("x".into()));
        ensure!(table.get(None, &key(2, 1)).await?.is_none());
        ensure!(!table.insert(None, &row(1, 2, "y")).await?);
        ensure!(table.insert(None, &row(1, 3, "y")).await?);
        ensure!(!table.replace_exact(None, &row(1, 3, "z"), &row(1, 3, "w")).await?);
        ensure!(table.replace_exact(None, &row(1, 3, "y"), &row(1, 3, "w")).await?);
        table.upsert_all(None, &[row(5, 1, "a"), row(5, 2, "b")]).await?;
        let left = table.insert_all(None, &[row(5, 2, "c"), row(5, 3, "c")]).await?;
        ensure!(left.len() == 1 && left[0].get("B") == Some(&Value::I32(2)), "{left:?}");
        let found = table.get_all(None, &[key(5, 3), key(9, 9), key(5, 1)]).await?;
        let found: Vec<Option<Value>> = found.into_iter().map(value).collect();
        ensure!(found == [Some("c".into()), None, Some("a".into())], "{found:?}");
        let missing = table.delete_all(None, &[key(5, 1), key(9, 9)]).await?;
        ensure!(missing.len() == 1 && missing[0].get("A") == Some(&Value::I32(9)), "{missing:?}");
        ensure!(table.delete(None, &key(5, 2)).await?);
        ensure!(!table.delete(None, &key(5, 2)).await?);
        Ok(())
    })
}

fn every_type_comes_back(stage: &mut Stage) -> Result<()> {
    const TYPES: [&str; 14] = [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "REAL",
        "DOUBLE",
        "DECIMAL(20, 3)",
        "DATE",
        "TIME(3)",
        "TIMESTAMP(3)",
        "UUID",
        "VARCHAR",
        "VARBINARY",
    ];
    with(stage, async |client, schema| {
        let columns: Vec<String> =
            TYPES.iter().enumerate().map(|(at, kind)| format!("C{at} {kind}")).collect();
        let script =
            format!("CREATE TABLE {schema}.T (ID INT PRIMARY KEY, {})", columns.join(", "));
        client.execute_script(&script).await?;
        let statement = format!(
            "INSERT INTO {schema}.T VALUES (1, true, -5, 300, -70000, 5000000000, 1.5, 0.1, \
             -1234.5, DATE '2026-11-17', TIME '23:59:58.007', TIMESTAMP '2026-11-17 01:02:03', \
             CAST('00112233-4455-6677-8899-aabbccddeeff' AS UUID), 'häuser', x'8001')"
        );
        let inserted = client.execute(None, &statement, &[]).await?;
        ensure!(inserted.affected() == 1);
        let by_sql = client.execute(None, &format!("SELECT * FROM {schema}.T"), &[]).await?;
        let by_sql = by_sql.all().await?.pop().context("a row")?;
        let table = client.table(&format!("{schema}.T")).await?;
        let by_key = table.get(None, &Row::new([("ID", 1.into())])).await?.context("a row")?;
        // What was read can be written, by key and as arguments, and is the same then.
        let again = by_key.columns().row(
            by_key
                .values()
                .iter()
                .enumerate()
                .map(|(at, value)| if at == 0 { Value::I32(2) } else { value.clone() }),
        );
        table.upsert(None, &again).await?;
        let marks = vec!["?"; TYPES.len()].join(", ");
        let statement = format!("INSERT INTO {schema}.T VALUES (3, {marks})");
        client.execute(None, &statement, &by_sql.values()[1..]).await?;
        for id in [2, 3] {
            let row = table.get(None, &Row::new([("ID", id.into())])).await?.context("a row")?;
            ensure!(row.values()[1..] == by_key.values()[1..], "{row:?}\n{by_key:?}");
        }
        ensure!(by_sql.values() == by_key.values(), "{by_sql:?}\n{by_key:?}");
        let kinds: Vec<ColumnType> = by_sql.values().iter().map(Value::column_type).collect();
        ensure!(!kinds.contains(&ColumnType::Null), "{kinds:?}");
        Ok(())
    })
}

/// A table of numbers by numbers.
async fn numbers(client: &Client, schema: &str) -> Result<ignite_client::Table> {
    let script = format!("CREATE TABLE {schema}.T (K INT PRIMARY KEY, V INT)");
    client.execute_script(&script).await?;
    Ok(client.table(&format!("{schema}.T")).await?)
}

fn pair(k: i32, v: i32) -> Row {
    Row::new([("K", k.into()), ("V", v.into())])
}

fn key(k: i32) -> Row {
    Row::new([("K", k.into())])
}

fn transactions_are_all_or_nothing(stage: &mut Stage) -> Result<()> {
    with(stage, async |client, schema| {
        let table = numbers(client, schema).await?;
        let tx = client.begin(Mode::ReadWrite).await?;
        table.upsert(Some(&tx), &pair(1, 1)).await?;
        ensure!(table.get(Some(&tx), &key(1)).await?.is_some(), "seen inside");
        tx.rollback().await?;
        ensure!(table.get(None, &key(1)).await?.is_none(), "undone");
        drop(client.begin(Mode::ReadWrite).await?);
        let tx = client.begin(Mode::ReadWrite).await?;
        let statement = format!("INSERT INTO {schema}.T (K, V) VALUES (?, ?)");
        let rows: Vec<Vec<Value>> = (1..4).map(|at| vec![at.into(), at.into()]).collect();
        ensure!(client.execute_batch(Some(&tx), &statement, &rows).await? == [1, 1, 1]);
        tx.commit().await?;
        ensure!(table.get(None, &key(3)).await? == Some(pair(3, 3)));
        Ok(())
    })
}

fn a_snapshot_stays_as_it_was(stage: &mut Stage) -> Result<()> {
    let options = stage.client();
    with(stage, async |client, schema| {
        let table = numbers(client, schema).await?;
        table.upsert(None, &pair(1, 1)).await?;
        // Another client, whose snapshot is new enough once it has read at the primary.
        let other = Client::connect(options).await?;
        let theirs = other.table(&format!("{schema}.T")).await?;
        for round in 2..12 {
            table.upsert(None, &pair(1, round)).await?;
            theirs.get(None, &key(2)).await?;
            let snapshot = other.begin(Mode::Snapshot).await?;
            table.upsert(None, &pair(1, 100 + round)).await?;
            let seen = theirs.get(Some(&snapshot), &key(1)).await?;
            ensure!(seen == Some(pair(1, round)), "{round}: {seen:?}");
            snapshot.commit().await?;
        }
        Ok(())
    })
}

fn the_younger_of_two_writers_fails(stage: &mut Stage) -> Result<()> {
    with(stage, async |client, schema| {
        let table = numbers(client, schema).await?;
        table.upsert(None, &pair(1, 1)).await?;
        let older = client.begin(Mode::ReadWrite).await?;
        table.upsert(Some(&older), &pair(1, 2)).await?;
        let younger = client.begin(Mode::ReadWrite).await?;
        let refused = table.upsert(Some(&younger), &pair(1, 3)).await;
        let error = refused.err().context("the row is locked")?;
        ensure!(error.is_conflict(), "{error:?}");
        older.commit().await?;
        ensure!(table.get(None, &key(1)).await? == Some(pair(1, 2)));
        Ok(())
    })
}

fn large_values_come_back(stage: &mut Stage) -> Result<()> {
    with(stage, async |client, schema| {
        let script =
            format!("CREATE TABLE {schema}.T (K INT PRIMARY KEY, V VARBINARY(2147483647))");
        client.execute_script(&script).await?;
        let table = client.table(&format!("{schema}.T")).await?;
        for bytes in [3 << 19, 8 << 20] {
            let value: Vec<u8> = (0..bytes).map(|at: usize| (at * 7 % 251) as u8).collect();
            let row = Row::new([("K", 1.into()), ("V", value[..].into())]);
            table.upsert(None, &row).await?;
            ensure!(table.get(None, &key(1)).await? == Some(row), "{bytes}");
        }
        Ok(())
    })
}

fn results_come_in_pages(stage: &mut Stage) -> Result<()> {
    with(stage, async |client, schema| {
        let table = numbers(client, schema).await?;
        let rows: Vec<Row> = (0..100).map(|at| pair(at, at)).collect();
        table.upsert_all(None, &rows).await?;
        let statement = format!("SELECT K, V FROM {schema}.T WHERE K >= ? ORDER BY K");
        let found = client.execute_paged(None, &statement, &[10.into()], 7).await?.all().await?;
        ensure!(found == rows[10..], "{found:?}");
        // One that is dropped after its first row leaves the connection usable.
        let mut some = client.execute_paged(None, &statement, &[0.into()], 7).await?;
        ensure!(some.next().await? == Some(pair(0, 0)));
        drop(some);
        ensure!(table.get(None, &key(99)).await?.is_some());
        Ok(())
    })
}

fn a_changed_table_is_learned_again(stage: &mut Stage) -> Result<()> {
    with(stage, async |client, schema| {
        let table = numbers(client, schema).await?;
        table.upsert(None, &pair(1, 1)).await?;
        client
            .execute_script(&format!("ALTER TABLE {schema}.T ADD COLUMN W INT DEFAULT 7"))
            .await?;
        let read = table.get(None, &key(1)).await?.context("a row")?;
        ensure!(read.get("W") == Some(&Value::I32(7)), "{read:?}");
        table.upsert(None, &pair(2, 2)).await?;
        let read = table.get(None, &key(2)).await?.context("a row")?;
        ensure!(read.get("W") == Some(&Value::I32(7)), "a column without value gets its default");
        Ok(())
    })
}

fn wrong_words_are_told_by_name(stage: &mut Stage) -> Result<()> {
    with(stage, async |client, schema| {
        let table = numbers(client, schema).await?;
        let missing = client.table(&format!("{schema}.NOBODY")).await;
        ensure!(matches!(missing, Err(Error::NoTable { .. })), "{missing:?}");
        let unknown = table.upsert(None, &Row::new([("K", 1.into()), ("X", 1.into())])).await;
        ensure!(matches!(unknown, Err(Error::NoColumn { .. })), "{unknown:?}");
        let wrong = table.upsert(None, &Row::new([("K", 1_i64.into())])).await;
        ensure!(matches!(wrong, Err(Error::WrongType { .. })), "{wrong:?}");
        let keyless = table.get(None, &Row::new([("V", 1.into())])).await;
        ensure!(matches!(keyless, Err(Error::NoKey { .. })), "{keyless:?}");
        let error = client.execute(None, "SELEC 1", &[]).await.err().context("no SQL")?;
        let code = error.server().context("the server says so")?.code.to_string();
        ensure!(code == "IGN-SQL-3", "{code}");
        Ok(())
    })
}
