//! Every flag of etcd 3.7 as data: its name, the shape of its value, etcd's default, and what
//! becomes of it here. The command line, the environment, the configuration file and `--help` are
//! all read off this one table. Nothing here parses or decides.

mod table;

pub(crate) use table::{ONE_MEMBER, SECTIONS};

/// One flag, known under the same name on the command line and in the configuration file, and as
/// `ETCD_…` in the environment.
#[derive(Debug)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// etcd's default, as it would be typed.
    pub(crate) default: &'static str,
    pub(crate) effect: Effect,
    /// What it does; why it does nothing, if it has no effect.
    pub(crate) help: &'static str,
}

/// How the value is written. Every value is checked, even one without effect: what etcd would
/// refuse to start with is a mistake here too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Takes no separate value: `--flag` or `--flag=false`.
    Switch,
    /// Like a switch, but `--flag=anything` will do.
    Anything,
    Text,
    Unsigned,
    Signed,
    /// Go's notation (`1h30m`); in a configuration file also integer nanoseconds.
    Duration,
    /// Comma-separated.
    List,
    /// Comma-separated.
    Urls,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// What becomes of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Honoured,
    /// Honoured with a journal that several members share; without effect, and with a warning, with
    /// any other.
    Shared,
    /// Accepted with a warning: it speaks of something that does not exist here.
    None,
    /// Accepted at etcd's default. Another value asks for a protection or a cluster that would
    /// silently be missing, so it is refused.
    DefaultOnly,
}

/// Flags that belong together in `--help`.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) flags: &'static [Flag],
}

// === impl Flag ===

impl Flag {
    /// `ETCD_DATA_DIR` for `data-dir`.
    pub(crate) fn env_name(&self) -> String {
        format!("ETCD_{}", self.name.replace('-', "_").to_uppercase())
    }
}

pub(crate) fn all() -> impl Iterator<Item = &'static Flag> {
    SECTIONS.iter().flat_map(|section| section.flags)
}

pub(crate) fn find(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let mut seen = HashSet::new();
        for flag in all() {
            assert!(seen.insert(flag.name), "{} is listed twice", flag.name);
        }
    }

    #[test]
    fn environment_names_follow_etcd() {
        let flag = find("listen-client-urls").unwrap();
        assert_eq!(flag.env_name(), "ETCD_LISTEN_CLIENT_URLS");
    }
}
