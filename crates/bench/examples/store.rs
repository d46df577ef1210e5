//! The store's table without windlass: etcd and the two ceilings.
//!
//! ```text
//! TEST_ASSET_ETCD=… cargo run --release -p bench --example store -- [--quick] SCRATCH [ROW…]
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example is a program")]

use std::{env, path::PathBuf};

use anyhow::Context;
use bench::{
    ceiling::{self, Ceiling},
    store::{self, Launch, Options, Place, Role, Scale, Subject},
};
use tokio_util::sync::CancellationToken;

const CEILING: &str = "ceiling";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args: Vec<String> = env::args().skip(1).collect();
    if args.first().is_some_and(|first| first == CEILING) {
        let ceiling = Ceiling::bind(&ceiling::Options::parse(&args[1..])?).await?;
        return ceiling.run(CancellationToken::new()).await;
    }
    let is_quick = args.first().is_some_and(|first| first == "--quick");
    let mut args = args.drain(usize::from(is_quick)..);
    let options = Options {
        subjects: subjects()?,
        scale: if is_quick { Scale::quick() } else { Scale::full() },
        rounds: if is_quick { 1 } else { 3 },
        scratch: PathBuf::from(args.next().context("name a scratch folder")?),
        rows: args.collect(),
    };
    let report = store::run(&options, &mut |line| eprintln!("{line}")).await?;
    println!("{report}");
    Ok(())
}

fn subjects() -> anyhow::Result<Vec<Subject>> {
    let ceiling = Launch { program: env::current_exe()?, args: vec![CEILING.to_owned()] };
    let launched = |role, launch| Subject { role, place: Place::Launched(launch) };
    let mut subjects =
        vec![launched(Role::Ceiling, ceiling.clone()), launched(Role::DurableCeiling, ceiling)];
    if let Some(etcd) = env::var_os("TEST_ASSET_ETCD") {
        subjects.push(launched(Role::Etcd, Launch { program: etcd.into(), args: vec![] }));
    }
    Ok(subjects)
}
