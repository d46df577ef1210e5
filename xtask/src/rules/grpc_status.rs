//! Absence 2: only the gRPC edges know `tonic::Status`.

use super::Finding;
use super::source::{Ban, Scope, SourceFile};

pub(super) const RULE: &str = "grpc-status";

/// Crates that speak gRPC to the outside.
const EDGES: [&str; 4] = ["autoscaler", "simcloud", "store", "tasks"];

const ADVICE: &str = "return the module's own error; the gRPC edge maps it to a status";

const BAN: Ban = Ban {
    rule: RULE,
    scope: Scope::Product,
    names: &[("tonic::Status", ADVICE), ("tonic::Code", ADVICE)],
};

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    if file.is_tool() || (EDGES.contains(&file.crate_name()) && !file.is_core()) {
        return Vec::new();
    }
    BAN.check(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&SourceFile::new(path, text)).len()
    }

    #[test]
    fn a_status_stays_at_the_edge() {
        assert_eq!(count("crates/mvcc/src/a.rs", "use tonic::{Request, Status};"), 1);
        assert_eq!(count("crates/windlass/src/a.rs", "fn f() -> tonic::Status"), 1);
        assert_eq!(count("crates/tasks/src/core/a.rs", "use tonic::Status;"), 1);
        assert_eq!(count("crates/store/src/a.rs", "use tonic::Status;"), 0);
        assert_eq!(count("crates/windlass/src/a.rs", "use tonic::transport::Server;"), 0);
    }
}
