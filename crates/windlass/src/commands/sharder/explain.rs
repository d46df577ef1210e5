//! `windlass sharder explain`.

use sharding::admin::explain::{Explained, Target};

use super::connect;
use crate::{
    cli::sharder::ExplainArgs,
    commands::kube::print,
    report::{Exit, Failure, Outcome},
};

pub(super) async fn run(arguments: ExplainArgs) -> Outcome {
    let target = target(&arguments.object, arguments.namespace)?;
    let admin = connect::admin(&arguments.cluster).await?;
    let explained = admin.explain(&target).await.map_err(connect::failure)?;
    print::answer(&explained, arguments.output, |explained| text(explained))
}

fn target(object: &str, namespace: String) -> Result<Target, Failure> {
    match object.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Target { kind: kind.to_owned(), name: name.to_owned(), namespace })
        }
        _ => {
            let error = anyhow::anyhow!("`{object}` is not KIND/NAME");
            let hint = "write `site/home -n shop`, or `sites.example.com/home`";
            Err(Failure::new(Exit::Usage, error).with_hint(hint))
        }
    }
}

fn text(explained: &[Explained]) -> String {
    let ring = |it: &Explained| format!("ring         {}\n{}", it.ring, it.explanation);
    let rings: Vec<String> = explained.iter().map(ring).collect();
    rings.join("\n").trim_end().to_owned()
}
