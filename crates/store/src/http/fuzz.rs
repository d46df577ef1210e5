//! A way in for the fuzzer: bodies as the JSON gateway reads and writes them, without a connection.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::Status;

use super::gateway::json;

/// A message with a JSON form.
pub trait JsonMessage: DeserializeOwned + Serialize + Default + PartialEq + Debug {}
impl<M: DeserializeOwned + Serialize + Default + PartialEq + Debug> JsonMessage for M {}

/// Reads the body of a call.
///
/// # Errors
///
/// What the client is told if it is no such message.
pub fn read_body<M: JsonMessage>(text: &[u8]) -> Result<M, Status> {
    json::read(text)
}

/// Writes an answer.
///
/// # Errors
///
/// If the message has no JSON form.
pub fn write_body<M: JsonMessage>(message: &M) -> Result<Vec<u8>, Status> {
    json::write(message)
}
