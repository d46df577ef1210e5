//! The core from outside: its tables, and properties of everything that can happen to a node.

mod props;
mod scene;
mod tables;
mod watch;
