//! What compactions made unreadable and their holder may not have given up. Should it die over that,
//! the next one does. Only remembers.

use mvcc::{Position, Revision};

/// By compaction, in order. The journal says up to which all is given up, so that this is as much as
/// its holder has yet to do, and what the newest compaction found.
#[derive(Debug, Default)]
pub(super) struct Leftovers(Vec<(Revision, Vec<Position>)>);

// === impl Leftovers ===

impl Leftovers {
    pub(super) fn add(&mut self, compacted: Revision, dead: Vec<Position>) {
        if !dead.is_empty() {
            self.0.push((compacted, dead));
        }
    }

    /// The compactions up to this one are done with.
    pub(super) fn on_given_up(&mut self, to: Revision) {
        self.0.retain(|(compacted, _)| *compacted > to);
    }

    /// All of it, in the order of compactions.
    pub(super) fn take(&mut self) -> Vec<Position> {
        self.0.drain(..).flat_map(|(_, dead)| dead).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_to_be_given_up_is_kept() {
        let at = |revision| Position::new(Revision(revision), 0);
        let mut leftovers = Leftovers::default();
        leftovers.add(Revision(5), vec![at(2)]);
        leftovers.add(Revision(7), Vec::new());
        leftovers.add(Revision(9), vec![at(3), at(4)]);
        leftovers.on_given_up(Revision(4));
        leftovers.add(Revision(12), vec![at(6)]);
        leftovers.on_given_up(Revision(5));
        assert_eq!(leftovers.take(), [at(3), at(4), at(6)]);
        assert_eq!(leftovers.take(), []);
    }
}
