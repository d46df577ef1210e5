//! Every transition, from every status, with fsck after each.

mod table;
mod walk;
