//! How many slots each member gets: the divisor method of Webster and Sainte-Laguë, one slot at a
//! time. It has no paradoxes: whoever joins or leaves, the others keep their proportions.

use std::cmp::Ordering;

/// `weight / divisor`, compared without rounding.
#[derive(Clone, Copy, Debug)]
struct Quotient {
    weight: u64,
    divisor: u64,
}

/// A member's weight, and how many slots it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) weight: u32,
    pub(super) held: usize,
}

// === impl Seat ===

impl Seat {
    /// What one more slot would be worth to it.
    fn gain(self) -> Quotient {
        Quotient { weight: self.weight.into(), divisor: odd(self.held, 1) }
    }

    /// What its last slot is worth to it.
    fn loss(self) -> Option<Quotient> {
        let divisor = odd(self.held.checked_sub(1)?, 1);
        Some(Quotient { weight: self.weight.into(), divisor })
    }
}

/// Who gets the next free slot; of equals, the first.
pub(super) fn receiver(seats: &[Seat]) -> Option<usize> {
    receiver_but(seats, None)
}

/// The next slot that goes between `changed` and the others: from whom, to whom.
pub(super) fn transfer(seats: &[Seat], changed: usize) -> Option<(usize, usize)> {
    let taken = donor_but(seats, changed).map(|donor| (donor, changed));
    let given = receiver_but(seats, Some(changed)).map(|receiver| (changed, receiver));
    taken.into_iter().chain(given).find(|(from, to)| is_better(seats[*from], seats[*to]))
}

fn is_better(donor: Seat, receiver: Seat) -> bool {
    donor.loss().is_some_and(|loss| receiver.gain() > loss)
}

fn receiver_but(seats: &[Seat], but: Option<usize>) -> Option<usize> {
    let others = (0..seats.len()).filter(|index| Some(*index) != but && seats[*index].weight > 0);
    others.reduce(|best, next| if seats[next].gain() > seats[best].gain() { next } else { best })
}

fn donor_but(seats: &[Seat], but: usize) -> Option<usize> {
    let others = (0..seats.len()).filter(|index| *index != but && seats[*index].held > 0);
    others.reduce(|best, next| if seats[next].loss() < seats[best].loss() { next } else { best })
}

fn odd(held: usize, more: u64) -> u64 {
    2 * u64::try_from(held).expect("slots are few") + more
}

// === impl Quotient ===

impl Ord for Quotient {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.weight * other.divisor).cmp(&(other.weight * self.divisor))
    }
}

impl PartialOrd for Quotient {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quotient {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quotient {}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(weight: u32, held: usize) -> Seat {
        Seat { weight, held }
    }

    #[test]
    fn free_slots_go_where_they_are_missed_most() {
        assert_eq!(receiver(&[]), None);
        assert_eq!(receiver(&[seat(0, 0)]), None);
        assert_eq!(receiver(&[seat(100, 2), seat(100, 1)]), Some(1));
        assert_eq!(receiver(&[seat(100, 1), seat(100, 1)]), Some(0));
        // 100/3 against 300/7.
        assert_eq!(receiver(&[seat(100, 1), seat(300, 3)]), Some(1));
    }

    #[test]
    fn slots_move_only_while_the_receiver_misses_them_more() {
        // A newcomer takes from the fullest.
        assert_eq!(transfer(&[seat(100, 3), seat(100, 2), seat(100, 0)], 2), Some((0, 2)));
        // 100/3 against 100/3: equals do not take from each other.
        assert_eq!(transfer(&[seat(100, 2), seat(100, 1)], 1), None);
        // A member made lighter gives.
        assert_eq!(transfer(&[seat(10, 3), seat(100, 3)], 0), Some((0, 1)));
        assert_eq!(transfer(&[seat(0, 1), seat(100, 3)], 0), Some((0, 1)));
    }
}
