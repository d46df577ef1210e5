//! What happens to each label at a restore: who wins, the record or the new node.

use std::{fmt, str::FromStr};

use jiff::SignedDuration;

/// Everything that operators can choose about restoring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Before every built-in row; the first that matches wins.
    pub rules: Vec<PolicyRule>,
    pub system_labels: SystemLabels,
    pub restore_mode: RestoreMode,
    pub marker: MarkerPlace,
    pub node_restriction: NodeRestriction,
    /// Records older than this are not restored.
    pub retention: SignedDuration,
}

/// `PATTERN=CLASS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    pub pattern: Pattern,
    pub class: Class,
}

/// A label key in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

/// Who wins at a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The record: what is absent there is removed.
    Stored,
    /// The new node if it has a value, else the record.
    PreferLive,
    /// The new node, in any case.
    Live,
}

/// What becomes of keys that kubelet and clouds write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SystemLabels {
    /// The built-in rows.
    #[default]
    Policy,
    /// The record wins, as for all others.
    Stored,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestoreMode {
    #[default]
    Replace,
    /// The live node wins everywhere, and nothing is removed.
    Merge,
}

/// Where a restored node is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkerPlace {
    #[default]
    Both,
    Label,
    Annotation,
}

/// What becomes of the labels that a kubelet may not set on itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeRestriction {
    #[default]
    Restore,
    Skip,
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("{0:?} has no `=` between pattern and class")]
    NoClass(String),
    #[error("the pattern before `=` is empty")]
    EmptyPattern,
    #[error("{0:?} is no class; there are stored, prefer-live and live")]
    Class(String),
}

const RETENTION_DEFAULT: SignedDuration = SignedDuration::from_hours(30 * 24);

/// First match wins; what matches nothing is [`Class::Stored`].
const BUILT_IN: &[(&str, Class)] = &[
    // Cloud controllers copy these over the true labels that replaced them.
    ("failure-domain.beta.kubernetes.io/*", Class::Live),
    ("beta.kubernetes.io/instance-type", Class::Live),
    // Kubelet and cloud tell the truth when they tell anything; zones set by hand survive.
    ("kubernetes.io/os", Class::PreferLive),
    ("kubernetes.io/arch", Class::PreferLive),
    ("beta.kubernetes.io/os", Class::PreferLive),
    ("beta.kubernetes.io/arch", Class::PreferLive),
    ("kubernetes.io/hostname", Class::PreferLive),
    ("node.kubernetes.io/instance-type", Class::PreferLive),
    ("node.kubernetes.io/windows-build", Class::PreferLive),
    ("topology.kubernetes.io/zone", Class::PreferLive),
    ("topology.kubernetes.io/region", Class::PreferLive),
    ("topology.kubernetes.io/*", Class::Stored),
    // A stale value blocks the registration of the CSI driver.
    ("topology.*/*", Class::Live),
    ("csi.*/*", Class::Live),
    ("*.csi.*/*", Class::Live),
    // Detectors and clouds write these again.
    ("feature.node.kubernetes.io/*", Class::PreferLive),
    ("nvidia.com/*", Class::PreferLive),
    ("cloud.google.com/*", Class::PreferLive),
    ("eks.amazonaws.com/*", Class::PreferLive),
    ("kubernetes.azure.com/*", Class::PreferLive),
    ("karpenter.*/*", Class::PreferLive),
    ("node.cluster.x-k8s.io/*", Class::PreferLive),
    ("machineconfiguration.openshift.io/*", Class::PreferLive),
];

/// The prefix that kubelets may not set, and what ends with it.
const RESTRICTED: [&str; 2] =
    ["node-restriction.kubernetes.io/*", "*.node-restriction.kubernetes.io/*"];

// === impl Policy ===

impl Default for Policy {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            system_labels: SystemLabels::default(),
            restore_mode: RestoreMode::default(),
            marker: MarkerPlace::default(),
            node_restriction: NodeRestriction::default(),
            retention: RETENTION_DEFAULT,
        }
    }
}

impl Policy {
    /// Who wins for a key, everything chosen taken into account.
    #[must_use]
    pub fn class_of(&self, key: &str) -> Class {
        let is_restricted = || RESTRICTED.iter().any(|pattern| matches(pattern, key));
        if self.node_restriction == NodeRestriction::Skip && is_restricted() {
            return Class::Live;
        }
        match (self.class_by_key(key), self.restore_mode) {
            (Class::Stored, RestoreMode::Merge) => Class::PreferLive,
            (class, _) => class,
        }
    }

    fn class_by_key(&self, key: &str) -> Class {
        if let Some(rule) = self.rules.iter().find(|rule| rule.pattern.matches(key)) {
            return rule.class;
        }
        match self.system_labels {
            SystemLabels::Stored => Class::Stored,
            SystemLabels::Policy => built_in(key),
        }
    }
}

fn built_in(key: &str) -> Class {
    let row = BUILT_IN.iter().find(|(pattern, _)| matches(pattern, key));
    row.map_or(Class::Stored, |(_, class)| *class)
}

// === impl PolicyRule ===

impl FromStr for PolicyRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (pattern, class) =
            text.rsplit_once('=').ok_or_else(|| RuleError::NoClass(text.to_owned()))?;
        if pattern.is_empty() {
            return Err(RuleError::EmptyPattern);
        }
        Ok(Self { pattern: Pattern(pattern.to_owned()), class: class.parse()? })
    }
}

impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.pattern.0, self.class)
    }
}

// === impl Pattern ===

impl Pattern {
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        matches(&self.0, key)
    }
}

/// Text before the first `*` is a prefix, after the last a suffix; what stands between has to occur
/// in order.
fn matches(pattern: &str, key: &str) -> bool {
    let mut pieces = pattern.split('*');
    let prefix = pieces.next().unwrap_or("");
    let Some(suffix) = pieces.next_back() else { return pattern == key };
    let inner = key.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
    let Some(mut inner) = inner else { return false };
    pieces.all(|piece| {
        let found = inner.find(piece);
        inner = found.map_or(inner, |at| &inner[at + piece.len()..]);
        found.is_some()
    })
}

// === impl Class ===

impl Class {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::PreferLive => "prefer-live",
            Self::Live => "live",
        }
    }
}

impl FromStr for Class {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let all = [Self::Stored, Self::PreferLive, Self::Live];
        let class = all.into_iter().find(|class| class.as_str() == text);
        class.ok_or_else(|| RuleError::Class(text.to_owned()))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
