//! etcd's configuration file: YAML whose keys are the flag names, but for a few groups. It is
//! flattened into the same settings the command line gives.
//!
//! ```yaml
//! name: infra1
//! client-transport-security:
//!   cert-file: server.crt     # --cert-file
//! ```
//!
//! etcd skips keys it does not know; here they are errors, since a mistyped key is a setting lost. But
//! for those of etcd's own sample file, with which many a file began.

use std::path::Path;

use serde_saphyr::Spanned;

use super::{
    Error, Origin, Setting,
    layers::Layered,
    suggest,
    yaml::{Mapping, Node},
};
use crate::etcd_flags::{self, Flag, Shape};

/// A mapping in the file, and the flags its keys stand for.
struct Group {
    key: &'static str,
    members: &'static [(&'static str, &'static str)],
}

const GROUPS: [Group; 4] = [
    Group {
        key: "client-transport-security",
        members: &[
            ("cert-file", "cert-file"),
            ("key-file", "key-file"),
            ("client-cert-file", "client-cert-file"),
            ("client-key-file", "client-key-file"),
            ("client-cert-auth", "client-cert-auth"),
            ("trusted-ca-file", "trusted-ca-file"),
            ("auto-tls", "auto-tls"),
            ("allowed-cn", "client-cert-allowed-cn"),
            ("allowed-hostname", "client-cert-allowed-hostname"),
        ],
    },
    Group {
        key: "peer-transport-security",
        members: &[
            ("cert-file", "peer-cert-file"),
            ("key-file", "peer-key-file"),
            ("client-cert-file", "peer-client-cert-file"),
            ("client-key-file", "peer-client-key-file"),
            ("client-cert-auth", "peer-client-cert-auth"),
            ("trusted-ca-file", "peer-trusted-ca-file"),
            ("auto-tls", "peer-auto-tls"),
            ("allowed-cn", "peer-cert-allowed-cn"),
            ("allowed-hostname", "peer-cert-allowed-hostname"),
            ("skip-client-san-verification", "peer-skip-client-san-verification"),
        ],
    },
    Group {
        key: "socket-options",
        members: &[("reuse-port", "socket-reuse-port"), ("reuse-address", "socket-reuse-address")],
    },
    Group {
        key: "discovery-config",
        members: &[
            ("discovery-token", "discovery-token"),
            ("discovery-endpoints", "discovery-endpoints"),
        ],
    },
];

/// Keys of the sample file that comes with etcd 3.7, which etcd itself skips.
const SKIPPED: [&str; 9] = [
    "discovery",
    "discovery-fallback",
    "discovery-proxy",
    "proxy",
    "proxy-dial-timeout",
    "proxy-failure-wait",
    "proxy-read-timeout",
    "proxy-refresh-interval",
    "proxy-write-timeout",
];

/// What the file says; `path` is only for naming it in errors and warnings.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Layered, Error> {
    let mapping: Option<Mapping> = serde_saphyr::from_str(text)
        .map_err(|source| Error::ParseFile { path: path.to_owned(), source: Box::new(source) })?;
    let mut reader = Reader { path, layered: Layered::default() };
    for (key, node) in mapping.unwrap_or_default().entries {
        reader.on_entry(&key, node)?;
    }
    Ok(reader.layered)
}

struct Reader<'a> {
    path: &'a Path,
    layered: Layered,
}

// === impl Reader ===

