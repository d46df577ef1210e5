//! Taints and what tolerates them. Taints that are only a preference are not kept.

use k8s_openapi::api::core::v1 as core;

use crate::words::{Symbol, Words};

const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    NoSchedule,
    NoExecute,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Taint {
    pub(crate) key: Symbol,
    pub(crate) value: Symbol,
    pub(crate) effect: Effect,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Toleration {
    /// Absent: every key.
    key: Option<Symbol>,
    /// Absent: every effect.
    effect: Option<Effect>,
    accepts: Accepts,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Accepts {
    Any,
    Equal(Symbol),
    /// Taints whose value is a number below or above this one.
    Below(i64),
    Above(i64),
    /// An operator that is not known, or a bound that is no number.
    None,
}

// === impl Effect ===

impl Effect {
    fn new(effect: &str) -> Self {
        match effect {
            "NoSchedule" => Self::NoSchedule,
            "NoExecute" => Self::NoExecute,
            _ => Self::Other,
        }
    }
}

// === impl Taint ===

impl Taint {
    /// Those that keep pods away.
    pub(crate) fn hard(words: &mut Words, taints: Option<&Vec<core::Taint>>) -> Vec<Self> {
        let taints = taints.into_iter().flatten().map(|taint| Self {
            key: words.intern(&taint.key),
            value: words.intern(taint.value.as_deref().unwrap_or_default()),
            effect: Effect::new(&taint.effect),
        });
        taints.filter(|taint| taint.effect != Effect::Other).collect()
    }

    /// What a cordoned node is taken to bear, whether or not it does.
    pub(crate) fn unschedulable(words: &mut Words) -> Self {
        let (key, value) = (words.intern(UNSCHEDULABLE), words.intern(""));
        Self { key, value, effect: Effect::NoSchedule }
    }
}

// === impl Toleration ===

impl Toleration {
    pub(crate) fn new(words: &mut Words, toleration: &core::Toleration) -> Self {
        let value = toleration.value.as_deref().unwrap_or_default();
        let bound = |accepts: fn(i64) -> Accepts| decimal(value).map_or(Accepts::None, accepts);
        let present = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Self {
            key: present(&toleration.key).map(|key| words.intern(&key)),
            effect: present(&toleration.effect).map(|effect| Effect::new(&effect)),
            accepts: match toleration.operator.as_deref().unwrap_or_default() {
                "" | "Equal" => Accepts::Equal(words.intern(value)),
                "Exists" => Accepts::Any,
                "Lt" => bound(Accepts::Below),
                "Gt" => bound(Accepts::Above),
                _ => Accepts::None,
            },
        }
    }

    pub(crate) fn tolerates(&self, taint: &Taint, words: &Words) -> bool {
        let number = || decimal(&words.text(taint.value));
        self.effect.is_none_or(|effect| effect == taint.effect)
            && self.key.is_none_or(|key| key == taint.key)
            && match self.accepts {
                Accepts::Any => true,
                Accepts::Equal(value) => value == taint.value,
                Accepts::Below(bound) => number().is_some_and(|number| number < bound),
                Accepts::Above(bound) => number().is_some_and(|number| number > bound),
                Accepts::None => false,
            }
    }
}

/// A whole number as it is usually written: no plus sign, no leading zeros.
fn decimal(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
