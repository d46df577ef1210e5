//! A peer's recipe, and the fingerprint that tells one build from another.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The files of a Go recipe. `go.sum` pins every byte that is fetched.
const FILES: [&str; 2] = ["go.mod", "go.sum"];

/// Enough of the digest to tell apart all builds one cache will ever see.
const FINGERPRINT_CHARACTERS: usize = 12;

/// A committed folder, with its files by name.
pub(super) struct Recipe {
    folder: PathBuf,
    files: Vec<(&'static str, Vec<u8>)>,
}

// === impl Recipe ===

impl Recipe {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let read = |name: &'static str| {
            let path = folder.join(name);
            let bytes =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok((name, bytes))
        };
        let files = FILES.into_iter().map(read).collect::<Result<_>>()?;
        Ok(Self { folder: folder.to_owned(), files })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Changes with the recipe, and with each of `settings`: flags, packages, toolchain.
    pub(super) fn fingerprint(&self, settings: &[&str]) -> String {
        let mut digest = Sha256::new();
        let named_files = self.files.iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes]);
        for part in named_files.chain(settings.iter().map(|setting| setting.as_bytes())) {
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
        let files = vec![("go.mod", module.into()), ("go.sum", sums.into())];
        Recipe { folder: PathBuf::new(), files }.fingerprint(settings)
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
}
