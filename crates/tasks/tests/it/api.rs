//! The API over real connections: a node with simulated attempts, a real store, and the client that
//! everybody uses.

mod authority;
mod certificates;
mod lists;
mod logs;
mod outage;
mod refusals;
mod served;
mod waits;