impl Reader<'_> {
    fn on_entry(&mut self, key: &Spanned<String>, node: Node) -> Result<(), Error> {
        let group = GROUPS.iter().find(|group| group.key == key.value);
        match (group, node) {
            (Some(group), Node::Mapping(members)) => self.on_group(group, members),
            (Some(_), Node::Null) => Ok(()),
            (Some(_), _) => Err(self.wrong_node(key, "a mapping")),
            (None, node) if SKIPPED.contains(&key.value.as_str()) => {
                self.on_skipped(key, &node);
                Ok(())
            }
            (None, node) => self.on_flag(key, top_level(&key.value), node),
        }
    }

    fn on_skipped(&mut self, key: &Spanned<String>, node: &Node) {
        let is_empty =
            matches!(node, Node::Null) || matches!(node, Node::Scalar(text) if text.is_empty());
        if !is_empty {
            let origin = self.origin(key);
            self.layered.warnings.push(format!("{origin} has no effect: etcd itself skips it"));
        }
    }

    fn on_group(&mut self, group: &Group, members: Mapping) -> Result<(), Error> {
        for (key, node) in members.entries {
            let member = group.members.iter().find(|(name, _)| *name == key.value);
            let Some((_, flag)) = member else {
                let known = group.members.iter().map(|(name, _)| *name);
                let near = suggest::closest(&key.value, known);
                return Err(
                    self.unknown_key(&key, near.map(|near| format!("{}.{near}", group.key)))
                );
            };
            self.on_flag(&key, etcd_flags::find(flag), node)?;
        }
        Ok(())
    }

    fn on_flag(
        &mut self,
        key: &Spanned<String>,
        flag: Option<&'static Flag>,
        node: Node,
    ) -> Result<(), Error> {
        let Some(flag) = flag else {
            return Err(self.unknown_key(key, closest_key(&key.value)));
        };
        let Some(text) = self.text_of(key, flag, node)? else { return Ok(()) };
        let origin = self.origin(key);
        self.layered.settings.set(Setting::new(flag, text, origin)?);
        Ok(())
    }

    fn origin(&self, key: &Spanned<String>) -> Origin {
        Origin::File {
            path: self.path.to_owned(),
            line: key.referenced.line(),
            key: key.value.clone(),
        }
    }

    /// The value as it would be typed; nothing for an empty one, which in etcd is the default.
    fn text_of(
        &self,
        key: &Spanned<String>,
        flag: &Flag,
        node: Node,
    ) -> Result<Option<String>, Error> {
        match node {
            Node::Null => Ok(None),
            Node::Scalar(text) if text.is_empty() => Ok(None),
            // etcd reads durations in files as nanoseconds.
            Node::Scalar(text) if flag.shape == Shape::Duration && is_integer(&text) => {
                Ok(Some(format!("{text}ns")))
            }
            Node::Scalar(text) => Ok(Some(text)),
            Node::Sequence(items) => Ok(Some(items.join(","))),
            Node::Mapping(_) => Err(self.wrong_node(key, "a single value")),
        }
    }

    fn unknown_key(&self, key: &Spanned<String>, suggestion: Option<String>) -> Error {
        Error::UnknownKey {
            path: self.path.to_owned(),
            line: key.referenced.line(),
            key: key.value.clone(),
            suggestion,
        }
    }

    fn wrong_node(&self, key: &Spanned<String>, expected: &'static str) -> Error {
        Error::WrongNode {
            path: self.path.to_owned(),
            line: key.referenced.line(),
            key: key.value.clone(),
            expected,
        }
    }
}

/// Flags that cannot be keys: the file's own name, and those a group holds.
fn top_level(key: &str) -> Option<&'static Flag> {
    let in_group = GROUPS.iter().flat_map(|group| group.members).any(|(_, flag)| *flag == key);
    etcd_flags::find(key).filter(|flag| {
        !in_group && flag.shape != Shape::Anything && !matches!(key, "config-file" | "version")
    })
}

/// The key most likely meant; flags that a group holds are named with their group.
fn closest_key(typed: &str) -> Option<String> {
    let groups = GROUPS.iter().map(|group| group.key);
    let near = suggest::closest(typed, etcd_flags::all().map(|flag| flag.name).chain(groups))?;
    let in_group = GROUPS.iter().find_map(|group| {
        let (member, _) = group.members.iter().find(|(_, flag)| *flag == near)?;
        Some(format!("{}.{member}", group.key))
    });
    Some(in_group.unwrap_or_else(|| near.to_owned()))
}

