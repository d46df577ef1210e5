//! One agent alone with a store: what it does, told as stories.

mod choosing;
mod lease;
mod leaving;
mod running;
mod story;
