//! One look at a Lease.

use std::time::Duration;

use jiff::Timestamp;

/// What one look at a Lease tells. Two equal sightings mean that nobody has written in between,
/// since every write changes the resource version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Who holds it; nobody once it was given back.
    pub holder: Option<String>,
    /// When the holder says it last renewed. Compared for equality only: it is the holder's clock.
    pub renew_time: Option<Timestamp>,
    pub resource_version: String,
    /// How long the holder asks others to wait for its next word.
    pub stated_duration: Option<Duration>,
}
