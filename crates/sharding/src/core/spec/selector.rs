//! Label selectors, as Kubernetes reads them, and the namespaces they select.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where the control plane lives; a ring has no business there unless it says so.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// All of it must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selector {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requirement {
    pub key: String,
    pub operator: Operator,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// A namespace by name and labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    pub name: String,
    pub labels: BTreeMap<String, String>,
}

// === impl Selector ===

impl Selector {
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.holds(labels))
    }

    /// The same in the words of a request.
    #[must_use]
    pub fn to_query(&self) -> String {
        let labels = self.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
        let expressions = self.match_expressions.iter().map(Requirement::to_query);
        labels.chain(expressions).collect::<Vec<_>>().join(",")
    }
}

// === impl Requirement ===

impl Requirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => !value.is_some_and(|value| self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }

    fn to_query(&self) -> String {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::In => format!("{key} in ({values})"),
            Operator::NotIn => format!("{key} notin ({values})"),
            Operator::Exists => key.clone(),
            Operator::DoesNotExist => format!("!{key}"),
        }
    }
}

// === impl Namespace ===

impl Namespace {
    /// Whether a ring with this selector takes objects of the namespace. `home` is the sharder's.
    #[must_use]
    pub fn is_selected(&self, selector: Option<&Selector>, home: &str) -> bool {
        match selector {
            Some(selector) => selector.matches(&self.labels),
            None => self.name != SYSTEM_NAMESPACE && self.name != home,
        }
    }
}
