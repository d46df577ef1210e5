//! The snapshots that a record had before, newest first.
//!
//! They are what a late deletion is amended from, and what a person goes back to.

use super::{
    object::{Labels, Marker, Uid},
    rv::ResourceVersion,
    snapshot::{Snapshot, SnapshotError, Wire},
};

/// Enough to go back over a bad day, few enough to be read.
pub const PAST_LEN_MAX: usize = 5;

/// A quarter of what a ConfigMap holds.
pub const HISTORY_BYTES_MAX: usize = 256 * 1024;

/// At most five snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past(Vec<Snapshot>);

// === impl Past ===

impl Past {
    /// Newest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Snapshot> {
        self.0.iter()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn at(&self, rv: &ResourceVersion) -> Option<&Snapshot> {
        self.iter().find(|snapshot| snapshot.rv == *rv)
    }

    #[must_use]
    pub fn named(&self, marker: &Marker) -> Option<&Snapshot> {
        self.iter().find(|snapshot| marker.names(&snapshot.rv))
    }

    /// Adds what was just replaced; the oldest gives way.
    pub fn push(&mut self, replaced: Snapshot) {
        self.0.insert(0, replaced);
        self.0.truncate(PAST_LEN_MAX);
    }

    /// Adds a snapshot that comes late, at its place among the others. Older than five others, it
    /// is not kept.
    pub fn insert_late(&mut self, late: Snapshot) {
        let older = self.0.iter().position(|snapshot| snapshot.rv < late.rv);
        self.0.insert(older.unwrap_or(self.0.len()), late);
        self.0.truncate(PAST_LEN_MAX);
    }

    /// Whether there is a word on this incarnation at or after `rv`.
    #[must_use]
    pub fn covers(&self, uid: &Uid, rv: &ResourceVersion) -> bool {
        self.iter().any(|snapshot| snapshot.uid.as_ref() == Some(uid) && snapshot.rv >= *rv)
    }

    /// As many of the newest as fit into `bytes_max`. Labels equal to the successor's are left
    /// out: most words on an incarnation only repeat the one before. The newest one's successor is
    /// the record itself, with the labels `current`.
    #[must_use]
    pub fn to_json(&self, current: &Labels, bytes_max: usize) -> Option<String> {
        let mut successor = current;
        let mut json = String::new();
        for snapshot in &self.0 {
            let labels = (snapshot.labels != *successor).then_some(&snapshot.labels);
            let entry = serde_json::to_string(&Wire::new(snapshot, labels))
                .expect("text keys and text values are always JSON");
            // One byte before it, and the closing bracket after it.
            if json.len() + entry.len() + 2 > bytes_max {
                break;
            }
            json.push(if json.is_empty() { '[' } else { ',' });
            json.push_str(&entry);
            successor = &snapshot.labels;
        }
        (!json.is_empty()).then(|| json + "]")
    }

    pub fn from_json(json: &str, current: &Labels) -> Result<Self, SnapshotError> {
        let wires: Vec<Wire<'_>> = serde_json::from_str(json).map_err(SnapshotError::Json)?;
        let mut snapshots: Vec<Snapshot> = Vec::with_capacity(wires.len());
        for wire in wires {
            wire.check_version()?;
            let successor = snapshots.last().map_or(current, |snapshot| &snapshot.labels);
            let labels =
                wire.labels.clone().map_or_else(|| successor.clone(), |own| own.into_owned());
            snapshots.push(wire.into_snapshot(labels));
        }
        snapshots.truncate(PAST_LEN_MAX);
        Ok(Self(snapshots))
    }
}

impl FromIterator<Snapshot> for Past {
    fn from_iter<I: IntoIterator<Item = Snapshot>>(snapshots: I) -> Self {
        Self(snapshots.into_iter().take(PAST_LEN_MAX).collect())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn snapshot(rv: u32, value: &str) -> Snapshot {
        Snapshot {
            node: "n".to_owned(),
            uid: Some(Uid("u".to_owned())),
            rv: rv.to_string().parse().unwrap(),
            marker: None,
            labels: labels(value),
        }
    }

    fn labels(value: &str) -> Labels {
        [("k".to_owned(), value.to_owned())].into()
    }

    fn rvs(past: &Past) -> String {
        past.iter().map(|snapshot| snapshot.rv.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn labels_equal_to_the_successors_are_left_out() {
        let past: Past =
            [snapshot(9, "b"), snapshot(8, "a"), snapshot(7, "a")].into_iter().collect();
        let json = past.to_json(&labels("b"), HISTORY_BYTES_MAX).unwrap();
        expect![[r#"[{"v":1,"node":"n","uid":"u","rv":"9","marker":null},{"v":1,"node":"n","uid":"u","rv":"8","marker":null,"labels":{"k":"a"}},{"v":1,"node":"n","uid":"u","rv":"7","marker":null}]"#]]
            .assert_eq(&json);
        assert_eq!(Past::from_json(&json, &labels("b")).unwrap(), past);
        assert_eq!(Past::default().to_json(&labels("b"), HISTORY_BYTES_MAX), None);
    }

    #[test]
    fn the_oldest_gives_way() {
        let mut past = Past::default();
        (1..=7).for_each(|rv| past.push(snapshot(rv, "x")));
        assert_eq!(rvs(&past), "7 6 5 4 3");
    }

    #[test]
    fn a_late_one_takes_its_place() {
        let mut past: Past = [snapshot(9, "x"), snapshot(5, "x")].into_iter().collect();
        past.insert_late(snapshot(7, "x"));
        past.insert_late(snapshot(3, "x"));
        past.insert_late(snapshot(10, "x"));
        assert_eq!(rvs(&past), "10 9 7 5 3");
        past.insert_late(snapshot(2, "x"));
        assert_eq!(rvs(&past), "10 9 7 5 3");
    }

    #[test]
    fn what_does_not_fit_is_dropped_oldest_first() {
        let past: Past =
            [snapshot(9, "a"), snapshot(8, "b"), snapshot(7, "c")].into_iter().collect();
        let whole = past.to_json(&labels("x"), HISTORY_BYTES_MAX).unwrap();
        assert_eq!(past.to_json(&labels("x"), whole.len()).unwrap(), whole);
        let shorter = past.to_json(&labels("x"), whole.len() - 1).unwrap();
        assert_eq!(rvs(&Past::from_json(&shorter, &labels("x")).unwrap()), "9 8");
        assert_eq!(past.to_json(&labels("x"), 10), None);
    }
}
