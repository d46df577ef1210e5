//! The project speaks of itself alone: no path of one machine, no host but those of documentation.

use std::net::Ipv4Addr;

use super::Finding;
use crate::checkout::TextFile;

pub(super) const RULE: &str = "house-words";

/// Top folders under which people and machines keep their own things.
const PRIVATE_FOLDERS: [&str; 4] = ["home", "root", "Users", "work"];

/// Hosts that may be linked to. Packages come from where the user's tools are set to, so no registry
/// is among them.
const HOSTS: [&str; 10] = [
    "apache.org",
    "cncf.io",
    "doc.rust-lang.org",
    "docs.rs",
    "etcd.io",
    "example.com",
    "github.com",
    "ietf.org",
    "keepachangelog.com",
    "kubernetes.io",
];

/// Ends reserved for examples, which name nobody.
const EXAMPLE_ENDS: [&str; 4] = [".example", ".invalid", ".local", ".test"];

pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let mut add = |advice: String| {
            findings.push(Finding::new(&file.path, index + 1, RULE, advice));
        };
        if let Some(folder) = private_folder(line) {
            add(format!(
                "`/{folder}/…` exists on one machine only; use a variable or a scratch folder"
            ));
        }
        for host in hosts(line).filter(|host| !is_known(host)) {
            add(format!("`{host}`: link to documentation only, or take the address from the user"));
        }
    }
    findings
}

/// An absolute path below a private folder; `a/root/b` is relative and means something else.
fn private_folder(line: &str) -> Option<&'static str> {
    PRIVATE_FOLDERS.into_iter().find(|folder| {
        line.match_indices(&format!("/{folder}/")).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || "_-.}/*:".contains(c))
        })
    })
}

/// The hosts of all web addresses, without user and port.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    let starts = ["http://", "https://"].into_iter().flat_map(|scheme| line.split(scheme).skip(1));
    starts.map(|rest| {
        let ends_authority = |c: char| !(c.is_alphanumeric() || ".-_:@".contains(c));
        let authority = rest.split(ends_authority).next().unwrap_or(rest);
        let host = authority.rsplit('@').next().unwrap_or(authority);
        host.split(':').next().unwrap_or(host).trim_end_matches('.')
    })
}

/// Numbers name nobody, and names without a dot are placeholders or of a test's own making.
fn is_known(host: &str) -> bool {
    let is_below = |known: &str| host == known || host.ends_with(&format!(".{known}"));
    !host.contains('.')
        || host.parse::<Ipv4Addr>().is_ok()
        || HOSTS.into_iter().any(is_below)
        || EXAMPLE_ENDS.iter().any(|end| host.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_folders_are_found_only_as_absolute_paths() {
        let private = |folder: &str| format!("let path = \"/{folder}/x/file\";");
        for folder in PRIVATE_FOLDERS {
            assert_eq!(private_folder(&private(folder)), Some(folder));
        }
        assert_eq!(private_folder("crates/root/src"), None);
        assert_eq!(private_folder("{base}/root/src"), None);
    }

    #[test]
    fn hosts_are_read_from_web_addresses() {
        let check = |line: &'static str| hosts(line).collect::<Vec<_>>();
        assert_eq!(check("(https://etcd.io/docs/v3.7/)."), ["etcd.io"]);
        assert_eq!(check("\"http://user@127.0.0.1:2379\""), ["127.0.0.1"]);
        assert_eq!(check("`unix:///run/w.sock`"), [] as [&str; 0]);
    }

    #[test]
    fn registries_are_unknown_and_documentation_is_not() {
        assert!(is_known("www.apache.org"));
        assert!(is_known("node-1.example"));
        assert!(is_known("localhost"));
        assert!(is_known("10.0.0.1"));
        assert!(!is_known("registry.packages.dev"));
        assert!(!is_known("notetcd.io"));
    }
}
