//! A sharded controller: for every Secret of a ring it keeps a ConfigMap with the SHA-256 of each of
//! the Secret's values. Everything about sharding is in this file; [`mod@reconcile`] knows nothing of it
//! but how to stamp what it creates.

mod args;
mod history;
mod reconcile;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::runtime::controller::{self, Action, Controller};
use kube::{Api, Client};
use sharding::instance::{Shard, lease_client};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Args;
use crate::history::History;
use crate::reconcile::{Context, Error, reconcile};

/// A Secret that could not be worked on has its next turn after this long.
const RETRY_AFTER: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<()> {
    let is_for_people = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(is_for_people).init();
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .expect("nothing before main installs a provider");
    let args = Args::parse();
    let mut terminated = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;

    let config = args.config().await?;
    let client = Client::try_from(config.clone()).context("cannot make a client")?;
    let leases = lease_client(config).context("cannot make a client for the Lease")?;
    let options = args.join_options().lease_client(leases);
    let shard = tokio::select! {
        joined = Shard::join(client.clone(), options) => joined.context("cannot join the ring")?,
        _ = terminated.recv() => return Ok(()),
    };

    let mut work = std::pin::pin!(work(&args, client, shard.clone())?);
    tokio::select! {
        () = &mut work => {}
        _ = terminated.recv() => {
            // What runs goes on while the place is given back, unless whoever asked has lost patience.
            let leaving = async { tokio::join!(shard.stop(args.stop()), work).0 };
            tokio::select! {
                stopped = leaving => stopped.context("cannot leave the ring in order")?,
                _ = terminated.recv() => bail!("asked to stop twice: the Lease is left to expire"),
            }
        }
    }
    shard.loss().map_or(Ok(()), |loss| Err(loss.clone()).context("the place in the ring is lost"))
}

/// Works until the place in the ring is lost or given back.
fn work(args: &Args, client: Client, shard: Shard) -> Result<impl Future<Output = ()> + use<>> {
    let history = args.history.as_deref().map(|path| History::open(path, &shard)).transpose()?;
    let context =
        Context { client: client.clone(), shard: shard.clone(), delay: args.delay(), history };
    let secrets: Api<Secret> = Api::all(client.clone());
    let config_maps: Api<ConfigMap> = Api::all(client);
    let worked = Controller::new(secrets, shard.config())
        .owns(config_maps, shard.config())
        .with_config(controller::Config::default().concurrency(args.workers))
        .run(shard.wrap(reconcile), on_error, Arc::new(context));
    Ok(shard.outcomes(worked).for_each(|outcome| async move {
        if let Err(error) = outcome {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "a Secret was not worked on");
        }
    }))
}

fn on_error(_secret: Arc<Secret>, _error: &Error, _context: Arc<Context>) -> Action {
    Action::requeue(RETRY_AFTER)
}
