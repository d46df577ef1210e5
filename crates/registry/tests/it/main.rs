//! The registry from outside: stories in few words, and properties of any facts.

mod acceptance;
mod bad_input;
mod defects;
mod explain;
mod props;
mod save;
mod scene;
mod status;
mod story;
mod use_cases;
