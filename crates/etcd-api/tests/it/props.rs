//! Properties, one invariant per file.

mod any_bytes_decode_alike;
mod encoding_is_canonical;
