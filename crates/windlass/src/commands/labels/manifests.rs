//! `windlass labels manifests`: what the services need in a cluster. Asks none.

use labels::manifests::{self, Error, Options};

use super::settings;
use crate::{
    cli::labels::ManifestsArgs,
    commands::kube::print,
    report::{Exit, Failure, Outcome},
};

pub(super) fn run(arguments: ManifestsArgs) -> Outcome {
    let options = Options {
        image: arguments.image,
        replicas: arguments.replicas,
        admin_groups: arguments.admin_groups,
        home: arguments.namespace,
        stores: settings::namespaces(arguments.stores),
    };
    options.validate().map_err(refused)?;
    print::objects(&manifests::objects(&options), arguments.output)
}

fn refused(error: Error) -> Failure {
    let hint = match &error {
        Error::Stores(_) => "write a name like `node-metadata`",
        Error::HomeIsStore { .. } => "give the pods a namespace of their own",
        Error::NoImage => "write `--image registry.example/windlass:0.1.0`",
        Error::NoGroup => "`kubectl auth whoami` shows the groups you are in",
    };
    Failure::new(Exit::Usage, error).with_hint(hint)
}
