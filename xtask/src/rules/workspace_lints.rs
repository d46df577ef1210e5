//! Every crate takes the workspace's lints.

use super::Finding;
use crate::checkout::TextFile;

pub(super) const RULE: &str = "workspace-lints";

pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    let is_manifest = file.path.ends_with("/Cargo.toml");
    let is_package = file.text.lines().any(|line| line.trim() == "[package]");
    if !is_manifest || !is_package || takes_workspace_lints(&file.text) {
        return Vec::new();
    }
    vec![Finding::new(&file.path, 1, RULE, "add `[lints]` with `workspace = true`")]
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let lints = manifest.lines().skip_while(|line| line.trim() != "[lints]").skip(1);
    let mut table = lints.take_while(|line| !line.trim_start().starts_with('['));
    table.any(|line| line.replace(' ', "").starts_with("workspace=true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        check(&TextFile { path: "crates/a/Cargo.toml".to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn the_lints_table_must_point_at_the_workspace() {
        assert_eq!(count("[package]\n[lints]\nworkspace = true\n"), 0);
        assert_eq!(count("[package]\nname = \"a\"\n"), 1);
        assert_eq!(count("[package]\n[lints]\n[dependencies]\nworkspace = true\n"), 1);
        assert_eq!(count("[workspace]\n"), 0);
    }
}