fn is_integer(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(yaml: &str, expected: Expect) {
        let actual = match parse(Path::new("etcd.yaml"), yaml) {
            Ok(Layered { settings, warnings }) => settings
                .iter()
                .map(|setting| {
                    format!("{}={}\n", setting.flag().name, settings.text(setting.flag().name))
                })
                .chain(warnings.iter().map(|warning| format!("warning: {warning}\n")))
                .collect(),
            Err(error) => format!("error: {error}\nhint: {}\n", error.hint()),
        };
        expected.assert_eq(&actual);
    }

    #[test]
    fn keys_are_flag_names() {
        check(
            "name: infra1\nmax-txn-ops: 256\npre-vote: true\nlog-outputs: [stderr, /tmp/log]\ndata-dir:\n",
            expect![[r#"
                log-outputs=stderr,/tmp/log
                max-txn-ops=256
                name=infra1
                pre-vote=true
            "#]],
        );
    }

    #[test]
    fn an_empty_file_sets_nothing() {
        check("", expect![[""]]);
        check("# nothing\n", expect![[""]]);
    }

    #[test]
    fn integer_durations_are_nanoseconds() {
        check(
            "watch-progress-notify-interval: 600000000000\ncorrupt-check-time: 4m\n",
            expect![[r#"
                corrupt-check-time=4m
                watch-progress-notify-interval=600000000000ns
            "#]],
        );
    }

    #[test]
    fn groups_stand_for_flags() {
        check(
            "client-transport-security:\n  cert-file: a.crt\n  client-cert-auth: true\n  allowed-cn: [a]\n\
             peer-transport-security:\n  cert-file: p.crt\n",
            expect![[r#"
                cert-file=a.crt
                client-cert-allowed-cn=a
                client-cert-auth=true
                peer-cert-file=p.crt
            "#]],
        );
    }

    /// The sample file that comes with etcd 3.7 has keys of its version 2, which etcd skips; whoever began
    /// with it was told of an unknown key.
    #[test]
    fn what_is_left_of_etcds_sample_file_was_refused() {
        check(
            "name: 'default'\ndiscovery:\ndiscovery-fallback: 'proxy'\ndiscovery-proxy:\n\
             proxy: 'off'\nproxy-failure-wait: 5000\nproxy-read-timeout: 0\n",
            expect![[r#"
                name=default
                warning: etcd.yaml:3: discovery-fallback has no effect: etcd itself skips it
                warning: etcd.yaml:5: proxy has no effect: etcd itself skips it
                warning: etcd.yaml:6: proxy-failure-wait has no effect: etcd itself skips it
                warning: etcd.yaml:7: proxy-read-timeout has no effect: etcd itself skips it
            "#]],
        );
    }

    #[test]
    fn mistakes_name_line_and_key() {
        check(
            "name: a\nauto-compaction-mod: periodic\n",
            expect![[r#"
                error: etcd.yaml:2: unknown key `auto-compaction-mod`
                hint: did you mean `auto-compaction-mode`?
            "#]],
        );
        check(
            "client-transport-security:\n  cert-fil: a\n",
            expect![[r#"
                error: etcd.yaml:2: unknown key `cert-fil`
                hint: did you mean `client-transport-security.cert-file`?
            "#]],
        );
        check(
            "client-transport-security: a\n",
            expect![[r#"
                error: etcd.yaml:1: `client-transport-security` holds the wrong kind of value
                hint: write a mapping
            "#]],
        );
        check(
            "name: {a: b}\n",
            expect![[r#"
                error: etcd.yaml:1: `name` holds the wrong kind of value
                hint: write a single value
            "#]],
        );
        check(
            "cert-file: a.crt\n",
            expect![[r#"
                error: etcd.yaml:1: unknown key `cert-file`
                hint: did you mean `client-transport-security.cert-file`?
            "#]],
        );
        check(
            "max-txn-ops: many\n",
            expect![[r#"
                error: etcd.yaml:1: max-txn-ops: invalid value `many`
                hint: give a whole number
            "#]],
        );
        check(
            "discovery-srv: example.com\n",
            expect![[r#"
                error: etcd.yaml:1: discovery-srv cannot be `example.com`: cluster discovery is not served
                hint: leave the setting out
            "#]],
        );
        check(
            "- a\n",
            expect![[r#"
                error: etcd.yaml: not YAML with etcd's names
                hint: the keys are etcd's flag names, without dashes in front
            "#]],
        );
    }
}
