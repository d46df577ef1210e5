//! The state as bytes: JSON with a version and a checksum, small enough for a ConfigMap. What is left
//! out to make it small only makes us later.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::config::Config;
use crate::registry::Registry;
use crate::state::State;
use crate::time::later;
use crate::view::View;

/// An object in etcd is at most 1.5 MiB, a ConfigMap 1 MiB, and others write on it too.
pub const STATE_BYTES_MAX: usize = 700 << 10;

/// What version and checksum take.
const ENVELOPE_BYTES_MAX: usize = 64;

/// What one more intent may take, whatever the names in it.
const INTENT_BYTES_MAX: usize = 4 << 10;

/// The one version there is.
const VERSION: u32 = 1;

/// A state from further ahead was written by a clock that cannot be waited for.
const AHEAD_MAX: Duration = Duration::from_mins(5);

/// Why a saved state is not taken. All of these mean to rebuild.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("the saved state is not one")]
    Envelope(#[source] serde_json::Error),
    #[error("the saved state has version {0}, and {VERSION} is the newest known")]
    Version(u32),
    #[error("the saved state does not match its checksum")]
    Checksum,
    #[error("the saved state cannot be read")]
    State(#[source] serde_json::Error),
    #[error("the saved state is of {saved_at}, which is ahead of the clock")]
    Ahead { saved_at: Timestamp },
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    version: u32,
    checksum: String,
    state: T,
}

// === impl Registry ===

impl Registry {
    /// Goes on where the saved registry was.
    ///
    /// # Errors
    ///
    /// If the bytes are not a state that can be gone on with.
    pub fn restore(config: Config, bytes: &[u8], now: Timestamp) -> Result<Self, RestoreError> {
        let envelope: Envelope<&RawValue> =
            serde_json::from_slice(bytes).map_err(RestoreError::Envelope)?;
        if envelope.version != VERSION {
            return Err(RestoreError::Version(envelope.version));
        }
        let text = envelope.state.get();
        if checksum(text) != envelope.checksum {
            return Err(RestoreError::Checksum);
        }
        let state: State = serde_json::from_str(text).map_err(RestoreError::State)?;
        match state.observed_at.filter(|at| *at > later(now, AHEAD_MAX)) {
            Some(saved_at) => Err(RestoreError::Ahead { saved_at }),
            None => Ok(Self { config, state, view: View::default() }),
        }
    }

    /// Everything that must outlive a restart. Equal registries give equal bytes.
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        let bytes_max = STATE_BYTES_MAX - ENVELOPE_BYTES_MAX;
        let text = encode(&self.state);
        let fits = text.len() <= bytes_max;
        seal(if fits { text } else { encode(&trimmed(&self.state, bytes_max)) })
    }

    /// Tells whether what is remembered has changed, apart from when somebody last looked. What is
    /// written only on a change goes by it.
    #[must_use]
    pub fn fingerprint(&self) -> u32 {
        let state = State { observed_at: None, ..self.state.clone() };
        crc32c::crc32c(encode(&state).as_bytes())
    }
}

/// Whether one more intent would make a state too large, with all left out that can be.
pub(crate) fn is_full(state: &State) -> bool {
    let essential = State {
        groups: state.groups.clone(),
        deletions: state.deletions.clone(),
        ..State::default()
    };
    encode(&essential).len() > STATE_BYTES_MAX - ENVELOPE_BYTES_MAX - INTENT_BYTES_MAX
}

/// A state without flaps, then without the newest unneeded times, then without the newest nodes and
/// instances: what is not remembered starts anew, and so comes later.
fn trimmed(state: &State, bytes_max: usize) -> State {
    let mut state = state.clone();
    for node in state.nodes.values_mut() {
        node.flaps.clear();
        node.history.clear();
    }
    let excess = |state: &State| encode(state).len().saturating_sub(bytes_max);
    let surplus = excess(&state);
    drop_newest(&mut state.unneeded, surplus, |since| *since);
    let surplus = excess(&state);
    drop_newest(&mut state.nodes, surplus, |node| node.since);
    let surplus = excess(&state);
    drop_newest(&mut state.instances, surplus, |instance| instance.first_listed);
    state
}

/// Takes the newest entries out until so many bytes are saved.
fn drop_newest<K, V>(map: &mut BTreeMap<K, V>, bytes: usize, since: fn(&V) -> Timestamp)
where
    K: Ord + Clone + Serialize,
    V: Serialize,
{
    let mut keys: Vec<K> = map.keys().cloned().collect();
    keys.sort_by_key(|key| Reverse(map.get(key).map(since)));
    let mut saved = 0;
    for key in keys {
        if saved >= bytes {
            return;
        }
        let value = map.remove(&key);
        // With the colon and the comma.
        saved += encode(&key).len() + value.map_or(0, |value| encode(&value).len()) + 2;
    }
}

fn encode(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("keys are text and values are finite")
}

fn seal(text: String) -> Vec<u8> {
    let checksum = checksum(&text);
    let state = RawValue::from_string(text).expect("what was encoded is JSON");
    encode(&Envelope { version: VERSION, checksum, state }).into_bytes()
}

fn checksum(text: &str) -> String {
    format!("{:08x}", crc32c::crc32c(text.as_bytes()))
}
