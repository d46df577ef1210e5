//! The order of posts: first in, first out for each node, many nodes at once, and what is behind us.
//!
//! An event takes a position when it is read, whether it asks for posts or not. The watermark is the
//! position before the first event that is not done; events that ask for nothing move it too.
//!
//! ```text
//!   read:        101   103   104   107 (bookmark)
//!   posts:       done   –    open   –
//!   watermark:         103
//! ```

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Instant,
};

use super::post::Post;
use crate::core::{names::NodeHash, rv::ResourceVersion};

/// Nodes posted for at the same time.
pub const NODES_IN_FLIGHT_MAX: usize = 32;

/// Posts that wait. When there are as many, no more events are read; the API server keeps them for
/// minutes.
pub const POSTS_BUFFERED_MAX: usize = 10_000;

/// All posts that are not done, and the watermark.
#[derive(Debug, Default)]
pub struct Order {
    lanes: BTreeMap<NodeHash, Lane>,
    /// Nodes whose first post waits for its time, soonest first.
    due: BTreeSet<(Instant, EventNumber, NodeHash)>,
    /// Nodes with a post in flight.
    in_flight: usize,
    buffered: usize,
    /// From the first event that is not done.
    events: VecDeque<Event>,
    first_event: EventNumber,
    watermark: Option<ResourceVersion>,
}

type EventNumber = u64;

/// One node's posts.
#[derive(Debug, Default)]
struct Lane {
    /// The event whose post is in flight.
    in_flight: Option<EventNumber>,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    post: Post,
    event: EventNumber,
    due: Instant,
}

#[derive(Debug)]
struct Event {
    /// Where the watermark goes once this event and all before are done; nowhere for posts that no
    /// event asked for.
    position: Option<ResourceVersion>,
    open: usize,
}

// === impl Order ===

impl Order {
    /// An event was read. Its posts, of whatever nodes, are due at the given times.
    pub fn on_event(&mut self, position: ResourceVersion, posts: Vec<(Post, Instant)>) {
        self.push(Some(position), posts);
    }

    /// Posts are wanted that stand for no event; the watermark waits for them, and stays.
    pub fn on_finding(&mut self, posts: Vec<(Post, Instant)>) {
        self.push(None, posts);
    }

    /// The next post whose time has come and whose turn it is. It is in flight until
    /// [`on_done`](Self::on_done).
    pub fn take(&mut self, now: Instant) -> Option<Post> {
        if self.next_due()? > now {
            return None;
        }
        let (_, event, node) = self.due.pop_first()?;
        let lane = self.lanes.get_mut(&node).expect("who is due has a lane");
        let first = lane.waiting.pop_front().expect("who is due has a post that waits");
        debug_assert_eq!(first.event, event, "the lane's first post is the one that was due");
        lane.in_flight = Some(event);
        self.in_flight += 1;
        self.buffered -= 1;
        Some(first.post)
    }

    /// When [`take`](Self::take) has something to give; never while too many are in flight.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let (due, _, _) = self.due.first()?;
        (self.in_flight < NODES_IN_FLIGHT_MAX).then_some(*due)
    }

    /// The node's post in flight exists on the server.
    pub fn on_done(&mut self, node: &NodeHash) {
        let lane = self.lanes.get_mut(node).expect("what was in flight has a lane");
        let event = lane.in_flight.take().expect("only what is in flight can be done");
        self.in_flight -= 1;
        if let Some(next) = lane.waiting.front() {
            self.due.insert((next.due, next.event, node.clone()));
        } else {
            self.lanes.remove(node);
        }
        let index = usize::try_from(event - self.first_event).expect("events fit in memory");
        self.events[index].open -= 1;
        self.advance();
    }

    #[must_use]
    pub fn is_full(&self) -> bool {
        self.buffered >= POSTS_BUFFERED_MAX
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Whether something of this node is still to be posted.
    #[must_use]
    pub fn has_open(&self, node: &NodeHash) -> bool {
        self.lanes.contains_key(node)
    }

    /// Up to here, every event is posted. It falls only when the server's history went back.
    #[must_use]
    pub fn watermark(&self) -> Option<&ResourceVersion> {
        self.watermark.as_ref()
    }

    fn push(&mut self, position: Option<ResourceVersion>, posts: Vec<(Post, Instant)>) {
        let event = self.begin_event(position, posts.len());
        self.buffered += posts.len();
        for (post, due) in posts {
            let node = post.node.clone();
            let lane = self.lanes.entry(node.clone()).or_default();
            if lane.is_idle() {
                self.due.insert((due, event, node));
            }
            lane.waiting.push_back(Waiting { post, event, due });
        }
        self.advance();
    }

    fn begin_event(&mut self, position: Option<ResourceVersion>, open: usize) -> EventNumber {
        // Of events in a row that ask for nothing only the last position counts; so there are never
        // more events than twice the posts.
        if open == 0
            && let Some(last) = self.events.back_mut()
            && last.open == 0
        {
            last.position = position.or(last.position.take());
        } else {
            self.events.push_back(Event { position, open });
        }
        self.first_event + self.events.len() as EventNumber - 1
    }

    fn advance(&mut self) {
        while let Some(done) = self.events.pop_front_if(|event| event.open == 0) {
            self.first_event += 1;
            if done.position.is_some() {
                self.watermark = done.position;
            }
        }
    }
}

// === impl Lane ===

impl Lane {
    fn is_idle(&self) -> bool {
        self.in_flight.is_none() && self.waiting.is_empty()
    }
}
