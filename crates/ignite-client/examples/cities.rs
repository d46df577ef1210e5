//! Writes two rows in one transaction and asks for them with SQL.
//!
//! `cargo run -p ignite-client --example cities -- 127.0.0.1:10800`
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use ignite_client::{Client, Columns, Error, Mode, Options};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS CITY (NAME VARCHAR PRIMARY KEY, PEOPLE BIGINT)";

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut addresses: Vec<String> = std::env::args().skip(1).collect();
    if addresses.is_empty() {
        addresses.push("127.0.0.1:10800".to_owned());
    }
    let client = Client::connect(Options::new(addresses)).await?;
    let peer = client.peer().await?;
    println!("{} of {}, Ignite {}", peer.node_name, peer.cluster_name, peer.version);

    client.execute_script(TABLE).await?;
    let city = client.table("CITY").await?;
    let columns = Columns::new(["NAME", "PEOPLE"]);
    let rows = [("Bern", 137_000_i64), ("Thun", 44_000)]
        .map(|(name, people)| columns.row([name.into(), people.into()]));
    let tx = client.begin(Mode::ReadWrite).await?;
    city.upsert_all(Some(&tx), &rows).await?;
    tx.commit().await?;

    let mut found =
        client.execute(None, "SELECT NAME, PEOPLE FROM CITY ORDER BY NAME", &[]).await?;
    while let Some(row) = found.next().await? {
        println!("{:?}", row.values());
    }
    Ok(())
}
