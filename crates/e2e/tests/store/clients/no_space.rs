//! A store that is full, and the way out that etcd's documentation tells: compact, defragment,
//! disarm. Walked with etcdctl, on etcd and on windlass.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::scene::{Scene, suite};
use e2e::store::{Lane, Store, StoreOptions};
use serde_json::Value;

use super::etcdctl::etcdctl;

/// Room for some values, and little enough to be filled in a moment.
const QUOTA_BYTES: usize = 20 << 20;

/// A value below what a request may have.
const VALUE_BYTES: usize = 1 << 20;

/// A store takes its quota and a little more before it notices.
const PUTS_MAX: usize = 4 * QUOTA_BYTES / VALUE_BYTES;

const FULL: &str = "etcdserver: mvcc: database space exceeded";

#[test]
fn etcd_is_filled_and_got_out_of_it() {
    run("etcd_is_filled_and_got_out_of_it", Lane::Etcd);
}

#[test]
fn windlass_is_filled_and_got_out_of_it() {
    run("windlass_is_filled_and_got_out_of_it", Lane::Windlass);
}

fn run(name: &'static str, lane: Lane) {
    suite(name, &[lane.asset(), Asset::Etcdctl], async |scene| {
        let full = Full::start(scene, lane).await?;
        full.fill().await?;
        full.expect(&["alarm", "list"], "NOSPACE").await?;
        full.refuse(&["put", "small", "1"]).await?;
        full.expect(&["get", "filler", "--count-only", "-w", "fields"], "\"Count\" : 1").await?;

        let revision = full.revision().await?.to_string();
        full.expect(&["compaction", &revision, "--physical"], "compacted revision").await?;
        full.refuse(&["put", "small", "1"]).await.context("nobody has disarmed the alarm")?;
        full.expect(&["defrag"], "Finished defragmenting").await?;
        full.expect(&["alarm", "disarm"], "NOSPACE").await?;
        full.expect(&["put", "small", "1"], "OK").await?;
        let listed = full.etcdctl(&["alarm", "list"], "").await?;
        ensure!(listed == Ok(String::new()), "alarms are left: {listed:?}");
        Ok(())
    });
}

/// A store with little room.
struct Full {
    store: Store,
    program: PathBuf,
}

// === impl Full ===

impl Full {
    async fn start(scene: &Scene, lane: Lane) -> Result<Self> {
        let quota = QUOTA_BYTES.to_string();
        let options = StoreOptions::new(lane, "full")
            .flags(lane.without_sync())
            .flags(["--quota-backend-bytes", &quota]);
        let store = Store::start(scene, &options).await?;
        Ok(Self { store, program: scene.program(Asset::Etcdctl)? })
    }

    /// Puts one key again and again, until it is refused for want of room.
    async fn fill(&self) -> Result<()> {
        let value = "x".repeat(VALUE_BYTES);
        for _ in 0..PUTS_MAX {
            if let Err(refusal) = self.etcdctl(&["put", "filler"], &value).await? {
                ensure!(refusal.contains(FULL), "{refusal}");
                return Ok(());
            }
        }
        anyhow::bail!("{PUTS_MAX} puts of {VALUE_BYTES} bytes do not fill {QUOTA_BYTES}")
    }

    async fn revision(&self) -> Result<i64> {
        let answer = self.etcdctl(&["get", "filler", "-w", "json"], "").await?;
        let answer = answer.map_err(anyhow::Error::msg)?;
        let answer: Value = serde_json::from_str(&answer).context("etcdctl prints JSON")?;
        answer["header"]["revision"].as_i64().context("every answer has a revision")
    }

    async fn expect(&self, arguments: &[&str], part: &str) -> Result<()> {
        let printed = self.etcdctl(arguments, "").await?;
        let is_expected = printed.as_ref().is_ok_and(|text| text.contains(part));
        ensure!(is_expected, "{arguments:?}: {printed:?}, without `{part}`");
        Ok(())
    }

    async fn refuse(&self, arguments: &[&str]) -> Result<()> {
        let printed = self.etcdctl(arguments, "").await?;
        let is_full = printed.as_ref().is_err_and(|text| text.contains(FULL));
        ensure!(is_full, "{arguments:?}: {printed:?}, though the store is full");
        Ok(())
    }

    /// What was printed, or what went wrong.
    async fn etcdctl(
        &self,
        arguments: &[&str],
        input: &str,
    ) -> Result<std::result::Result<String, String>> {
        let output = etcdctl(&self.program, &self.store, arguments, input).await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        })
    }
}
