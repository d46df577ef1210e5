//! What holds for the crate as a whole.

use crate::{access, election, events, health, lock, presence};

/// Services run in tasks of their owner's, on any thread; this does not compile if one cannot.
#[expect(dead_code, reason = "it is compiled, not run")]
async fn all_work_can_be_spawned(
    client: kube::Client,
    locks: lock::Locks,
    mut lock: lock::Lock,
    services: (election::Service, events::Service, health::Service, presence::Service),
) {
    fn can_be_spawned(_: &(impl Future + Send)) {}
    let shutdown = tokio_util::sync::CancellationToken::new;
    can_be_spawned(&services.0.run(shutdown()));
    can_be_spawned(&services.1.run(shutdown()));
    can_be_spawned(&services.2.run(shutdown()));
    can_be_spawned(&services.3.run(shutdown()));
    can_be_spawned(&locks.acquire("worker-7"));
    can_be_spawned(&lock.keep());
    can_be_spawned(&lock.release());
    can_be_spawned(&access::missing(&client, &[]));
}
