//! Who this member is among the others, as far as it knows. Read by every request, changed by the
//! threads that look after the role.

use std::sync::Arc;

use arc_swap::ArcSwap;
use journal::{Epoch, Member};

/// What is known of the members.
pub(crate) struct Standing {
    own: u64,
    is_alone: bool,
    state: ArcSwap<State>,
}

#[derive(Clone, Debug)]
struct State {
    term: Epoch,
    /// Whether this member writes under `term`.
    is_holder: bool,
    /// Those that live.
    members: Vec<Member>,
}

// === impl Standing ===

impl Standing {
    /// Of the only member.
    pub(crate) fn alone(own: u64, term: Epoch) -> Self {
        Self::new(own, true, State { term, is_holder: true, members: Vec::new() })
    }

    /// Of a member that knows nobody yet, and follows until it is told otherwise.
    pub(crate) fn among_others(own: &Member) -> Self {
        let members = vec![own.clone()];
        Self::new(own.id, false, State { term: Epoch(0), is_holder: false, members })
    }

    fn new(own: u64, is_alone: bool, state: State) -> Self {
        Self { own, is_alone, state: ArcSwap::from_pointee(state) }
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    pub(crate) fn is_holder(&self) -> bool {
        self.state.load().is_holder
    }

    /// The term under which this member writes, if it does. It never holds one term twice, so that the
    /// same one before and after something means that the role was here all the time.
    pub(crate) fn held(&self) -> Option<Epoch> {
        let state = self.state.load();
        state.is_holder.then_some(state.term)
    }

    /// How often the role was taken.
    pub(crate) fn term(&self) -> Epoch {
        self.state.load().term
    }

    /// The member that writes, if it is known.
    pub(crate) fn leader(&self) -> Option<u64> {
        let state = self.state.load();
        if state.is_holder {
            return Some(self.own);
        }
        state.holder().map(|member| member.id)
    }

    /// The member that writes, if it is another one.
    pub(crate) fn holder(&self) -> Option<Member> {
        let state = self.state.load();
        state.holder().filter(|member| member.id != self.own).cloned()
    }

    pub(crate) fn members(&self) -> Vec<Member> {
        self.state.load().members.clone()
    }

    pub(crate) fn hold(&self, term: Epoch) {
        self.change(|state| State { term, is_holder: true, ..state });
    }

    pub(crate) fn follow(&self, term: Epoch) {
        self.change(|state| State { term, is_holder: false, ..state });
    }

    pub(crate) fn meet(&self, members: &[Member]) {
        self.change(|state| State { members: members.to_vec(), ..state });
    }

    fn change(&self, change: impl Fn(State) -> State) {
        self.state.rcu(|state| Arc::new(change(State::clone(state))));
    }
}

// === impl State ===

impl State {
    fn holder(&self) -> Option<&Member> {
        self.members.iter().find(|member| member.epoch == self.term && self.term != Epoch(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u64, epoch: u64) -> Member {
        Member {
            id,
            name: id.to_string(),
            peer_urls: Vec::new(),
            client_urls: Vec::new(),
            epoch: Epoch(epoch),
            beat: 0,
        }
    }

    #[test]
    fn the_holder_is_who_wrote_under_the_term() {
        let standing = Standing::among_others(&member(1, 0));
        standing.meet(&[member(1, 0), member(2, 3), member(3, 4)]);
        assert_eq!(standing.leader(), None);
        standing.follow(Epoch(4));
        assert_eq!(standing.leader(), Some(3));
        standing.follow(Epoch(5));
        assert_eq!(standing.leader(), None, "the new holder did not tell its address yet");
        assert_eq!(standing.held(), None);
        standing.hold(Epoch(6));
        assert_eq!((standing.leader(), standing.holder()), (Some(1), None));
        assert_eq!(standing.held(), Some(Epoch(6)));
    }

    #[test]
    fn the_only_member_leads() {
        let standing = Standing::alone(7, Epoch(2));
        assert_eq!((standing.leader(), standing.term()), (Some(7), Epoch(2)));
    }
}
