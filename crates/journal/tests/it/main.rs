//! The embedded journal on real files.

mod check;
mod conformance;
mod crash;
mod damage;
mod disk;
mod faults;
mod folder;
mod image;
mod story;
