//! `windlass sharder manifests`: what the sharder, or one ring, needs in a cluster. Asks one only
//! about a Ring that it is to find there.

use std::{fs, io, path::Path};

use sharding::{
    core::{names::RingName, spec},
    kubernetes::Ring,
    manifests::{self, Error, Options},
};

use super::connect;
use crate::{
    cli::{kube::ExportFormat, sharder::ManifestsArgs},
    commands::kube::print,
    lifecycle,
    report::{Exit, Failure, Outcome},
};

/// Means standard input.
const STDIN: &str = "-";

pub(super) fn run(arguments: ManifestsArgs) -> Outcome {
    let home = &arguments.cluster.sharder_namespace;
    let options =
        Options { image: arguments.image, replicas: arguments.replicas, home: home.clone() };
    options.validate().map_err(refused)?;
    match (&arguments.file, arguments.ring) {
        (Some(file), _) => of_ring(&read(file)?, home, arguments.output),
        (None, Some(ring)) => lifecycle::block_on(async {
            let admin = connect::admin(&arguments.cluster).await?;
            let ring = admin.ring(&ring).await.map_err(connect::failure)?;
            of_ring(&ring, home, arguments.output)
        }),
        (None, None) => print::objects(&manifests::objects(&options), arguments.output),
    }
}

fn of_ring(ring: &Ring, home: &str, format: ExportFormat) -> Outcome {
    let name = ring.metadata.name.clone().unwrap_or_default();
    let problems = spec::check(&name, &ring.spec);
    if let Some(problem) = problems.into_iter().next() {
        let error = anyhow::Error::new(problem).context(format!("Ring `{name}` is wrong"));
        return Err(Failure::new(Exit::No, error).with_hint("docs/sharding.md explains the fields"));
    }
    let name: RingName = ring.name().map_err(|error| Failure::new(Exit::No, error))?;
    print::objects(&manifests::ring_objects(&name, &ring.spec, home), format)
}

fn read(path: &Path) -> Result<Ring, Failure> {
    let text = if path == Path::new(STDIN) {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("cannot read {}", path.display()));
        Failure::new(Exit::No, error).with_hint("check the path, and who may read it")
    })?;
    serde_saphyr::from_str(&text).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("{} is no Ring", path.display()));
        Failure::new(Exit::No, error)
            .with_hint("give one document: apiVersion windlass.dev/v1alpha1, kind Ring")
    })
}

fn refused(error: Error) -> Failure {
    let hint = match &error {
        Error::NoImage => "write `--image registry.example/windlass:0.1.0`",
        Error::Namespace(_) => "write a name like `windlass-system`",
    };
    Failure::new(Exit::Usage, error).with_hint(hint)
}
