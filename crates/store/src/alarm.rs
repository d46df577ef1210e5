//! Alarms: what an operator must look at before the store takes writes again.

use std::collections::BTreeSet;

use etcd_api::etcdserverpb::AlarmType;
use journal::MetaChange;

pub(crate) use crate::meta::Alarm;

/// The alarms that are raised.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alarms {
    raised: BTreeSet<Alarm>,
}

/// A question or an order about alarms. `kind` is etcd's number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// Those of one kind, or all if it is none.
    Get {
        kind: i32,
    },
    Raise(Alarm),
    Clear(Alarm),
}

/// What a change did.
pub(crate) struct Changed {
    /// The alarms the answer names.
    pub(crate) alarms: Vec<Alarm>,
    /// Empty if nothing changed.
    pub(crate) meta: Vec<MetaChange>,
}

// === impl Alarms ===

impl Alarms {
    pub(crate) fn new(alarms: impl IntoIterator<Item = Alarm>) -> Self {
        Self { raised: alarms.into_iter().collect() }
    }

    /// Whether writes that need room are refused.
    pub(crate) fn is_out_of_space(&self) -> bool {
        self.has(AlarmType::Nospace)
    }

    /// Whether writes are refused, since data was found damaged.
    pub(crate) fn is_corrupt(&self) -> bool {
        self.has(AlarmType::Corrupt)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Alarm> {
        self.raised.iter().copied()
    }

    pub(crate) fn apply(&mut self, change: Change) -> Changed {
        match change {
            Change::Get { kind } => {
                let is_asked = |alarm: &Alarm| kind == AlarmType::None as i32 || alarm.kind == kind;
                Changed { alarms: self.iter().filter(is_asked).collect(), meta: Vec::new() }
            }
            // As in etcd: whoever names no alarm raises none.
            Change::Raise(alarm) if alarm.kind == AlarmType::None as i32 => {
                Changed { alarms: Vec::new(), meta: Vec::new() }
            }
            Change::Raise(alarm) => {
                let is_new = self.raised.insert(alarm);
                let meta = if is_new { vec![alarm.raised()] } else { Vec::new() };
                Changed { alarms: vec![alarm], meta }
            }
            Change::Clear(alarm) if self.raised.remove(&alarm) => {
                Changed { alarms: vec![alarm], meta: vec![alarm.cleared()] }
            }
            Change::Clear(_) => Changed { alarms: Vec::new(), meta: Vec::new() },
        }
    }

    fn has(&self, kind: AlarmType) -> bool {
        self.raised.iter().any(|alarm| alarm.kind == kind as i32)
    }
}
