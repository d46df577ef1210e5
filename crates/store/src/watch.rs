//! Watches: each is a cursor over the journal.
//!
//! A watch that has seen everything durable is *synced*: the hub hands it each new batch as it
//! comes, encoded once for all watches that want the same. A watch that starts in the past, or
//! whose client reads slower than the store writes, is *behind*: its stream's [`session`] reads
//! [`history`] at the client's pace and joins the hub when it has caught up; the stream's synced
//! watches go on meanwhile. So a slow client costs nobody anything, and memory is bounded by what each
//! stream may have queued, and by the one [piece](history::PIECE_BYTES) of history it hands out.

mod answer;
mod class;
mod follower;
mod history;
mod hub;
mod index;
mod session;

pub(crate) use follower::Follower;
pub(crate) use history::History;
pub(crate) use hub::{Feed, HubThread, hub};
pub(crate) use session::{Session, SessionContext};

/// What a client calls a watch of its stream. It may use one again once that was canceled.
pub(crate) type WatchId = i64;

/// Names a watch within its stream, and no other one ever: what was queued for a watch that is gone
/// is for nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WatchNumber(u64);

/// The id in answers that are about no watch, or about all of a stream.
pub(crate) const NO_WATCH: WatchId = -1;
