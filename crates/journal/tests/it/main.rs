//! The embedded journal on real files.

mod conformance;
