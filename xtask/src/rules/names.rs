//! Absence 6: no crate or module is called utils, common or helpers.

use super::Finding;
use super::source::{SourceFile, mentions};

pub(super) const RULE: &str = "names";

const BANNED: [&str; 7] = ["common", "helper", "helpers", "misc", "shared", "util", "utils"];

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    let of_file = file.module_parts().find(|part| BANNED.contains(part)).map(|part| (1, part));
    let declared = file.code().lines().enumerate().filter_map(|(index, code)| {
        let name = BANNED.into_iter().find(|name| mentions(code, &format!("mod {name}")))?;
        Some((index + 1, name))
    });
    let found = of_file.into_iter().chain(declared);
    found
        .map(|(line, name)| {
            let advice = format!("`{name}` says nothing; name it for its job");
            Finding::new(&file.path, line, RULE, advice)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&SourceFile::new(path, text)).len()
    }

    #[test]
    fn empty_names_are_refused_in_paths_and_declarations() {
        assert_eq!(count("crates/common/src/lib.rs", ""), 1);
        assert_eq!(count("crates/store/src/utils.rs", ""), 1);
        assert_eq!(count("crates/store/tests/common/mod.rs", ""), 1);
        assert_eq!(count("crates/store/src/lib.rs", "mod helpers { }"), 1);
        assert_eq!(count("crates/store/src/lib.rs", "mod commonality; // mod utils"), 0);
    }
}
