//! The decisions of a watcher: what an event means, in which order posts go out, where to go on after
//! a pause, which checkpoints are due. All times are arguments; nothing here waits or asks anybody.
//!
//! | module | decides |
//! |---|---|
//! | [`engine`] | everything below, put together |
//! | [`index`] | what an event means against what is remembered |
//! | [`post`], [`delivery`] | what is told, and what becomes of it on its way |
//! | [`order`] | when it is told, and up to where everything is |
//! | [`resume`] | where to go on |
//! | [`relist`] | what to tell when events were missed |
//! | [`checkpoints`], [`queued`], [`sweep`] | what is kept of living nodes, and what becomes of it |

pub mod checkpoints;
pub mod delivery;
pub mod engine;
pub mod index;
#[cfg(test)]
mod notation;
pub mod order;
pub mod post;
pub mod queued;
pub mod recent;
pub mod relist;
pub mod resume;
pub mod sweep;
