//! Why a node, an instance or a group is what it is, in words for a person. Nothing is decided here,
//! and nothing is told that was not decided on.

mod group;
mod instance;
mod node;

use std::fmt::Write;

use jiff::Timestamp;

use crate::id::{GroupId, InstanceId, NodeName};
use crate::registry::Registry;

/// What to explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Node(NodeName),
    Instance(InstanceId),
    Group(GroupId),
}

/// A heading, and what there is to say by topic.
struct Account {
    text: String,
}

// === impl Registry ===

impl Registry {
    /// `None` if nothing is known of it.
    #[must_use]
    pub fn explain(&self, target: &Target, now: Timestamp) -> Option<String> {
        let account = match target {
            Target::Node(name) => self.explain_node(name, now)?,
            Target::Instance(id) => self.explain_instance(id, now)?,
            Target::Group(id) => self.explain_group(id, now)?,
        };
        Some(account.text)
    }
}

// === impl Account ===

impl Account {
    /// A heading of several parts.
    fn of(parts: &[String]) -> Self {
        Self { text: parts.join("   ") }
    }

    fn say(&mut self, topic: &str, what: &str) {
        write!(self.text, "\n{topic:<8} {what}").expect("text can be written to a string");
    }
}
