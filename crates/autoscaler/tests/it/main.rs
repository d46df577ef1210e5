//! The autoscaler's planners: tables for every reason and refusal, properties, and the scenarios of its
//! loop on a simulated cloud.

mod drain;
mod props;
mod scale_down;
mod scale_up;
mod scenarios;
mod scene;
mod sim;
