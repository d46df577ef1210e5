//! The code generated from `proto/`, and the only exceptions from the lints that it needs.

#![expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    reason = "prost and tonic write code without regard to our lints"
)]

pub mod wire {
    //! `windlass.task.v1`: what the store keeps, and the service with its messages.
    include!(concat!(env!("OUT_DIR"), "/windlass.task.v1.rs"));
}
