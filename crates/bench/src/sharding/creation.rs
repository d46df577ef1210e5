//! How long it takes to create an object, one after the other.

use anyhow::Result;
use tokio::time::Instant;

use super::{
    fleet::{Fleet, Manner},
    instance::Pace,
    objects,
    report::Spread,
    setting::Setting,
};

/// The first of them make connections and fill caches.
const WARM_UP: usize = 10;

/// Who has them, and does nothing with them.
const OWNER: &str = "owner";

/// Where there is no ring.
pub(super) async fn bare(setting: &Setting, count: usize) -> Result<Spread> {
    let times = create(setting, count).await?;
    objects::remove_all(&setting.secrets()).await?;
    Ok(times)
}

/// In a ring with an instance: each object is labelled while the next is created.
pub(super) async fn ringed(setting: &Setting, fleet: &mut Fleet, count: usize) -> Result<Spread> {
    fleet.join(setting, OWNER, Manner::in_ring(Pace::Idle)).await?;
    let times = create(setting, count).await?;
    objects::wait_assigned(&setting.secrets(), &setting.names()?.shard_label()).await?;
    objects::remove_all(&setting.secrets()).await?;
    fleet.leave(OWNER).await?;
    Ok(times)
}

async fn create(setting: &Setting, count: usize) -> Result<Spread> {
    let secrets = setting.secrets();
    let mut times = Vec::with_capacity(count);
    for number in 0..WARM_UP + count {
        let name = format!("timed-{number:06}");
        let began = Instant::now();
        objects::create(&secrets, &name).await?;
        if number >= WARM_UP {
            times.push(began.elapsed());
        }
    }
    Spread::of(&times)
}
