//! Which peers there are: pins, programs, packages. Only data; building is next door.

use std::fmt;

use super::probe::Probe;

/// A peer at one exact version; several peers may share a recipe.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// Folder below `xtask/peers`.
    pub(super) recipe: &'static str,
    pub(super) source: Source,
    pub(crate) programs: &'static [Program],
}

/// What a recipe is, and what its tool must be told beside it.
#[derive(Debug)]
pub(super) enum Source {
    Go {
        ldflags: &'static str,
    },
    /// A cargo workspace, one package of which compiles protobuf files for the others.
    Cargo {
        protoc: &'static str,
    },
    /// Jars; the program is the folder they are in.
    Maven,
    /// Python packages; the program is the interpreter that finds them.
    Python,
}

/// One executable of a peer.
#[derive(Debug)]
pub(crate) struct Program {
    /// Where it is in the peer's folder.
    pub(crate) name: &'static str,
    /// The variable that hands the program on, and that replaces it when the user sets it.
    pub(crate) variable: &'static str,
    /// A second override, for a program that another version may stand in for.
    pub(super) stand_in: Option<&'static str>,
    pub(super) package: &'static str,
    pub(super) probe: Probe,
}

/// Kubernetes takes its version from the linker: the server runs without, but calls itself
/// `v0.0.0-master`, and whatever parses that breaks.
macro_rules! kubernetes_ldflags {
    ($minor:literal, $patch:literal) => {
        concat!(
            kubernetes_ldflags!("k8s.io/component-base/version", $minor, $patch),
            " ",
            kubernetes_ldflags!("k8s.io/client-go/pkg/version", $minor, $patch),
        )
    };
    ($package:literal, $minor:literal, $patch:literal) => {
        concat!(
            concat!("-X ", $package, ".gitVersion=v1.", $minor, ".", $patch),
            concat!(" -X ", $package, ".gitMajor=1 -X ", $package, ".gitMinor=", $minor),
            concat!(" -X ", $package, ".gitTreeState=clean"),
        )
    };
}

