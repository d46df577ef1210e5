//! Speaks to a store through the crate `etcd-client` and prints what it was told, without what two
//! correct stores may say differently: two stores are alike to this client if the words are.

mod claims;
mod keys;
mod leases;
mod transcript;
mod upkeep;
mod users;
mod watches;

use std::env;

use anyhow::{Context, Result};
use etcd_client::Client;

use crate::transcript::Transcript;

#[tokio::main]
async fn main() -> Result<()> {
    let argument = env::args().nth(1).context("usage: etcd-client-script ENDPOINT")?;
    if argument == "--version" {
        println!("etcd-client {}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    let mut client = Client::connect([&argument], None).await.context("connect")?;
    let mut transcript = Transcript::default();
    let outcome = speak(&mut client, &argument, &mut transcript).await;
    print!("{transcript}");
    outcome
}

async fn speak(client: &mut Client, endpoint: &str, transcript: &mut Transcript) -> Result<()> {
    keys::run(client, transcript).await.context("keys")?;
    watches::run(client, transcript).await.context("watches")?;
    leases::run(client, transcript).await.context("leases")?;
    claims::run(client, transcript).await.context("claims")?;
    upkeep::run(client, transcript).await.context("upkeep")?;
    users::run(client, endpoint, transcript).await.context("users")
}
