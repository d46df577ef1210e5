//! Properties, one per file, of clusters in which nodes and pods come and go.

mod forks;
mod life;
mod packing;
mod recount;
mod undo;

/// Each asks every pod about every node many times over.
const CASES: u32 = 64;
