//! Messages from and to JSON text. Owns what is said about text that is no message.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;
use tonic::Status;

/// What the beginning of some text is.
pub(super) enum First<M> {
    /// A message that takes this many bytes.
    Message {
        message: M,
        length: usize,
    },
    /// White space.
    Nothing,
    /// A message that may become whole when more comes.
    Partial,
    Malformed(serde_json::Error),
}

/// Reads the first message of a text that may hold several.
pub(super) fn first<M: DeserializeOwned>(text: &[u8]) -> First<M> {
    let mut messages = serde_json::Deserializer::from_slice(text).into_iter();
    match messages.next() {
        None => First::Nothing,
        Some(Ok(message)) => First::Message { message, length: messages.byte_offset() },
        Some(Err(error)) if error.is_eof() => First::Partial,
        Some(Err(error)) => relaxed(text).unwrap_or(First::Malformed(error)),
    }
}

/// What etcd's JSON library takes and ours does not: a field that is null counts as absent, and a
/// whole number may be written as `1.0`. Only text that would be refused is read a second time.
fn relaxed<M: DeserializeOwned>(text: &[u8]) -> Option<First<M>> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter();
    let mut value = values.next()?.ok()?;
    let length = values.byte_offset();
    // Text that is refused for another reason stays refused: as a value it has lost what was given
    // twice.
    if !relax(&mut value) {
        return None;
    }
    let message = serde_json::from_value(value).ok()?;
    Some(First::Message { message, length })
}

/// Writes a value as our library wants it; tells whether there was anything to write.
fn relax(value: &mut Value) -> bool {
    match value {
        Value::Object(fields) => {
            let before = fields.len();
            fields.retain(|_, field| !field.is_null());
            let is_shorter = fields.len() < before;
            relax_all(fields.values_mut()) || is_shorter
        }
        Value::Array(values) => relax_all(values),
        Value::Number(number) => {
            match number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
                Some(whole) => {
                    *number = whole.into();
                    true
                }
                None => false,
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

fn relax_all<'a>(values: impl IntoIterator<Item = &'a mut Value>) -> bool {
    let mut is_relaxed = false;
    for value in values {
        is_relaxed |= relax(value);
    }
    is_relaxed
}

/// A number without fraction that a double holds exactly.
fn whole(number: f64) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is within what both types hold exactly"
    )]
    let whole = (number.fract() == 0.0 && number.abs() <= EXACT_MAX).then_some(number as i64);
    whole
}

/// Reads the only message of a whole body. An empty body is the message without fields.
pub(in crate::http) fn read<M: DeserializeOwned + Default>(text: &[u8]) -> Result<M, Status> {
    match first(text) {
        First::Message { message, .. } => Ok(message),
        First::Nothing => Ok(M::default()),
        First::Partial => Err(Status::invalid_argument("unexpected EOF")),
        First::Malformed(error) => Err(Status::invalid_argument(describe::<M>(&error, text))),
    }
}

pub(in crate::http) fn write(message: &impl Serialize) -> Result<Vec<u8>, Status> {
    serde_json::to_vec(message).map_err(|error| Status::internal(error.to_string()))
}

/// Says it as etcd's JSON library would, as far as ours knows the same.
fn describe<M: DeserializeOwned>(error: &serde_json::Error, text: &[u8]) -> String {
    let (line, column) = (error.line(), error.column());
    let full = error.to_string();
    let what = full.split(" at line ").next().unwrap_or(&full).replace('`', "\"");
    match (error.classify(), character_at(text, line, column)) {
        (Category::Data, _) => match field::<M>(text) {
            Some(field) => {
                format!("proto: (line {line}:{column}): invalid value for field {field}: {what}")
            }
            None => format!("proto: (line {line}:{column}): {what}"),
        },
        (_, Some(found)) if what == "expected value" => {
            format!("invalid character {found:?} looking for beginning of value")
        }
        _ => format!("proto: syntax error (line {line}:{column}): {what}"),
    }
}

/// Which field has the wrong value. Reads the text once more, which only malformed text costs.
fn field<M: DeserializeOwned>(text: &[u8]) -> Option<String> {
    let mut text = serde_json::Deserializer::from_slice(text);
    let error = serde_path_to_error::deserialize::<_, M>(&mut text).err()?;
    let has_field = error.path().iter().next().is_some();
    has_field.then(|| error.path().to_string())
}

fn character_at(text: &[u8], line: usize, column: usize) -> Option<char> {
    let line = text.split(|byte| *byte == b'\n').nth(line.checked_sub(1)?)?;
    line.get(column.checked_sub(1)?).map(|byte| char::from(*byte))
}
