//! Names of what the registry tells apart, each its own type. Opaque: nothing is read out of them but
//! the last segment of an instance's id.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Defines a text with a meaning.
macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

name_type! {
    /// Nodes that are resized together, by the provider's name for them.
    GroupId
}

name_type! {
    /// A Node object's name.
    NodeName
}

name_type! {
    /// A machine, by the provider's name for it: what a Node calls its `providerID`.
    InstanceId
}

// === impl InstanceId ===

impl InstanceId {
    /// What many clouds end a machine's id with: the name it also registers under.
    #[must_use]
    pub fn last_segment(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}
