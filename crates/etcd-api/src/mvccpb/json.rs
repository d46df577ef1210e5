//! The JSON form of key-values and events, taken from the plain generated types so that it cannot
//! differ from that of the other messages. Owns the conversions; bytes are shared, not copied.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::event::{Event, EventParts};
use super::key_value::{KeyValue, KeyValueParts};
use crate::generated::mvccpb as plain;

// === impl KeyValue ===

impl Serialize for KeyValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        plain::KeyValue::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for KeyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(&plain::KeyValue::deserialize(deserializer)?))
    }
}

impl From<&KeyValue> for plain::KeyValue {
    fn from(kv: &KeyValue) -> Self {
        let parts = kv.parts();
        Self {
            key: kv.key_bytes(),
            create_revision: parts.create_revision,
            mod_revision: parts.mod_revision,
            version: parts.version,
            value: kv.value_bytes(),
            lease: parts.lease,
        }
    }
}

impl From<&plain::KeyValue> for KeyValue {
    fn from(kv: &plain::KeyValue) -> Self {
        Self::new(&KeyValueParts {
            key: &kv.key,
            create_revision: kv.create_revision,
            mod_revision: kv.mod_revision,
            version: kv.version,
            value: &kv.value,
            lease: kv.lease,
        })
    }
}

// === impl Event ===

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.parts();
        let pair = |encoded| plain::KeyValue::from(&self.slice(encoded));
        let event = plain::Event {
            r#type: parts.kind,
            kv: parts.kv.map(pair),
            prev_kv: parts.prev_kv.map(pair),
        };
        event.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let event = plain::Event::deserialize(deserializer)?;
        let kv = event.kv.as_ref().map(KeyValue::from);
        let prev_kv = event.prev_kv.as_ref().map(KeyValue::from);
        let parts = EventParts {
            kind: event.r#type,
            kv: kv.as_ref().map(|kv| &kv.encoded()[..]),
            prev_kv: prev_kv.as_ref().map(|kv| &kv.encoded()[..]),
        };
        Ok(parts.into())
    }
}
