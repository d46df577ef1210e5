//! What decides: pure functions and plain data. No I/O, no clock, no chance, no client; time and a seed
//! are arguments, maps are ordered, and the order in which things were listed does not matter.
//!
//! | module | owns |
//! |---|---|
//! | [`iteration`] | one iteration, step by step: what to do and why |
//! | [`scale_up`] | which groups grow, and why others do not |
//! | [`scale_down`] | which nodes go, and why others stay |
//! | [`drain`] | the removal of one node, there and back |
//! | [`world`], [`kept`] | what was read of Kubernetes |
//! | [`memory`] | what is remembered beside the registry |
//! | [`action`], [`event`], [`account`] | what is to be done, told and explained |
//!
//! # How it is run
//!
//! ```text
//! registry, memory         restored, or Registry::rebuild and Memory::lost
//! each iteration:
//!   facts, world           read
//!   it = Iteration::begin(inputs, registry, memory)
//!   loop it.next(…):       Act(action)  → carry out, it.on_effect(effect)
//!                          Working      → look at the clock, perhaps it.cut()
//!                          Ended        → it.into_account()
//! each second or so:
//!   memory.drains.step(…)  commands → carry out, memory.on_drain_reply(reply)
//! ```
//!
//! What whoever runs it owes:
//!
//! 1. A [`Call`] is made in this order: read the group's target; ask
//!    [`Call::intent`](action::Call::intent), and answer [`Effect::Stale`] if
//!    it refuses; record the intent as requested; save registry and memory; call; record
//!    [`Effect::outcome`](action::Effect::outcome). If recording or saving fails there is no call, and
//!    the effect is `Failed`.
//! 2. One action at a time, and the iteration is answered before it is asked again. Commands of
//!    removals may run beside it, each answered once.
//! 3. Registry and memory are saved after an iteration if they changed, both or none.
//! 4. A lost lease means that nothing is carried out any more, not even what was handed out.

pub mod account;
pub mod action;
pub mod config;
pub mod drain;
pub mod event;
pub mod iteration;
pub mod kept;
mod limits;
pub mod memory;
pub mod names;
mod pending;
pub mod scale_down;
pub mod scale_up;
mod snapshot;
pub mod template;
pub mod world;

pub use account::{Account, Ending};
pub use action::{Action, Call, Effect, Lift, Machine};
pub use config::Config;
pub use drain::{Command, Drains, End, Evicted, Reply};
pub use event::{Event, EventReason, Subject};
pub use iteration::{Inputs, Iteration, Next};
pub use kept::{KeptPod, Kinds};
pub use memory::Memory;
pub use scale_down::{Against, Cooldown, Order, Reason};
pub use scale_up::{GroupVerdict, PodVerdict, ScaleUpPlan};
pub use world::{GroupSettings, PodKey, World};
