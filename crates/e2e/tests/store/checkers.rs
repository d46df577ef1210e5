//! The judges judged: what a correct store does passes, and each bug that is put in is caught.

mod ledger;
mod linear;
mod simulation;
mod watch;
