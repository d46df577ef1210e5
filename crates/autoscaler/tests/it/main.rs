//! The autoscaler's planners: tables for every reason and refusal, properties, and the scenarios of its
//! loop on a simulated cloud.

#![expect(
    clippy::unwrap_used,
    reason = "scenes are made of what cannot fail, and a test that is wrong shall panic"
)]

mod drain;
mod props;
mod scale_down;
mod scale_up;
mod scenarios;
mod scene;
mod sim;
