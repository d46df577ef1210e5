//! What every journal must do, as tests: one function per obligation of [`Journal`],
//! and random [`history`] against a naive model.
//!
//! An implementation provides a [`Subject`] and calls [`conformance!`](crate::conformance), which
//! makes a test of each. Functions panic with what was wrong. Obligation 7 (damage is loud) has no
//! function here: how a medium is damaged only its own journal can say.

pub mod history;
mod obligations;
mod sample;

pub use obligations::*;
pub use sample::{Dice, put, record, tombstone};

use crate::Journal;

/// Makes journals of one kind, in one place that outlives each of them.
pub trait Subject {
    type Journal: Journal;

    /// Opens what is there; the first time, an empty journal.
    fn open(&mut self) -> Self::Journal;

    /// Ends a journal the way a killed process does: nothing is flushed, nobody says goodbye.
    fn kill(&mut self, journal: Self::Journal);

    fn reopen(&mut self, journal: Self::Journal) -> Self::Journal {
        self.kill(journal);
        self.open()
    }
}

/// Makes a test of every obligation. The argument is an expression for a fresh [`Subject`].
///
/// For harnesses of another kind, `conformance!(cases of Kind)` is an array of all names with their
/// functions on that kind of subject.
#[macro_export]
macro_rules! conformance {
    (cases of $subject:ty) => {
        $crate::conformance! { @name cases [$subject] }
    };
    (@name $what:ident $subject:tt) => {
        $crate::conformance! { @$what $subject
            an_empty_journal_stands_at_the_initial_revision
            claims_rise_and_survive
            a_later_claim_fences_every_write
            an_appended_batch_survives_whole
            a_batch_that_does_not_follow_changes_nothing
            a_batch_of_meta_alone_moves_no_revision
            meta_entries_are_set_replaced_and_removed
            only_durable_batches_are_held
            records_come_in_order_within_their_bound
            heads_come_in_order_without_values
            a_large_batch_is_one_batch
            forgotten_changes_are_gone_and_the_others_stay
            maintenance_changes_nothing_that_is_kept
            what_is_forgotten_during_maintenance_stays_forgotten
            a_condensed_journal_takes_little_more_than_it_keeps
            maintenance_ends_however_little_is_kept
            an_image_fills_an_empty_journal_only
            readers_see_only_whole_batches
            histories_agree_with_the_model
        }
    };
    (@each [$subject:expr] $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                $crate::suite::$name(&mut $subject);
            }
        )*
    };
    (@cases [$subject:ty] $($name:ident)*) => {
        [$((
            stringify!($name),
            (|subject: &mut $subject| $crate::suite::$name(subject)) as fn(&mut $subject),
        )),*]
    };
    // Last, because every one of the others would be tried as an expression first.
    ($subject:expr) => {
        $crate::conformance! { @name each [$subject] }
    };
}
