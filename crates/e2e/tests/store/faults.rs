//! What goes wrong around a store, and what it must do then.

mod crowds;
mod disk;
mod slow_disk;
