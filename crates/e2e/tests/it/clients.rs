//! Real clients: what they print, or are answered, must not depend on whose store it is.

mod etcdctl;
mod gateway;