const CATALOGUE: &[Peer] = &[
    Peer {
        name: "etcd",
        version: "3.7.1",
        recipe: "etcd-3.7.1",
        source: Source::Go { ldflags: "" },
        programs: &[
            Program {
                name: "etcd",
                variable: "TEST_ASSET_ETCD",
                stand_in: None,
                package: "go.etcd.io/etcd/server/v3",
                probe: Probe { arguments: &["--version"], answer: "etcd Version: 3.7.1" },
            },
            Program {
                name: "etcdctl",
                variable: "TEST_ASSET_ETCDCTL",
                stand_in: None,
                package: "go.etcd.io/etcd/etcdctl/v3",
                probe: Probe { arguments: &["version"], answer: "etcdctl version: 3.7.1" },
            },
            Program {
                name: "benchmark",
                variable: "TEST_ASSET_ETCD_BENCHMARK",
                stand_in: None,
                package: "go.etcd.io/etcd/v3/tools/benchmark",
                probe: BENCHMARK_PROBE,
            },
        ],
    },
    Peer {
        name: "etcd",
        version: "3.6.14",
        recipe: "etcd-3.6.14",
        source: Source::Go { ldflags: "" },
        programs: &[
            Program {
                name: "etcd",
                variable: "TEST_ASSET_ETCD36",
                stand_in: Some("TEST_ASSET_ETCD"),
                package: "go.etcd.io/etcd/server/v3",
                probe: Probe { arguments: &["--version"], answer: "etcd Version: 3.6.14" },
            },
            Program {
                name: "etcdctl",
                variable: "TEST_ASSET_ETCDCTL36",
                stand_in: Some("TEST_ASSET_ETCDCTL"),
                package: "go.etcd.io/etcd/etcdctl/v3",
                probe: Probe { arguments: &["version"], answer: "etcdctl version: 3.6.14" },
            },
            Program {
                name: "benchmark",
                variable: "TEST_ASSET_ETCD_BENCHMARK36",
                stand_in: Some("TEST_ASSET_ETCD_BENCHMARK"),
                package: "go.etcd.io/etcd/v3/tools/benchmark",
                probe: BENCHMARK_PROBE,
            },
        ],
    },
    Peer {
        name: "kubernetes",
        version: "1.36.4",
        recipe: "kubernetes-1.36.4",
        source: Source::Go { ldflags: kubernetes_ldflags!("36", "4") },
        programs: &[
            Program {
                name: "kube-apiserver",
                variable: "TEST_ASSET_KUBE_APISERVER",
                stand_in: None,
                package: "k8s.io/kubernetes/cmd/kube-apiserver",
                probe: KUBERNETES_PROBE,
            },
            Program {
                name: "kubectl",
                variable: "TEST_ASSET_KUBECTL",
                stand_in: None,
                package: "k8s.io/kubernetes/cmd/kubectl",
                probe: Probe {
                    arguments: &["version", "--client"],
                    answer: "Client Version: v1.36.4",
                },
            },
        ],
    },
    // Apart from `kubernetes`, so that suites without controllers do not wait for their build.
    Peer {
        name: "kube-control-plane",
        version: "1.36.4",
        recipe: "kubernetes-1.36.4",
        source: Source::Go { ldflags: kubernetes_ldflags!("36", "4") },
        programs: &[
            Program {
                name: "kube-scheduler",
                variable: "TEST_ASSET_KUBE_SCHEDULER",
                stand_in: None,
                package: "k8s.io/kubernetes/cmd/kube-scheduler",
                probe: KUBERNETES_PROBE,
            },
            Program {
                name: "kube-controller-manager",
                variable: "TEST_ASSET_KUBE_CONTROLLER_MANAGER",
                stand_in: None,
                package: "k8s.io/kubernetes/cmd/kube-controller-manager",
                probe: KUBERNETES_PROBE,
            },
        ],
    },
    // The oldest that the services are made for.
    Peer {
        name: "kubernetes",
        version: "1.30.14",
        recipe: "kubernetes-1.30.14",
        source: Source::Go { ldflags: kubernetes_ldflags!("30", "14") },
        programs: &[Program {
            name: "kube-apiserver",
            variable: "TEST_ASSET_KUBE_APISERVER130",
            stand_in: None,
            package: "k8s.io/kubernetes/cmd/kube-apiserver",
            probe: Probe { arguments: &["--version"], answer: "Kubernetes v1.30.14" },
        }],
    },
    Peer {
        name: "kwok",
        version: "0.8.0",
        recipe: "kwok-0.8.0",
        source: Source::Go { ldflags: "" },
        programs: &[Program {
            name: "kwok",
            variable: "TEST_ASSET_KWOK",
            stand_in: None,
            package: "sigs.k8s.io/kwok/cmd/kwok",
            probe: Probe { arguments: &["--version"], answer: "kwok version v0.8.0" },
        }],
    },
    Peer {
        name: "etcd-client",
        version: "0.21.1",
        recipe: "etcd-client-0.21.1",
        source: Source::Cargo { protoc: "protoc" },
        programs: &[Program {
            name: "etcd-client-script",
            variable: "TEST_ASSET_ETCD_CLIENT",
            stand_in: None,
            package: "etcd-client-script",
            probe: Probe { arguments: &["--version"], answer: "etcd-client 0.21.1" },
        }],
    },
    Peer {
        name: "python-etcd3",
        version: "0.12.0",
        recipe: "python-etcd3-0.12.0",
        source: Source::Python,
        programs: &[Program {
            name: "bin/python3",
            variable: "TEST_ASSET_PYTHON_ETCD3",
            stand_in: None,
            package: "etcd3",
            probe: Probe {
                arguments: &["-c", "import etcd3; print('etcd3', etcd3.__version__)"],
                answer: "etcd3 0.12.0",
            },
        }],
    },
    Peer {
        name: "ignite",
        version: "3.1.0",
        recipe: "ignite-3.1.0",
        source: Source::Maven,
        programs: &[Program {
            name: "lib",
            variable: "TEST_ASSET_IGNITE3_LIB",
            stand_in: None,
            package: "ignite-runner",
            probe: Probe { arguments: &["ignite-runner"], answer: "ignite-runner-3.1.0.jar" },
        }],
    },
];

const KUBERNETES_PROBE: Probe = Probe { arguments: &["--version"], answer: "Kubernetes v1.36.4" };

/// etcd's benchmark tool has no version of its own; its recipe's checksums pin it.
const BENCHMARK_PROBE: Probe = Probe { arguments: &["--help"], answer: "low-level benchmark tool" };

pub(crate) fn catalogue() -> &'static [Peer] {
    CATALOGUE
}

// === impl Peer ===

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.name, self.version)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::checkout::Checkout;

    #[test]
    fn every_program_has_a_variable_of_its_own() {
        let mut seen = HashSet::new();
        for program in catalogue().iter().flat_map(|peer| peer.programs) {
            assert!(seen.insert(program.variable), "{} is taken", program.variable);
        }
    }

    #[test]
    fn every_recipe_is_committed_and_names_its_packages() {
        let recipes = Checkout::locate().recipes();
        for peer in catalogue() {
            let manifest = match peer.source {
                Source::Go { .. } => "go.mod",
                Source::Cargo { .. } => "Cargo.lock",
                Source::Maven => "pom.xml",
                Source::Python => "requirements.txt",
            };
            let named = std::fs::read_to_string(recipes.join(peer.recipe).join(manifest)).unwrap();
            for program in peer.programs {
                assert!(named.contains(program.package), "{peer}: {}", program.package);
            }
        }
    }

    #[test]
    fn the_linker_is_told_the_pinned_version() {
        for peer in catalogue().iter().filter(|peer| peer.recipe.starts_with("kubernetes")) {
            let Source::Go { ldflags } = peer.source else { panic!("{peer} is written in Go") };
            let told = ldflags.matches(&format!("gitVersion=v{}", peer.version)).count();
            assert_eq!(told, 2, "{peer}: server and client library each carry the version");
        }
    }
}
