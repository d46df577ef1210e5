//! Increases that were asked for and whose nodes are yet to come. Closing them is the work of
//! `observe::requests`.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::time::later;

/// An increase of one group. At least one: at zero it is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub increase: u32,
    pub opened: Timestamp,
    /// The target before the latest increase.
    pub baseline: u32,
    /// `None`: the target was read as high as was asked for, or nobody waits for it any more.
    pub settling: Option<Settling>,
    /// What the latest increase put off, until it is known to have been made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) earlier: Option<Earlier>,
}

/// The times of a request before its latest increase: a refused one moves no deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Earlier {
    opened: Timestamp,
    baseline: u32,
    settles_until: Option<Timestamp>,
}

/// An increase that the target does not show yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settling {
    pub expects: u32,
    /// How much of our raise no reading has shown.
    pub unseen: u32,
    pub until: Timestamp,
}

// === impl Request ===

impl Request {
    /// Somebody else's increase, which the target already shows.
    pub(crate) fn adopted(increase: u32, baseline: u32, now: Timestamp) -> Self {
        Self { increase, opened: now, baseline, settling: None, earlier: None }
    }

    #[must_use]
    pub fn deadline(&self, provision: Duration) -> Timestamp {
        later(self.opened, provision)
    }

    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.settling.is_none()
    }
}

/// Adds an increase of our own, which a target of `baseline` does not show yet.
pub(crate) fn ask(
    request: &mut Option<Request>,
    delta: u32,
    baseline: u32,
    (now, settle_timeout): (Timestamp, Duration),
) {
    let earlier = request.take();
    let unsettled = earlier.as_ref().and_then(|earlier| earlier.settling.as_ref());
    let settling = Settling {
        expects: unsettled.map_or(baseline, |it| it.expects.max(baseline)).saturating_add(delta),
        unseen: unsettled.map_or(0, |it| it.unseen).saturating_add(delta),
        until: later(now, settle_timeout),
    };
    let before = earlier.as_ref().map(|earlier| Earlier {
        opened: earlier.opened,
        baseline: earlier.baseline,
        settles_until: earlier.settling.as_ref().map(|it| it.until),
    });
    let increase = earlier.map_or(0, |earlier| earlier.increase).saturating_add(delta);
    let settling = Some(settling);
    let asked = Request { increase, opened: now, baseline, settling, earlier: before };
    *request = (increase > 0).then_some(asked);
}

/// Takes back the latest increase, which did not happen. What was open before is as it was.
pub(crate) fn take_back(request: &mut Option<Request>, delta: u32) {
    lower(request, delta);
    let Some(open) = request else { return };
    if let Some(settling) = &mut open.settling {
        settling.expects = settling.expects.saturating_sub(delta);
        settling.unseen = settling.unseen.saturating_sub(delta);
    }
    open.settling.take_if(|settling| settling.unseen == 0);
    let Some(Earlier { opened, baseline, settles_until }) = open.earlier.take() else { return };
    (open.opened, open.baseline) = (opened, baseline);
    if let Some((settling, until)) = open.settling.as_mut().zip(settles_until) {
        settling.until = until;
    }
}

/// The latest increase was made, or may have been.
pub(crate) fn confirm(request: &mut Option<Request>) {
    if let Some(open) = request {
        open.earlier = None;
    }
}

/// Adds an increase that others made.
pub(crate) fn adopt(request: &mut Option<Request>, delta: u32, baseline: u32, now: Timestamp) {
    let increase = request.as_ref().map_or(0, |earlier| earlier.increase).saturating_add(delta);
    if delta > 0 {
        *request = Some(Request::adopted(increase, baseline, now));
    }
}

/// Lowers a request; its times stay. Nothing happens if there is none.
pub(crate) fn lower(request: &mut Option<Request>, delta: u32) {
    if let Some(open) = request {
        open.increase = open.increase.saturating_sub(delta);
    }
    request.take_if(|open| open.increase == 0);
}
