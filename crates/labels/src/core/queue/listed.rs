//! What a list of the queue shows, taken in one transaction after the other. A queue may have grown
//! for days, and whoever comes to work it off has to live through listing it: like in the queue, what
//! is beyond the bound is kept by its name alone.

use super::{PAYLOAD_BYTES_MAX, Seen};

/// All transactions at one moment.
#[derive(Debug)]
pub struct Listed {
    pub(super) all: Vec<Seen>,
    payload_bytes: usize,
    payload_bytes_max: usize,
}

// === impl Listed ===

impl Default for Listed {
    fn default() -> Self {
        Self::bounded(PAYLOAD_BYTES_MAX)
    }
}

impl Listed {
    fn bounded(payload_bytes_max: usize) -> Self {
        Self { all: Vec::new(), payload_bytes: 0, payload_bytes_max }
    }

    pub fn push(&mut self, mut seen: Seen) {
        if self.payload_bytes + seen.bytes <= self.payload_bytes_max {
            self.payload_bytes += seen.bytes;
        } else {
            seen.document = None;
        }
        self.all.push(seen);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::core::{
        names::{NodeHash, TransactionName},
        object::Document,
    };

    fn seen(rv: &str, bytes: usize) -> Seen {
        Seen {
            name: TransactionName::new(NodeHash::of("a"), rv.parse().unwrap()),
            uid: None,
            document: Some(Document::default()),
            created: Timestamp::UNIX_EPOCH,
            is_quarantined: false,
            bytes,
        }
    }

    #[test]
    fn beyond_the_bound_content_is_let_go_of() {
        let mut listed = Listed::bounded(250);
        for (rv, bytes) in [("1", 100), ("2", 200), ("3", 150)] {
            listed.push(seen(rv, bytes));
        }
        let kept = listed.all.iter().map(|seen| (seen.name.rv().as_str(), seen.document.is_some()));
        assert_eq!(kept.collect::<Vec<_>>(), [("1", true), ("2", false), ("3", true)]);
    }
}
