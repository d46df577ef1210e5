//! Every file in `tests/cmd/` is a terminal session.

use std::os::unix::fs::symlink;

const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");

#[test]
fn sessions_in_tests_cmd_are_true() {
    let folder = tempfile::tempdir().unwrap();
    let etcd = folder.path().join("etcd");
    symlink(WINDLASS, &etcd).unwrap();
    trycmd::TestCases::new().register_bin("etcd", etcd.as_path()).case("tests/cmd/*.trycmd").run();
}
