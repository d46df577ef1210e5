//! `mvccpb.Event`, kept in its encoded form, so that one change is encoded once for all watchers
//! that are to see it. Owns the reading of its fields; never decides who sees it.

use std::fmt;

use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};

use super::canonical::{self, Reader};
use super::key_value::KeyValue;
pub use crate::generated::mvccpb::event::EventType;

const TYPE: u32 = 1;
const KV: u32 = 2;
const PREV_KV: u32 = 3;

/// One change of one key, already encoded.
///
/// ```
/// use etcd_api::mvccpb::{Event, EventType, KeyValue};
///
/// let event = Event::new(EventType::Delete, &KeyValue::tombstone(b"a", 5), None);
/// assert_eq!(event.kv().mod_revision(), 5);
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Event {
    encoded: Bytes,
}

/// The fields of an [`Event`], borrowed; the pairs are still encoded, and canonical.
pub(super) struct EventParts<'a> {
    /// As on the wire, where it may be a kind this version does not know.
    pub(super) kind: i32,
    pub(super) kv: Option<&'a [u8]>,
    pub(super) prev_kv: Option<&'a [u8]>,
}

// === impl Event ===

impl Event {
    #[must_use]
    pub fn new(kind: EventType, kv: &KeyValue, prev_kv: Option<&KeyValue>) -> Self {
        let parts = EventParts {
            kind: kind.into(),
            kv: Some(kv.encoded()),
            prev_kv: prev_kv.map(|prev| &prev.encoded()[..]),
        };
        parts.into()
    }

    #[must_use]
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// A kind that this version does not know reads as [`EventType::Put`], protobuf's default.
    #[must_use]
    pub fn kind(&self) -> EventType {
        EventType::try_from(self.parts().kind).unwrap_or_default()
    }

    /// The pair after the change, a slice of the shared buffer.
    #[must_use]
    pub fn kv(&self) -> KeyValue {
        self.parts().kv.map(|kv| self.slice(kv)).unwrap_or_default()
    }

    /// The pair before the change, a slice of the shared buffer.
    #[must_use]
    pub fn prev_kv(&self) -> Option<KeyValue> {
        self.parts().prev_kv.map(|kv| self.slice(kv))
    }

    pub(super) fn parts(&self) -> EventParts<'_> {
        EventParts::parse(&self.encoded).expect("an Event holds canonical bytes")
    }

    /// A pair that comes twice is merged field by field, as protobuf demands of messages.
    fn merge_pair(
        &self,
        current: Option<&[u8]>,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<KeyValue, DecodeError> {
        let mut pair = current.map(|kv| self.slice(kv)).unwrap_or_default();
        encoding::message::merge(wire_type, &mut pair, buf, ctx)?;
        Ok(pair)
    }

    pub(super) fn slice(&self, encoded: &[u8]) -> KeyValue {
        KeyValue::from_encoded(self.encoded.slice_ref(encoded))
    }
}

impl From<EventParts<'_>> for Event {
    fn from(parts: EventParts<'_>) -> Self {
        Self { encoded: parts.encode() }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("kind", &self.kind())
            .field("kv", &self.kv())
            .field("prev_kv", &self.prev_kv())
            .finish()
    }
}

impl Message for Event {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.encoded);
    }

    fn encoded_len(&self) -> usize {
        self.encoded.len()
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        let pair;
        let mut parts = self.parts();
        match tag {
            TYPE => encoding::int32::merge(wire_type, &mut parts.kind, buf, ctx)?,
            KV => {
                pair = self.merge_pair(parts.kv, wire_type, buf, ctx)?;
                parts.kv = Some(pair.encoded());
            }
            PREV_KV => {
                pair = self.merge_pair(parts.prev_kv, wire_type, buf, ctx)?;
                parts.prev_kv = Some(pair.encoded());
            }
            _ => return encoding::skip_field(wire_type, tag, buf, ctx),
        }
        self.encoded = parts.encode();
        Ok(())
    }

    fn clear(&mut self) {
        self.encoded = Bytes::new();
    }
}

// === impl EventParts ===

impl<'a> EventParts<'a> {
    /// `None` unless the bytes are the canonical encoding of an `Event`.
    /// The pairs are not looked into: they come from a `KeyValue`.
    fn parse(encoded: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(encoded);
        let parts = Self {
            kind: reader.int32(TYPE)?,
            kv: reader.message(KV)?,
            prev_kv: reader.message(PREV_KV)?,
        };
        reader.is_at_end().then_some(parts)
    }

    fn encode(&self) -> Bytes {
        let mut buf = Vec::with_capacity(self.encoded_len());
        canonical::put_int64(TYPE, self.kind.into(), &mut buf);
        for (tag, pair) in [(KV, self.kv), (PREV_KV, self.prev_kv)] {
            if let Some(pair) = pair {
                canonical::put_message(tag, pair, &mut buf);
            }
        }
        buf.into()
    }

    fn encoded_len(&self) -> usize {
        canonical::int64_len(self.kind.into())
            + self.kv.map_or(0, canonical::message_len)
            + self.prev_kv.map_or(0, canonical::message_len)
    }
}
