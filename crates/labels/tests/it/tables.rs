//! The tables of decisions: every row, and each of its conditions the other way.

mod added;
mod deleted;
mod restore;
mod settle;
mod unreadable;
