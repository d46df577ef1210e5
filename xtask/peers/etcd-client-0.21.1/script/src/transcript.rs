//! What was told, line by line, and how answers are put into words.

use std::fmt::{self, Display};

use anyhow::{Result, bail};
use etcd_client::{Error, Event, KeyValue, ResponseHeader};

#[derive(Default)]
pub(crate) struct Transcript {
    lines: Vec<String>,
}

// === impl Transcript ===

impl Transcript {
    pub(crate) fn say(&mut self, what: &str, told: impl Display) {
        self.lines.push(format!("{what}: {told}"));
    }

    /// A request that must be refused, with the words of the refusal.
    pub(crate) fn refused<T>(&mut self, what: &str, outcome: Result<T, Error>) -> Result<()> {
        match outcome {
            Err(Error::GRpcStatus(status)) => {
                self.say(what, format!("{:?}, {}", status.code(), status.message()));
                Ok(())
            }
            Err(error) => Err(error.into()),
            Ok(_) => bail!("{what}: not refused"),
        }
    }
}

impl Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

pub(crate) fn revision(header: Option<&ResponseHeader>) -> i64 {
    header.map_or(0, ResponseHeader::revision)
}

pub(crate) fn pair(kv: &KeyValue) -> String {
    let (key, value) = (kv.key().escape_ascii(), kv.value().escape_ascii());
    let lease = if kv.lease() == 0 { "" } else { " leased" };
    let (created, changed) = (kv.create_revision(), kv.mod_revision());
    format!("{key}={value} ({created}, {changed}, {}){lease}", kv.version())
}

pub(crate) fn pairs(kvs: &[KeyValue]) -> String {
    kvs.iter().map(pair).collect::<Vec<_>>().join("; ")
}

pub(crate) fn event(event: &Event) -> String {
    let now = event.kv().map(pair).unwrap_or_default();
    let before = event.prev_kv().map(pair).unwrap_or_default();
    format!("{:?} {now} after [{before}]", event.event_type())
}
