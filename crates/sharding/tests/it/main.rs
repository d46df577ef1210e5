//! The core from outside: properties of partitions, the ring of the Go project, and whole clusters in
//! virtual time.

mod go_ring;
mod partitions;
mod sim;
