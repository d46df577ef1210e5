//! Real clients: what they print, or are answered, must not depend on whose store it is.

mod bad_input;
mod blocking;
mod etcdctl;
mod gateway;
mod libraries;
mod no_space;
mod streams;
mod tls;
