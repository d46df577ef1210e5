//! What was typed, as what is meant.

use jiff::SignedDuration;
use labels::{
    core::{
        names::is_node_name,
        policy::{MarkerPlace, NodeRestriction, Policy, PolicyRule, RestoreMode, SystemLabels},
        rv::ResourceVersion,
    },
    options::Namespaces,
};

use crate::{
    cli::labels::{
        MarkerArg, NodeRestrictionArg, PolicyArgs, RestoreModeArg, StoresArgs, SystemLabelsArg,
    },
    report::{Exit, Failure},
};

pub(super) fn namespaces(arguments: StoresArgs) -> Namespaces {
    Namespaces {
        transactions: arguments.transaction_namespace,
        metadata: arguments.metadata_namespace,
        checkpoints: arguments.checkpoint_namespace,
    }
}

pub(super) fn policy(arguments: PolicyArgs) -> Result<Policy, Failure> {
    let rules = arguments.label_policy.iter().map(|text| rule(text)).collect::<Result<_, _>>()?;
    Ok(Policy {
        rules,
        system_labels: match arguments.system_labels {
            SystemLabelsArg::Policy => SystemLabels::Policy,
            SystemLabelsArg::Stored => SystemLabels::Stored,
        },
        restore_mode: match arguments.restore_mode {
            RestoreModeArg::Replace => RestoreMode::Replace,
            RestoreModeArg::Merge => RestoreMode::Merge,
        },
        marker: match arguments.marker {
            MarkerArg::Both => MarkerPlace::Both,
            MarkerArg::Label => MarkerPlace::Label,
            MarkerArg::Annotation => MarkerPlace::Annotation,
        },
        node_restriction: match arguments.node_restriction {
            NodeRestrictionArg::Restore => NodeRestriction::Restore,
            NodeRestrictionArg::Skip => NodeRestriction::Skip,
        },
        // Longer than jiff can count is longer than anything was stored.
        retention: SignedDuration::try_from(arguments.retention).unwrap_or(SignedDuration::MAX),
    })
}

/// What is no name of a Node is refused before it becomes part of a request's path.
pub(super) fn node(name: &str) -> Result<(), Failure> {
    if is_node_name(name) {
        return Ok(());
    }
    let error = anyhow::anyhow!("no Node can be called `{name}`");
    Err(Failure::new(Exit::Usage, error).with_hint("`kubectl get nodes` lists their names"))
}

fn rule(text: &str) -> Result<PolicyRule, Failure> {
    text.parse().map_err(|error| {
        let error = anyhow::Error::new(error).context("--label-policy");
        Failure::new(Exit::Usage, error).with_hint("write `example.com/*=live`")
    })
}

pub(super) fn version(from: Option<&String>) -> Result<Option<ResourceVersion>, Failure> {
    let parsed = from.map(|text| text.parse::<ResourceVersion>()).transpose();
    parsed.map_err(|error| {
        let error = anyhow::Error::new(error).context("--from");
        Failure::new(Exit::Usage, error)
            .with_hint("`windlass labels history NODE` lists the versions")
    })
}
