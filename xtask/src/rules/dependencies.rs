//! Dependencies point down: the binary on shells, shells on cores, cores on the wire types.

use super::Finding;
use crate::checkout::{Dependency, Package};

pub(super) const RULE: &str = "dependencies";

/// The families of `ARCHITECTURE`, lowest first. A crate depends on lower families, and on its own
/// where [`Family::may_know_its_own`] says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    /// Wire types: no logic, and nothing of ours below.
    Wire,
    Core,
    /// Clients of storage engines, which know nothing of ours.
    Engine,
    Journal,
    /// What several services are built from.
    Foundation,
    Service,
    Measurement,
    Binary,
    Tool,
}

const FAMILIES: &[(&str, Family)] = &[
    ("etcd-api", Family::Wire),
    ("cloud-api", Family::Wire),
    ("chance", Family::Core),
    ("mvcc", Family::Core),
    ("registry", Family::Core),
    ("fit", Family::Core),
    ("journal", Family::Journal),
    ("ignite-client", Family::Engine),
    ("journal-ignite", Family::Journal),
    ("journal-raft", Family::Journal),
    ("sandbox", Family::Foundation),
    ("kubekit", Family::Foundation),
    ("store", Family::Service),
    ("tasks", Family::Service),
    ("labels", Family::Service),
    ("sharding", Family::Service),
    ("autoscaler", Family::Service),
    ("simcloud", Family::Service),
    ("bench", Family::Measurement),
    ("windlass", Family::Binary),
    ("checksums", Family::Tool),
    ("e2e", Family::Tool),
    ("xtask", Family::Tool),
];

/// What would make a core impure, whatever it is used for.
const IMPURE: [&str; 10] =
    ["axum", "fjall", "hyper", "kube", "rand", "redb", "reqwest", "tokio", "tonic", "tracing"];

pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Finding> {
    let finding = |advice: String| Finding::new(&package.manifest(), 1, RULE, advice);
    let Some(family) = family(&package.name) else {
        return vec![finding("give the crate its family in xtask's table of dependencies".into())];
    };
    // What tests and build scripts need does not reach the product.
    let of_product = package.dependencies.iter().filter(|dependency| dependency.kind.is_none());
    of_product.filter_map(|dependency| objection(family, dependency)).map(finding).collect()
}

fn objection(from: Family, dependency: &Dependency) -> Option<String> {
    let name = &dependency.name;
    if from <= Family::Core && from != Family::Wire && IMPURE.contains(&name.as_str()) {
        return Some(format!(
            "a core decides and nothing else: move what needs `{name}` to a shell"
        ));
    }
    let to = family(name)?;
    let is_allowed = to < from || (to == from && from.may_know_its_own());
    (!is_allowed).then(|| format!("`{name}` lies not below this crate; dependencies point down"))
}

fn family(name: &str) -> Option<Family> {
    FAMILIES.iter().find(|(each, _)| *each == name).map(|(_, family)| *family)
}

// === impl Family ===

impl Family {
    /// Journals implement `journal`'s trait, and services are clients of each other.
    fn may_know_its_own(self) -> bool {
        matches!(self, Self::Journal | Self::Service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(package: &str, on: &str, kind: Option<&str>) -> usize {
        let dependency = Dependency { name: on.to_owned(), kind: kind.map(ToOwned::to_owned) };
        check(&[Package { name: package.to_owned(), dependencies: vec![dependency] }]).len()
    }

    #[test]
    fn down_is_allowed_and_up_is_not() {
        assert_eq!(count("windlass", "store", None), 0);
        assert_eq!(count("store", "mvcc", None), 0);
        assert_eq!(count("journal-raft", "journal", None), 0);
        assert_eq!(count("journal-ignite", "ignite-client", None), 0);
        assert_eq!(count("ignite-client", "journal", None), 1);
        assert_eq!(count("mvcc", "store", None), 1);
        assert_eq!(count("etcd-api", "mvcc", None), 1);
        assert_eq!(count("mvcc", "registry", None), 1);
        assert_eq!(count("store", "e2e", None), 1);
    }

    #[test]
    fn cores_stay_pure_and_tests_are_free() {
        assert_eq!(count("mvcc", "tokio", None), 1);
        assert_eq!(count("mvcc", "tokio", Some("dev")), 0);
        assert_eq!(count("store", "tokio", None), 0);
        assert_eq!(count("etcd-api", "tonic", None), 0);
    }

    #[test]
    fn a_crate_without_family_is_found() {
        assert_eq!(count("newcomer", "bytes", None), 1);
    }
}
