//! A user's predicate, made to notice that an object has been away.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::core::object::Object;

/// What a filter compares: what the user looks at, the assignment, and whether the object is to be
/// given up. The last is seen once more when the object leaves, and so what comes back differs even
/// from that.
pub(super) fn mixed(users: u64, assignment: u64, object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    (users, assignment, object.drain.is_some()).hash(&mut hasher);
    hasher.finish()
}
