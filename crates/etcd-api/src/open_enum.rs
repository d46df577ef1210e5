//! Enums in JSON as etcd's gateway has them: by name or by number, where a number is kept even if it
//! has no name, and a name that nobody knows counts as not given.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

/// The number of an `E`, absent if it was given by an unknown name. The build script makes the
/// generated code read and write every enum through it.
pub(crate) struct Open<E> {
    pub(crate) number: Option<i32>,
    of: PhantomData<E>,
}

struct NameOrNumber<E>(PhantomData<E>);

// === impl Open ===

impl<E> From<i32> for Open<E> {
    fn from(number: i32) -> Self {
        Self { number: Some(number), of: PhantomData }
    }
}

impl<E: Serialize + TryFrom<i32>> Serialize for Open<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = self.number.unwrap_or_default();
        match E::try_from(number) {
            Ok(named) => named.serialize(serializer),
            Err(_nameless) => serializer.serialize_i32(number),
        }
    }
}

impl<'de, E> Deserialize<'de> for Open<E>
where
    E: for<'name> Deserialize<'name> + Into<i32>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = deserializer.deserialize_any(NameOrNumber(PhantomData::<E>))?;
        Ok(Self { number, of: PhantomData })
    }
}

// === impl NameOrNumber ===

impl<E> Visitor<'_> for NameOrNumber<E>
where
    E: for<'name> Deserialize<'name> + Into<i32>,
{
    type Value = Option<i32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or a 32-bit number")
    }

    fn visit_i64<F: Error>(self, number: i64) -> Result<Self::Value, F> {
        let narrow = i32::try_from(number).ok();
        narrow.map(Some).ok_or_else(|| F::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_u64<F: Error>(self, number: u64) -> Result<Self::Value, F> {
        let narrow = i32::try_from(number).ok();
        narrow.map(Some).ok_or_else(|| F::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_str<F: Error>(self, name: &str) -> Result<Self::Value, F> {
        let named = E::deserialize(StrDeserializer::<serde::de::value::Error>::new(name));
        Ok(named.ok().map(Into::into))
    }
}
