//! The edge with small services behind it, asked over real sockets.

mod access;
mod admission;
mod authority;
mod bad_input;
mod client;
mod encryption;
mod gateway;
mod grpc;
mod health;
mod lifecycle;
mod listening;
mod server;
