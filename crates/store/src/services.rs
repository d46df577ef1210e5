//! The gRPC services. Each checks what a request says, asks the writer or reads the durable state,
//! and completes the answer; nothing is decided here.

mod kv;
mod lease;
mod maintenance;
mod range_stream;
mod status;
mod watch;

pub(crate) use kv::KvService;
pub(crate) use lease::LeaseService;
pub(crate) use maintenance::MaintenanceService;
pub(crate) use watch::WatchService;
