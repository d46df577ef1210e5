//! The state in the cluster: read when a term begins, written before every call to the provider and
//! when something has changed, and only over what this term has read or written itself.

use jiff::{SignedDuration, Timestamp};
use registry::{Config, Registry};

use crate::cluster::{Cluster, Error, State};
use crate::core::Memory;

/// When nothing else changes, whoever comes after us still has to know that somebody looked.
const REFRESH_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// Where the state of one term stands.
#[derive(Debug)]
pub(crate) struct Keeper {
    version: Option<String>,
    /// What was last written, and when.
    written: Option<(Print, Timestamp)>,
    /// Nothing is written at all.
    is_idle: bool,
}

/// Tells whether something has changed.
type Print = (u32, Vec<u8>);

/// What one term goes on with.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) keeper: Keeper,
    pub(crate) registry: Registry,
    pub(crate) memory: Memory,
    pub(crate) origin: Origin,
}

/// How a registry came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Restored,
    /// There was no state, or none that could be gone on with, and why.
    Rebuilt(String),
}

// === impl Keeper ===

impl Keeper {
    /// For who does not write.
    pub(crate) fn idle() -> Self {
        Self { version: None, written: None, is_idle: true }
    }

    /// What to go on with.
    pub(crate) async fn open(
        cluster: &impl Cluster,
        config: Config,
        now: Timestamp,
    ) -> Result<Opened, Error> {
        let saved = cluster.read_state().await?;
        let version = saved.as_ref().map(|saved| saved.version.clone());
        let keeper = Self { version, written: None, is_idle: false };
        let state = saved.map(|saved| saved.state);
        let (registry, origin) = match &state {
            None => {
                let why = "there is no saved state".to_owned();
                (Registry::rebuild(config), Origin::Rebuilt(why))
            }
            Some(state) => {
                match Registry::restore(config.clone(), state.registry.as_bytes(), now) {
                    Ok(registry) => (registry, Origin::Restored),
                    Err(error) => (Registry::rebuild(config), Origin::Rebuilt(error.to_string())),
                }
            }
        };
        let memory = match (&state, &origin) {
            (Some(state), Origin::Restored) => remembered(state, now),
            _ => Memory::lost(now),
        };
        Ok(Opened { keeper, registry, memory, origin })
    }

    /// Writes if anything has changed.
    pub(crate) async fn keep(
        &mut self,
        cluster: &impl Cluster,
        (registry, memory): (&Registry, &Memory),
        now: Timestamp,
    ) -> Result<(), Error> {
        let print = print(registry, memory);
        let is_fresh = |at: Timestamp| now.duration_since(at) < REFRESH_AFTER;
        let is_written =
            self.written.as_ref().is_some_and(|(last, at)| *last == print && is_fresh(*at));
        if is_written { Ok(()) } else { self.write(cluster, (registry, memory), now).await }
    }

    /// Writes, whatever was written before: who is no longer the leader learns of it here.
    pub(crate) async fn write(
        &mut self,
        cluster: &impl Cluster,
        (registry, memory): (&Registry, &Memory),
        now: Timestamp,
    ) -> Result<(), Error> {
        if self.is_idle {
            return Ok(());
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a state is JSON");
        let state = State { registry: text(registry.save()), plans: text(memory.save()) };
        self.version = Some(cluster.write_state(&state, self.version.as_deref()).await?);
        self.written = Some((print(registry, memory), now));
        Ok(())
    }
}

/// What cannot be read is lost, which only makes us later.
fn remembered(state: &State, now: Timestamp) -> Memory {
    Memory::restore(state.plans.as_bytes()).unwrap_or_else(|error| {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(error, "every cooldown is taken for begun");
        Memory::lost(now)
    })
}

fn print(registry: &Registry, memory: &Memory) -> Print {
    (registry.fingerprint(), memory.save())
}
