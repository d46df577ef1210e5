//! What the API of a node can be told: its bounds, and how it is known to other nodes.

use crate::store::Tls;

/// How a service behaves.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub bounds: Bounds,
    /// What other nodes know this one by when it asks them for a log.
    pub identity: Option<Tls>,
}

/// How much is served at once. A bound that is reached is a refusal, not a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Queued tasks in the whole cluster.
    pub queued_max: usize,
    pub message_bytes_max: usize,
    pub waiters_max: usize,
    pub watchers_max: usize,
    pub followers_max: usize,
}

/// A bound that no service can work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}; at least {min} is needed, and at most {max} is allowed")]
pub struct BoundsError {
    pub name: &'static str,
    pub value: usize,
    pub min: usize,
    pub max: usize,
}

/// A task must fit into a message.
const MESSAGE_BYTES_MIN: usize = 128 << 10;
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// More than a machine has connections for.
const SERVED_MAX: usize = 1 << 20;
const QUEUED_MAX: usize = 10_000_000;

// === impl Bounds ===

impl Bounds {
    pub fn validate(&self) -> Result<(), BoundsError> {
        for (name, value, min, max) in [
            ("queued_max", self.queued_max, 1, QUEUED_MAX),
            ("message_bytes_max", self.message_bytes_max, MESSAGE_BYTES_MIN, MESSAGE_BYTES_MAX),
            ("waiters_max", self.waiters_max, 1, SERVED_MAX),
            ("watchers_max", self.watchers_max, 1, SERVED_MAX),
            ("followers_max", self.followers_max, 1, SERVED_MAX),
        ] {
            if !(min..=max).contains(&value) {
                return Err(BoundsError { name, value, min, max });
            }
        }
        Ok(())
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            queued_max: 100_000,
            message_bytes_max: 4 << 20,
            waiters_max: 1000,
            watchers_max: 256,
            followers_max: 256,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_bounded() {
        assert_eq!(Bounds::default().validate(), Ok(()));
        let none = Bounds { waiters_max: 0, ..Bounds::default() };
        assert_eq!(none.validate().map_err(|error| error.name), Err("waiters_max"));
        let tiny = Bounds { message_bytes_max: 1, ..Bounds::default() };
        assert_eq!(tiny.validate().map_err(|error| error.name), Err("message_bytes_max"));
    }
}
