//! How long it takes to create an object, one after the other.

use anyhow::Result;
use tokio::time::Instant;

use super::{objects, report::Spread, setting::Setting};

/// The first of them make connections and fill caches.
const WARM_UP: usize = 10;

pub(super) async fn measure(setting: &Setting, count: usize) -> Result<Spread> {
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
    objects::remove_all(&secrets).await?;
    Spread::of(&times)
}
