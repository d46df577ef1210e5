//! Which suites there are, what each needs and how it is run. Only data.

pub(super) struct Suite {
    pub(super) name: &'static str,
    pub(super) claim: &'static str,
    /// Peers by name and version; without one of them the suite cannot run.
    pub(super) needs: &'static [&'static str],
    pub(super) action: Action,
}

pub(super) enum Action {
    Verify,
    Fuzz,
    /// Arguments of cargo.
    Cargo(&'static [&'static str]),
    /// A target of the crate `e2e`, which no other crate has, with the program as the profile `suite` makes it.
    EndToEnd(&'static str),
}

/// Every failure is told, not only those of the first crate that has one.
const WORKSPACE: &[&str] = &["test", "--workspace", "--locked", "--no-fail-fast"];
/// The tests would build them themselves; built before, none waits for the compiler.
const PROGRAMS: &[&str] =
    &["build", "--profile", "suite", "--locked", "--package", "windlass", "--package", "checksums"];
/// Of the whole workspace and not optimised as the program is, so that all but the target itself was
/// built for [`WORKSPACE`].
const END_TO_END: &[&str] =
    &["test", "--workspace", "--locked", "--features", "e2e/peers", "--test"];

/// In the order they run: what fails fast comes first.
pub(super) const SUITES: &[Suite] = &[
    Suite {
        name: "verify",
        claim: "formatting, lints, documentation and the rules hold",
        needs: &[],
        action: Action::Verify,
    },
    Suite {
        name: "workspace",
        claim: "every test that needs no peer",
        needs: &[],
        action: Action::Cargo(WORKSPACE),
    },
    Suite {
        name: "fuzz",
        claim: "no bytes from outside make anything panic or contradict itself",
        needs: &[],
        action: Action::Fuzz,
    },
    Suite {
        name: "e2e",
        claim: "real processes, beside etcd and below kube-apiserver",
        needs: &[
            "etcd-3.7.1",
            "etcd-3.6.14",
            "kubernetes-1.36.4",
            "etcd-client-0.21.1",
            "python-etcd3-0.12.0",
        ],
        action: Action::EndToEnd("store"),
    },
    Suite {
        name: "labels",
        claim: "the labels service on real API servers, new and old, over etcd and over windlass",
        needs: &["etcd-3.7.1", "kubernetes-1.36.4", "kubernetes-1.30.14"],
        action: Action::EndToEnd("labels"),
    },
    Suite {
        name: "sharding",
        claim: "sharders and instances on real API servers, new and old, and a judge of all that happened",
        needs: &["etcd-3.7.1", "kubernetes-1.36.4", "kubernetes-1.30.14"],
        action: Action::EndToEnd("sharding"),
    },
    Suite {
        name: "fit",
        claim: "the autoscaler's rules of scheduling agree with a real scheduler, in random worlds",
        needs: &["etcd-3.7.1", "kubernetes-1.36.4", "kube-control-plane-1.36.4"],
        action: Action::EndToEnd("fit"),
    },
    Suite {
        name: "autoscaler",
        claim: "the autoscaler and a simulated cloud on a real API server, scheduler and controllers",
        needs: &["etcd-3.7.1", "kubernetes-1.36.4", "kube-control-plane-1.36.4"],
        action: Action::EndToEnd("autoscaler"),
    },
    Suite {
        // Each of its cases says that it needs root; under continuous integration that is a failure.
        name: "tasks",
        claim: "real containers, and nodes in networks of their own that die, stall and part",
        needs: &["etcd-3.7.1"],
        action: Action::EndToEnd("tasks"),
    },
    Suite {
        name: "ignite",
        claim: "stores over real Ignite nodes, any of which may die",
        needs: &["ignite-3.1.0", "etcd-3.7.1", "kubernetes-1.36.4"],
        action: Action::EndToEnd("ignite"),
    },
];

// === impl Action ===

impl Action {
    /// The cargo commands it comes to, each of which must succeed before the next is tried.
    pub(super) fn commands(&self) -> Vec<Vec<&'static str>> {
        match self {
            Self::Verify | Self::Fuzz => Vec::new(),
            Self::Cargo(arguments) => vec![arguments.to_vec()],
            Self::EndToEnd(target) => vec![PROGRAMS.to_vec(), [END_TO_END, &[target]].concat()],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::peers::catalogue;

    #[test]
    fn names_are_unique() {
        let mut seen = HashSet::new();
        assert!(SUITES.iter().all(|suite| seen.insert(suite.name)));
    }

    #[test]
    fn every_need_is_in_the_catalogue() {
        for need in SUITES.iter().flat_map(|suite| suite.needs) {
            assert!(catalogue().iter().any(|peer| peer.to_string() == *need), "{need}");
        }
    }

    #[test]
    fn cargo_never_resolves_anew() {
        for suite in SUITES {
            let commands = suite.action.commands();
            assert!(commands.iter().all(|words| words.contains(&"--locked")), "{}", suite.name);
        }
    }
}
