//! What people ask about rings. Reads, decides with the core as the sharder does, returns data; prints
//! nothing and writes nothing.
//!
//! | module | answers |
//! |---|---|
//! | [`status`] | who has how much, in which state, and what is on its way |
//! | [`explain`] | why one object is where it is, and what it waits for |
//! | [`simulate`] | what would move if instances joined, left or had another weight |
//!
//! A sharder tells silence by its own eyes. A command looks once, so it goes by the time that Leases
//! say they were renewed; clocks that differ by seconds make it differ from the sharder by seconds.

mod error;
pub mod explain;
mod places;
pub mod simulate;
pub mod status;
#[cfg(test)]
mod tests;
mod view;

use jiff::Timestamp;
use kube::Client;
use kubekit::lease::WallClock;

pub use error::Error;
use view::View;

use crate::kubernetes::{Meaning, Ring, Rings};

pub struct Options {
    pub client: Client,
    /// The sharder's namespace.
    pub home: String,
    pub clock: WallClock,
}

/// A cluster, seen by a person.
pub struct Admin {
    client: Client,
    rings: Rings,
    home: String,
    clock: WallClock,
}

// === impl Admin ===

impl Admin {
    /// Talks to nobody yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let Options { client, home, clock } = options;
        Self { rings: Rings::new(client.clone()), client, home, clock }
    }

    /// The Ring, which must be there and readable.
    pub async fn ring(&self, name: &str) -> Result<Ring, Error> {
        let ring = self.rings.get(name).await?;
        ring.ok_or_else(|| Error::NoRing { ring: name.to_owned() })
    }

    /// All Rings; one that cannot be read fails the command, for what it shards is unknown.
    async fn all_rings(&self) -> Result<Vec<Ring>, Error> {
        let (stored, _) = self.rings.list().await.map_err(|error| match error.meaning() {
            Meaning::Gone => Error::NotInstalled { source: error },
            _ => error.into(),
        })?;
        let read = stored.into_iter().map(|stored| {
            let ring = stored.metadata.name.clone().unwrap_or_default();
            Ring::read(stored).map_err(|source| Error::Ring { ring, source })
        });
        read.collect()
    }

    async fn view(&self, ring: Ring) -> Result<View, Error> {
        View::read(&self.client, ring, self.now()).await
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}
