//! The only place that spawns. Each attempt has a task, its driver, which ends with the attempt; the
//! attempt's events end with it, so whoever holds the handle learns of it, even of a panic.

use tokio_util::task::TaskTracker;

/// The drivers of a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drivers(TaskTracker);

// === impl Drivers ===

impl Drivers {
    pub(crate) fn spawn(&self, driver: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(driver);
    }

    /// Waits until all have ended.
    pub(crate) async fn finish(&self) {
        self.0.close();
        self.0.wait().await;
    }
}
