//! Labels, and what selectors ask of them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::words::{Symbol, Words};

/// Sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Labels(Vec<(Symbol, Symbol)>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Requirement {
    pub(crate) key: Symbol,
    pub(crate) test: Test,
}

/// Values are sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Test {
    In(Vec<Symbol>),
    /// Also passed by what lacks the key.
    NotIn(Vec<Symbol>),
    Exists,
    DoesNotExist,
    Above(i64),
    Below(i64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Selector {
    Nothing,
    /// All of them hold; sorted. Without any, everything is selected.
    All(Vec<Requirement>),
}

/// A test that nothing is known of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownOperator(pub(crate) String);

// === impl Labels ===

impl Labels {
    pub(crate) fn new(words: &mut Words, labels: Option<&BTreeMap<String, String>>) -> Self {
        let pairs = labels.into_iter().flatten();
        Self::of_pairs(pairs.map(|(key, value)| (words.intern(key), words.intern(value))))
    }

    fn of_pairs(pairs: impl Iterator<Item = (Symbol, Symbol)>) -> Self {
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_unstable();
        Self(pairs)
    }

    pub(crate) fn get(&self, key: Symbol) -> Option<Symbol> {
        let at = self.0.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(self.0[at].1)
    }

    pub(crate) fn contains(&self, pair: &(Symbol, Symbol)) -> bool {
        self.0.binary_search(pair).is_ok()
    }

    /// Changes a value; a key that is not there stays away.
    pub(crate) fn replace(&mut self, key: Symbol, value: Symbol) {
        if let Ok(at) = self.0.binary_search_by_key(&key, |(key, _)| *key) {
            self.0[at].1 = value;
        }
    }
}

// === impl Requirement ===

impl Requirement {
    pub(crate) fn is_one_of(key: Symbol, mut values: Vec<Symbol>) -> Self {
        values.sort_unstable();
        Self { key, test: Test::In(values) }
    }

    pub(crate) fn is_none_of(key: Symbol, mut values: Vec<Symbol>) -> Self {
        values.sort_unstable();
        Self { key, test: Test::NotIn(values) }
    }

    pub(crate) fn matches(&self, labels: &Labels, words: &Words) -> bool {
        let value = labels.get(self.key);
        let number = || words.text(value?).parse::<i64>().ok();
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.binary_search(&value).is_ok()),
            Test::NotIn(values) => value.is_none_or(|value| values.binary_search(&value).is_err()),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

// === impl Selector ===

impl Selector {
    /// An absent selector selects nothing, an empty one everything.
    pub(crate) fn new(
        words: &mut Words,
        selector: Option<&LabelSelector>,
    ) -> Result<Self, UnknownOperator> {
        let Some(selector) = selector else { return Ok(Self::Nothing) };
        let mut all = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            all.push(Requirement::is_one_of(words.intern(key), vec![words.intern(value)]));
        }
        for each in selector.match_expressions.iter().flatten() {
            let key = words.intern(&each.key);
            let values = || each.values.iter().flatten();
            let requirement = match each.operator.as_str() {
                "In" => Requirement::is_one_of(key, values().map(|v| words.intern(v)).collect()),
                "NotIn" => {
                    Requirement::is_none_of(key, values().map(|v| words.intern(v)).collect())
                }
                "Exists" => Requirement { key, test: Test::Exists },
                "DoesNotExist" => Requirement { key, test: Test::DoesNotExist },
                unknown => return Err(UnknownOperator(unknown.to_owned())),
            };
            all.push(requirement);
        }
        all.sort_unstable();
        all.dedup();
        Ok(Self::All(all))
    }

    /// Asks for more. What selects nothing goes on to select nothing.
    pub(crate) fn require(&mut self, more: impl IntoIterator<Item = Requirement>) {
        if let Self::All(all) = self {
            all.extend(more);
            all.sort_unstable();
            all.dedup();
        }
    }

    pub(crate) fn is_everything(&self) -> bool {
        matches!(self, Self::All(all) if all.is_empty())
    }

    pub(crate) fn matches(&self, labels: &Labels, words: &Words) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(all) => all.iter().all(|each| each.matches(labels, words)),
        }
    }
}

/// What a selector says of labels that were not interned. An operator that is not known selects
/// nothing.
pub(crate) fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let mut words = Words::default();
    let labels = Labels::new(&mut words, Some(labels));
    Selector::new(&mut words, Some(selector))
        .is_ok_and(|selector| selector.matches(&labels, &words))
}
