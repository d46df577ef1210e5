//! Three stores over one schema of a grid.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::assets::Asset;
use e2e::client::Client;
use e2e::ignite::Ignite;
use e2e::report::say;
use e2e::scene::Scene;
use e2e::store::{Lane, Store, StoreOptions};
use e2e::tasks::link::{Link, Target};
use e2e::wait::{Level, wait_for};
use etcd_api::etcdserverpb::StatusRequest;
use journal_ignite::{IgniteJournal, Options};
use rustix::process::Signal;

use crate::stage::Stage;

pub(crate) const REPLICAS: usize = 3;
/// How long a change of the writer may take, the time included in which nobody may know of it.
pub(crate) const TAKEOVER_WAIT: Duration = Duration::from_secs(60);

pub(crate) struct Together {
    pub(crate) scene: Scene,
    pub(crate) stores: Vec<Store>,
    /// From each store to each node, where a case wants these to fail.
    pub(crate) ways: Vec<Vec<Link>>,
    pub(crate) journal: Options,
}

/// Runs a case with three stores over tables of its own, and compares KV with HISTORY behind it; logs
/// are kept if it fails.
pub(crate) fn with(
    stage: &mut Stage,
    name: &'static str,
    needs: &[Asset],
    play: impl AsyncFnOnce(&mut Together, &mut Ignite) -> Result<()>,
) -> Result<()> {
    with_ways(stage, name, needs, Vec::new(), play)
}

/// The same, where stores reach these, which are the nodes, by links of their own.
pub(crate) fn with_ways(
    stage: &mut Stage,
    name: &'static str,
    needs: &[Asset],
    targets: Vec<Target>,
    play: impl AsyncFnOnce(&mut Together, &mut Ignite) -> Result<()>,
) -> Result<()> {
    let options = stage.journal();
    journal_ignite::init(&options).context("init")?;
    stage.runtime.clone().block_on(async {
        let mut together = Together::start(options.clone(), name, needs, targets).await?;
        let played = play(&mut together, &mut stage.ignite).await;
        if played.is_err() {
            together.scene.on_failure();
        }
        played
    })?;
    let verified = IgniteJournal::open(options)?.verify().context("compare KV with HISTORY")?;
    say(&format!("{name}: {verified:?}"));
    Ok(())
}

// === impl Together ===

impl Together {
    async fn start(
        journal: Options,
        name: &'static str,
        needs: &[Asset],
        targets: Vec<Target>,
    ) -> Result<Self> {
        let scene = Scene::open(name, needs)?.map_err(anyhow::Error::msg)?;
        let (mut stores, mut ways) = (Vec::new(), Vec::new());
        for number in 0..REPLICAS {
            let (own, ports): (Vec<Link>, Vec<u16>) = targets
                .iter()
                .cloned()
                .map(Link::near)
                .collect::<Result<Vec<_>>>()?
                .into_iter()
                .unzip();
            let linked = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
            let addresses = if own.is_empty() { journal.client.addresses.clone() } else { linked };
            ways.push(own);
            let url = format!(
                "ignite://{}?rest={}&schema={}",
                addresses.join(","),
                journal.rest.join(","),
                journal.schema
            );
            let options = StoreOptions::new(Lane::Windlass, &format!("replica{number}"));
            let options = options.flags(["--journal", &url, "--bcrypt-cost", "4"]);
            let is_unsafe = journal.is_unsafe_allowed;
            let options = options.flags(is_unsafe.then_some("--allow-unsafe"));
            stores.push(Store::start(&scene, &options).await?);
        }
        let together = Self { scene, stores, ways, journal };
        together.wait_for_writer(None).await?;
        Ok(together)
    }

    pub(crate) fn client(&self, index: usize) -> Result<Client> {
        self.stores[index].client()
    }

    pub(crate) fn endpoints(&self) -> String {
        self.stores.iter().map(Store::endpoint).collect::<Vec<_>>().join(",")
    }

    /// The place of the store that writes, once all that run agree on it and it is not `before`.
    pub(crate) async fn wait_for_writer(&self, before: Option<usize>) -> Result<usize> {
        wait_for("the stores to agree on a writer", TAKEOVER_WAIT, async || {
            let mut told = Vec::new();
            for index in (0..REPLICAS).filter(|index| Some(*index) != before) {
                match self.client(index)?.maintenance().status(StatusRequest {}).await {
                    Ok(status) => {
                        let status = status.into_inner();
                        let own = status.header.context("an answer has a header")?.member_id;
                        told.push((index, own, status.leader));
                    }
                    Err(error) => return Ok(Level::Below(error.to_string())),
                }
            }
            let leader = told[0].2;
            let is_agreed = leader != 0 && told.iter().all(|each| each.2 == leader);
            let writer = told.iter().find(|(_, own, _)| *own == leader && is_agreed);
            Ok(match writer {
                Some((index, ..)) => Level::Reached(*index),
                None => Level::Below(format!("{told:?}")),
            })
        })
        .await
    }

    pub(crate) fn pause(&mut self, index: usize) -> Result<()> {
        self.stores[index].process()?.signal(Signal::STOP)
    }

    pub(crate) fn resume(&mut self, index: usize) -> Result<()> {
        self.stores[index].process()?.signal(Signal::CONT)
    }
}
