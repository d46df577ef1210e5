//! The checkout: where it is, which text files it holds, which packages it is made of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::process;

/// Folders that hold nothing written by hand.
const SKIPPED_FOLDERS: [&str; 3] = [".git", "target", "node_modules"];

/// Endings of the files that rules read. Lock files and checksums are machine-made.
const TEXT_ENDINGS: [&str; 9] = ["rs", "toml", "md", "proto", "mod", "yaml", "yml", "sh", "py"];

#[derive(Clone, Debug)]
pub(crate) struct Checkout {
    root: PathBuf,
    /// Where cargo's output goes, when not to its usual place.
    cargo_target: Option<PathBuf>,
}

/// A text file, by its path from the root with `/` between the parts.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A workspace member as `cargo metadata` describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev` and `build` are named; a dependency of the product itself is not.
    pub(crate) kind: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

// === impl Checkout ===

impl Checkout {
    /// The checkout this tool was compiled from.
    pub(crate) fn locate() -> Self {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = own.parent().expect("the tool's crate lies one level below the root");
        Self { root: root.to_owned(), cargo_target: None }
    }

    pub(crate) fn with_cargo_target(&self, folder: PathBuf) -> Self {
        Self { cargo_target: Some(folder), ..self.clone() }
    }

    /// A file or folder of the checkout, by its path from the root.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Where cargo's output goes.
    pub(crate) fn cargo_target(&self) -> PathBuf {
        let named = || std::env::var_os("CARGO_TARGET_DIR").map(|folder| self.root.join(folder));
        self.cargo_target.clone().or_else(named).unwrap_or_else(|| self.root.join("target"))
    }

    pub(crate) fn recipes(&self) -> PathBuf {
        self.root.join("xtask/peers")
    }

    /// `cargo` at the root of the checkout.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root).args(arguments);
        if let Some(folder) = &self.cargo_target {
            command.env("CARGO_TARGET_DIR", folder);
        }
        command
    }

    pub(crate) fn packages(&self) -> Result<Vec<Package>> {
        let mut cargo = self.cargo(&["metadata", "--format-version=1", "--no-deps"]);
        let finished = process::run_quietly(&mut cargo)?;
        ensure!(finished.is_success, "cargo metadata: {}", finished.last_words());
        let metadata: Metadata =
            serde_json::from_str(&finished.stdout).context("cargo metadata is not understood")?;
        Ok(metadata.packages)
    }

    /// Every text file written by hand, sorted by path.
    pub(crate) fn text_files(&self) -> Result<Vec<TextFile>> {
        let mut files = Vec::new();
        self.collect(&self.root, &mut files)?;
        files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(files)
    }

    fn collect(&self, folder: &Path, files: &mut Vec<TextFile>) -> Result<()> {
        let entries =
            fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
            let kind = entry.file_type().context("cannot tell a file from a folder")?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
                self.collect(&entry.path(), files)?;
            } else if kind.is_file() && is_text(&name) {
                files.push(self.read(&entry.path())?);
            }
        }
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<TextFile> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let relative = path.strip_prefix(&self.root).expect("the walk starts at the root");
        Ok(TextFile { path: relative.to_string_lossy().replace('\\', "/"), text })
    }
}

// === impl Package ===

impl Package {
    /// The path of its manifest from the root.
    pub(crate) fn manifest(&self) -> String {
        let folder = match self.name.as_str() {
            "xtask" => "",
            "checksums" => "examples/",
            _ => "crates/",
        };
        format!("{folder}{}/Cargo.toml", self.name)
    }
}

fn is_text(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| TEXT_ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_finds_sources_and_skips_what_machines_write() {
        let files = Checkout::locate().text_files().unwrap();
        let has = |path: &str| files.iter().any(|file| file.path == path);
        assert!(has("xtask/src/checkout.rs"));
        assert!(has("Cargo.toml"));
        assert!(has("xtask/peers/etcd-3.7.1/go.mod"));
        assert!(!files.iter().any(|file| file.path.starts_with("target/")));
        assert!(!has("Cargo.lock"));
    }

    #[test]
    fn packages_carry_the_kinds_of_their_dependencies() {
        let packages = Checkout::locate().packages().unwrap();
        let own = packages.iter().find(|package| package.name == "xtask").unwrap();
        let kind = |name: &str| {
            own.dependencies.iter().find(|each| each.name == name).unwrap().kind.as_deref()
        };
        assert_eq!(kind("anyhow"), None);
        assert_eq!(kind("tempfile"), Some("dev"));
    }
}
