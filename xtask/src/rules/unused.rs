//! What a crate declares it also names, and what the workspace offers some crate takes: a dependency
//! that nothing mentions costs a build, and tells a reader something that is not so.

use super::source::{Scope, SourceFile, mentions};
use super::{Finding, Material};
use crate::checkout::{Dependency, Package};

pub(super) const RULE: &str = "unused";

const UNNAMED: &str = "is declared and never named; remove it, or move it to what uses it";
const UNTAKEN: &str = "is offered to all crates and taken by none; remove it";

/// What generated code names, by what generates it: rules read only what people write.
const OF_GENERATED_CODE: [(&str, &[&str]); 2] =
    [("tonic-prost-build", &["prost", "tonic", "tonic-prost"]), ("pbjson-build", &["pbjson"])];

const WORKSPACE_MANIFEST: &str = "Cargo.toml";
const OFFERED: &str = "[workspace.dependencies]";

pub(super) fn check(material: &Material) -> Vec<Finding> {
    let Material { packages, sources, texts } = material;
    let unnamed = packages.iter().flat_map(|package| check_package(package, sources));
    let workspace = texts.iter().filter(|file| file.path == WORKSPACE_MANIFEST);
    let untaken = workspace.flat_map(|file| check_workspace(&file.text, packages));
    unnamed.chain(untaken).collect()
}

fn check_package(package: &Package, sources: &[SourceFile]) -> Vec<Finding> {
    let own: Vec<&SourceFile> =
        sources.iter().filter(|file| file.crate_name() == package.name).collect();
    let is_generated = |name: &str| {
        OF_GENERATED_CODE.iter().any(|(generator, named)| {
            let declares = |each: &Dependency| each.name == *generator;
            named.contains(&name) && package.dependencies.iter().any(declares)
        })
    };
    let unused = package
        .dependencies
        .iter()
        .filter(|dependency| !is_generated(&dependency.name) && !is_used(dependency, &own));
    let finding = |dependency: &Dependency| {
        let Dependency { name, kind } = dependency;
        let kind = kind.as_ref().map(|kind| format!("{kind}-")).unwrap_or_default();
        Finding::new(&package.manifest(), 1, RULE, format!("{kind}dependency `{name}` {UNNAMED}"))
    };
    unused.map(finding).collect()
}

fn check_workspace(manifest: &str, packages: &[Package]) -> Vec<Finding> {
    let is_taken = |name: &str| {
        let mut all = packages.iter().flat_map(|package| &package.dependencies);
        all.any(|dependency| dependency.name == name)
    };
    let lines = manifest.lines().enumerate().skip_while(|(_, line)| *line != OFFERED).skip(1);
    lines
        .take_while(|(_, line)| !line.starts_with('['))
        .filter_map(|(index, line)| Some((index + 1, line.split_once(" = ")?.0)))
        .filter(|(_, name)| !name.starts_with('#') && !is_taken(name))
        .map(|(line, name)| {
            Finding::new(WORKSPACE_MANIFEST, line, RULE, format!("`{name}` {UNTAKEN}"))
        })
        .collect()
}

fn is_used(dependency: &Dependency, sources: &[&SourceFile]) -> bool {
    let name = dependency.name.replace('-', "_");
    sources.iter().any(|file| {
        let is_build_script = file.path.ends_with("/build.rs");
        let scope = match dependency.kind.as_deref() {
            None => Scope::Product,
            Some("build") if is_build_script => Scope::Everything,
            Some("dev") if !is_build_script => Scope::Everything,
            Some(_) => return false,
        };
        file.lines(scope).any(|(_, code)| mentions(code, &name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, kind: Option<&str>, path: &str, code: &str) -> usize {
        let dependency = Dependency { name: name.to_owned(), kind: kind.map(ToOwned::to_owned) };
        let package = Package { name: "a".to_owned(), dependencies: vec![dependency] };
        check_package(&package, &[SourceFile::new(path, code)]).len()
    }

    #[test]
    fn a_name_in_code_is_a_use_and_one_in_a_comment_is_not() {
        assert_eq!(count("tokio-util", None, "crates/a/src/lib.rs", "use tokio_util::sync;"), 0);
        assert_eq!(
            count("tokio-util", None, "crates/a/src/lib.rs", "fn f() { tokio_util::f() }"),
            0
        );
        assert_eq!(count("tokio-util", None, "crates/a/src/lib.rs", "// tokio_util"), 1);
        assert_eq!(count("tokio", None, "crates/a/src/lib.rs", "use tokio_util::sync;"), 1);
        assert_eq!(count("tokio", None, "crates/b/src/lib.rs", "use tokio::sync;"), 1);
    }

    #[test]
    fn what_only_tests_use_is_for_tests_only() {
        assert_eq!(count("tempfile", None, "crates/a/tests/it/main.rs", "use tempfile::f;"), 1);
        assert_eq!(
            count("tempfile", Some("dev"), "crates/a/tests/it/main.rs", "use tempfile::f;"),
            0
        );
        assert_eq!(count("protox", Some("build"), "crates/a/build.rs", "protox::compile();"), 0);
        assert_eq!(count("protox", Some("build"), "crates/a/src/lib.rs", "protox::compile();"), 1);
    }

    #[test]
    fn generated_code_names_what_nobody_reads() {
        let dependency = |name: &str| Dependency { name: name.to_owned(), kind: None };
        let with = |names: &[&str]| Package {
            name: "a".to_owned(),
            dependencies: names.iter().map(|name| dependency(name)).collect(),
        };
        assert_eq!(check_package(&with(&["pbjson"]), &[]).len(), 1);
        let script = SourceFile::new("crates/a/src/lib.rs", "use pbjson_build::Builder;");
        assert_eq!(check_package(&with(&["pbjson", "pbjson-build"]), &[script]), []);
    }

    #[test]
    fn what_the_workspace_offers_somebody_takes() {
        let dependency = Dependency { name: "bytes".to_owned(), kind: None };
        let packages = [Package { name: "a".to_owned(), dependencies: vec![dependency] }];
        let offered = "[workspace]\nx = 1\n[workspace.dependencies]\n# All.\nbytes = \"1\"\n";
        assert_eq!(check_workspace(offered, &packages), []);
        let more = format!("{offered}toml = {{ version = \"1\" }}\n[profile.dev]\ny = 1\n");
        let lines: Vec<_> = check_workspace(&more, &packages).iter().map(|one| one.line).collect();
        assert_eq!(lines, [6]);
    }
}
