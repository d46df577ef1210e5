//! The acceptance cases. Unless said: limits of 10 % and 1, old nodes, settled requests.

mod backoff;
mod classes;
mod health;
mod requests;
mod sizes;
