//! `windlass autoscaler manifests`: what the autoscaler needs in a cluster. Asks none.

use autoscaler::manifests::{self, Options};

use crate::{
    cli::autoscaler::ManifestsArgs,
    commands::kube::print,
    report::{Exit, Failure, Outcome},
};

pub(super) fn run(arguments: &ManifestsArgs) -> Outcome {
    let options = Options { image: arguments.image.clone(), replicas: arguments.replicas };
    options.validate().map_err(|error| {
        Failure::new(Exit::Usage, error)
            .with_hint("write `--image registry.example/windlass:0.1.0`")
    })?;
    print::objects(&manifests::objects(&options), arguments.output)
}
