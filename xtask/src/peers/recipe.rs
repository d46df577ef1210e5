//! A peer's recipe, and the fingerprint that tells one build from another.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// Enough of the digest to tell apart all builds one cache will ever see.
const FINGERPRINT_CHARACTERS: usize = 12;

/// What a tool run by hand in the folder of a recipe leaves there.
const MACHINE_MADE: &str = "target";

/// A committed folder, with its files by their paths in it, sorted.
pub(super) struct Recipe {
    folder: PathBuf,
    files: Vec<(String, Vec<u8>)>,
}

// === impl Recipe ===

impl Recipe {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut recipe = Self { folder: folder.to_owned(), files: Vec::new() };
        recipe.collect(folder)?;
        recipe.files.sort();
        Ok(recipe)
    }

    fn collect(&mut self, folder: &Path) -> Result<()> {
        let problem = || format!("cannot list {}", folder.display());
        for entry in fs::read_dir(folder).with_context(problem)? {
            let path = entry.with_context(problem)?.path();
            if path.is_file() {
                let bytes =
                    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let name = path.strip_prefix(&self.folder).expect("the walk starts at the folder");
                self.files.push((name.to_string_lossy().into_owned(), bytes));
            } else if !path.ends_with(MACHINE_MADE) {
                self.collect(&path)?;
            }
        }
        Ok(())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Changes with the recipe, and with each of `settings`: flags, packages, toolchain.
    pub(super) fn fingerprint(&self, settings: &[String]) -> String {
        let mut digest = Sha256::new();
        let named_files = self.files.iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes]);
        for part in named_files.chain(settings.iter().map(String::as_bytes)) {
            // The length goes in first, so that parts cannot trade bytes at their border.
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        hex[..FINGERPRINT_CHARACTERS].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(module: &str, sums: &str, settings: &[&str]) -> String {
        let files = vec![("go.mod".to_owned(), module.into()), ("go.sum".to_owned(), sums.into())];
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        Recipe { folder: PathBuf::new(), files }.fingerprint(&settings)
    }

    #[test]
    fn the_fingerprint_depends_on_every_part_and_border() {
        let base = check("m", "s", &["-p=2", "go1.26.8"]);
        assert_eq!(base, check("m", "s", &["-p=2", "go1.26.8"]), "same input, same place");
        assert_eq!(base.len(), FINGERPRINT_CHARACTERS);
        for other in [
            check("n", "s", &["-p=2", "go1.26.8"]),
            check("m", "t", &["-p=2", "go1.26.8"]),
            check("m", "s", &["-p=1", "go1.26.8"]),
            check("m", "s", &["-p=2", "go1.26.9"]),
            check("m", "s", &["-p=2go1.26.8", ""]),
            check("ms", "", &["-p=2", "go1.26.8"]),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn every_file_of_a_folder_counts_but_for_what_machines_make() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        ["b", "a/c", "target/d"].iter().for_each(|path| write(path));
        let recipe = Recipe::read(folder.path()).unwrap();
        let names: Vec<&str> = recipe.files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a/c", "b"]);
    }
}
