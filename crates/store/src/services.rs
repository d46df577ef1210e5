//! The gRPC services. Each checks what a request says, asks the writer or reads the durable state,
//! and completes the answer; nothing is decided here.

mod agent;
mod auth;
mod cluster;
pub(crate) mod departures;
mod election;
mod health;
mod kv;
mod lease;
mod line;
mod lock;
mod maintenance;
mod observer;
mod range_stream;
mod status;
mod watch;

pub(crate) use auth::AuthService;
pub(crate) use cluster::ClusterService;
pub(crate) use departures::Departures;
pub(crate) use election::ElectionService;
pub(crate) use health::HealthService;
pub(crate) use kv::KvService;
pub(crate) use lease::LeaseService;
pub(crate) use lock::LockService;
pub(crate) use maintenance::MaintenanceService;
pub(crate) use status::refusal;
pub(crate) use watch::WatchService;
