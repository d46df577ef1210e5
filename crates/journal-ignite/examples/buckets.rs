//! How many revisions should lie together in HISTORY: writes the same history with 1, 10, 100 and 1,000
//! revisions to a bucket, on 1 and on 8 partitions, and tells what batches, tails and ranges take.
//!
//! `cargo run --release -p journal-ignite --example buckets -- 127.0.0.1:10800,127.0.0.1:10801`
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::time::Duration;

use ignite_client::{Client, Columns, Error, Mode, Options, Row, Table};
use tokio::time::Instant;

const BUCKETS: [i64; 4] = [1, 10, 100, 1000];
const PARTITIONS: [u32; 2] = [1, 8];
/// A multiple of every bucket, and of the batch.
const REVISIONS: i64 = 10_000;
const BATCH_REVISIONS: i64 = 100;
/// What a follower asks for at once, and what a watch reads from history.
const TAIL_REVISIONS: i64 = 64;
const RANGE_REVISIONS: i64 = 1000;
/// How often each is read; the middle one is told.
const READS: i64 = 21;
const VALUE_BYTES: usize = 1024;
const PAGE_ROWS: u32 = 64;

/// One table, and how it is divided.
struct History {
    client: Client,
    table: Table,
    name: String,
    bucket: i64,
    columns: Columns,
    key: Columns,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let addresses = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:10800".to_owned());
    let addresses: Vec<String> = addresses.split(',').map(ToOwned::to_owned).collect();
    let client = Client::connect(Options::new(addresses)).await?;
    println!("| partitions | revisions per bucket | batch of {BATCH_REVISIONS} | tail | range |");
    println!("|---|---|---|---|---|");
    for partitions in PARTITIONS {
        for bucket in BUCKETS {
            let history = History::create(client.clone(), partitions, bucket).await?;
            let (batch, tail, range) =
                (history.fill().await?, history.tails().await?, history.ranges().await?);
            println!("| {partitions} | {bucket} | {batch:.1?} | {tail:.1?} | {range:.1?} |");
            history.remove().await?;
        }
    }
    Ok(())
}

// === impl History ===

impl History {
    async fn create(client: Client, partitions: u32, bucket: i64) -> Result<Self, Error> {
        let name = format!("BUCKETS_{partitions}_{bucket}");
        let script = format!(
            "DROP TABLE IF EXISTS {name};
CREATE ZONE IF NOT EXISTS BUCKETS_{partitions} (PARTITIONS {partitions}, REPLICAS 3) STORAGE PROFILES ['default'];
CREATE TABLE {name} (BUCKET BIGINT, REV BIGINT, V VARBINARY(65536) NOT NULL, \
PRIMARY KEY USING SORTED (BUCKET, REV)) COLOCATE BY (BUCKET) ZONE BUCKETS_{partitions};"
        );
        client.execute_script(&script).await?;
        let table = client.table(&name).await?;
        let columns = Columns::new(["BUCKET", "REV", "V"]);
        let key = Columns::new(["BUCKET", "REV"]);
        Ok(Self { client, table, name, bucket, columns, key })
    }

    /// What one batch takes.
    async fn fill(&self) -> Result<Duration, Error> {
        let value = vec![7_u8; VALUE_BYTES];
        let mut times = Vec::new();
        for first in (0..REVISIONS).step_by(BATCH_REVISIONS as usize) {
            let rows: Vec<Row> = (first..first + BATCH_REVISIONS)
                .map(|rev| {
                    let value = bytes::Bytes::copy_from_slice(&value);
                    self.columns.row([(rev / self.bucket).into(), rev.into(), value.into()])
                })
                .collect();
            let began = Instant::now();
            let tx = self.client.begin(Mode::ReadWrite).await?;
            self.table.upsert_all(Some(&tx), &rows).await?;
            tx.commit().await?;
            times.push(began.elapsed());
        }
        Ok(middle(times))
    }

    /// What the next revisions take, by key.
    async fn tails(&self) -> Result<Duration, Error> {
        let mut times = Vec::new();
        for from in starts(TAIL_REVISIONS) {
            let keys: Vec<Row> = (from..from + TAIL_REVISIONS)
                .map(|rev| self.key.row([(rev / self.bucket).into(), rev.into()]))
                .collect();
            let began = Instant::now();
            let found = self.table.get_all(None, &keys).await?;
            times.push(began.elapsed());
            assert!(found.iter().all(Option::is_some), "all were written");
        }
        Ok(middle(times))
    }

    /// What a piece of history takes, by a query in order.
    async fn ranges(&self) -> Result<Duration, Error> {
        let statement = format!(
            "SELECT REV, V FROM {} WHERE BUCKET >= ? AND BUCKET <= ? AND REV >= ? AND REV < ? \
             ORDER BY BUCKET, REV",
            self.name
        );
        let mut times = Vec::new();
        for from in starts(RANGE_REVISIONS) {
            let to = from + RANGE_REVISIONS;
            let buckets = [from / self.bucket, to / self.bucket];
            let arguments = [buckets[0].into(), buckets[1].into(), from.into(), to.into()];
            let began = Instant::now();
            let found = self.client.execute_paged(None, &statement, &arguments, PAGE_ROWS).await?;
            let found = found.all().await?;
            times.push(began.elapsed());
            assert_eq!(found.len() as i64, RANGE_REVISIONS, "all were written");
        }
        Ok(middle(times))
    }

    async fn remove(self) -> Result<(), Error> {
        self.client.execute_script(&format!("DROP TABLE {};", self.name)).await
    }
}

/// Where reads of so many revisions begin, all over what there is.
fn starts(revisions: i64) -> impl Iterator<Item = i64> {
    (0..READS).map(move |read| (REVISIONS - revisions) * read / READS)
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
