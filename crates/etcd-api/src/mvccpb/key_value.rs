//! `mvccpb.KeyValue`, kept in its encoded form. Owns its invariant (the bytes are canonical) and
//! the reading of its fields; never interprets them.

use std::fmt;

use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};

use super::canonical::{self, Reader};

const KEY: u32 = 1;
const CREATE_REVISION: u32 = 2;
const MOD_REVISION: u32 = 3;
const VERSION: u32 = 4;
const VALUE: u32 = 5;
const LEASE: u32 = 6;

/// One version of one key, already encoded.
///
/// Cloning shares the buffer, and putting it into a response copies it once, as a whole. The bytes
/// are always the canonical encoding, so equal key-values have equal bytes.
///
/// ```
/// use etcd_api::mvccpb::{KeyValue, KeyValueParts};
///
/// let kv = KeyValue::new(&KeyValueParts { key: b"a", mod_revision: 5, ..Default::default() });
/// assert_eq!(&kv.encoded()[..], [0x0a, 1, b'a', 0x18, 5]);
/// assert_eq!(kv.mod_revision(), 5);
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct KeyValue {
    encoded: Bytes,
}

/// The fields of a [`KeyValue`], borrowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyValueParts<'a> {
    pub key: &'a [u8],
    pub create_revision: i64,
    pub mod_revision: i64,
    pub version: i64,
    pub value: &'a [u8],
    pub lease: i64,
}

// === impl KeyValue ===

impl KeyValue {
    #[must_use]
    pub fn new(parts: &KeyValueParts<'_>) -> Self {
        Self { encoded: parts.encode() }
    }

    /// What a delete event shows: the key and the revision that deleted it.
    #[must_use]
    pub fn tombstone(key: &[u8], mod_revision: i64) -> Self {
        Self::new(&KeyValueParts { key, mod_revision, ..KeyValueParts::default() })
    }

    /// Takes bytes that this type once gave out through [`encoded`](Self::encoded).
    ///
    /// # Panics
    ///
    /// The accessors panic if the bytes are anything else; a debug build panics here.
    #[must_use]
    pub fn from_encoded(encoded: Bytes) -> Self {
        debug_assert!(KeyValueParts::parse(&encoded).is_some(), "not a canonical KeyValue");
        Self { encoded }
    }

    /// Takes any encoding of the message. Canonical bytes are kept as they are, others rewritten.
    ///
    /// # Errors
    ///
    /// If the bytes are no protobuf message, or a known field has the wrong wire type.
    pub fn try_from_encoded(encoded: Bytes) -> Result<Self, DecodeError> {
        if KeyValueParts::parse(&encoded).is_some() {
            return Ok(Self { encoded });
        }
        Self::decode(encoded)
    }

    #[must_use]
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// All fields, in one pass over the encoding.
    #[must_use]
    #[inline]
    pub fn parts(&self) -> KeyValueParts<'_> {
        KeyValueParts::parse(&self.encoded).expect("a KeyValue holds canonical bytes")
    }

    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.parts().key
    }

    /// The key as a slice of the shared buffer.
    #[must_use]
    pub fn key_bytes(&self) -> Bytes {
        self.encoded.slice_ref(self.key())
    }

    #[must_use]
    pub fn create_revision(&self) -> i64 {
        self.parts().create_revision
    }

    #[must_use]
    pub fn mod_revision(&self) -> i64 {
        self.parts().mod_revision
    }

    #[must_use]
    pub fn version(&self) -> i64 {
        self.parts().version
    }

    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.parts().value
    }

    /// The value as a slice of the shared buffer.
    #[must_use]
    pub fn value_bytes(&self) -> Bytes {
        self.encoded.slice_ref(self.value())
    }

    #[must_use]
    pub fn lease(&self) -> i64 {
        self.parts().lease
    }

    /// A put counts its version from 1, so 0 is a deletion.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        self.version() == 0
    }

    /// For `keys_only`: the same pair with an empty value.
    #[must_use]
    pub fn without_value(&self) -> Self {
        Self::new(&KeyValueParts { value: &[], ..self.parts() })
    }
}

impl fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts();
        f.debug_struct("KeyValue")
            .field("key", &self.key_bytes())
            .field("create_revision", &parts.create_revision)
            .field("mod_revision", &parts.mod_revision)
            .field("version", &parts.version)
            .field("value", &self.value_bytes())
            .field("lease", &parts.lease)
            .finish()
    }
}

impl Message for KeyValue {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.encoded);
    }

    fn encoded_len(&self) -> usize {
        self.encoded.len()
    }

    /// Rewrites the whole message for each field, which keeps it canonical whatever order the
    /// fields come in. Only clients decode key-values one field at a time.
    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        let mut bytes = Bytes::new();
        let mut parts = self.parts();
        match tag {
            KEY | VALUE => encoding::bytes::merge(wire_type, &mut bytes, buf, ctx)?,
            CREATE_REVISION => {
                encoding::int64::merge(wire_type, &mut parts.create_revision, buf, ctx)?;
            }
            MOD_REVISION => encoding::int64::merge(wire_type, &mut parts.mod_revision, buf, ctx)?,
            VERSION => encoding::int64::merge(wire_type, &mut parts.version, buf, ctx)?,
            LEASE => encoding::int64::merge(wire_type, &mut parts.lease, buf, ctx)?,
            _ => return encoding::skip_field(wire_type, tag, buf, ctx),
        }
        match tag {
            KEY => parts.key = &bytes,
            VALUE => parts.value = &bytes,
            _ => {}
        }
        self.encoded = parts.encode();
        Ok(())
    }

    fn clear(&mut self) {
        self.encoded = Bytes::new();
    }
}

// === impl KeyValueParts ===

impl<'a> KeyValueParts<'a> {
    /// `None` unless the bytes are the canonical encoding of a `KeyValue`.
    #[inline]
    pub(super) fn parse(encoded: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(encoded);
        let parts = Self {
            key: reader.bytes(KEY)?,
            create_revision: reader.int64(CREATE_REVISION)?,
            mod_revision: reader.int64(MOD_REVISION)?,
            version: reader.int64(VERSION)?,
            value: reader.bytes(VALUE)?,
            lease: reader.int64(LEASE)?,
        };
        reader.is_at_end().then_some(parts)
    }

    fn encode(&self) -> Bytes {
        let mut buf = Vec::with_capacity(self.encoded_len());
        canonical::put_bytes(KEY, self.key, &mut buf);
        canonical::put_int64(CREATE_REVISION, self.create_revision, &mut buf);
        canonical::put_int64(MOD_REVISION, self.mod_revision, &mut buf);
        canonical::put_int64(VERSION, self.version, &mut buf);
        canonical::put_bytes(VALUE, self.value, &mut buf);
        canonical::put_int64(LEASE, self.lease, &mut buf);
        buf.into()
    }

    fn encoded_len(&self) -> usize {
        canonical::bytes_len(self.key)
            + canonical::int64_len(self.create_revision)
            + canonical::int64_len(self.mod_revision)
            + canonical::int64_len(self.version)
            + canonical::bytes_len(self.value)
            + canonical::int64_len(self.lease)
    }
}
