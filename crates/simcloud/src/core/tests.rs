//! Stories of the cloud, one per fault. A story is a script of calls at times, and what they show.

mod faults;
mod kubelet;
mod sizes;
mod story;
