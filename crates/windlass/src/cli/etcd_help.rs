//! `store serve --help`, read off the table of flags.

use crate::etcd_flags::{self, Effect, Flag, Shape};

const INTRODUCTION: &str = "\
Serve etcd's API from a data folder on this machine, or from a shared journal.

Usage: windlass store serve [flags]

  windlass store serve
      Serve on http://localhost:2379, data in ./default.etcd.
  windlass store serve --name a --data-dir /var/lib/windlass
      Serve from a folder of your own.
  windlass store serve --journal ignite://10.0.0.1:10800,10.0.0.2:10800
      Serve what is kept in Apache Ignite, together with others who do.
  windlass store serve --config-file etcd.yaml
      Take everything from a file. Flags and ETCD_* variables are then ignored.

Every flag of etcd 3.7 is known, with one dash or two, and as a variable: --data-dir is also
ETCD_DATA_DIR. A flag beats its variable. Durations are written `1h30m`, lists with commas.
";

const CONCLUSION: &str = "\
Exit codes:
  0  stopped because it was asked to
  1  failed
  2  a flag, a variable or the file is wrong
";

pub(crate) fn text() -> String {
    let mut text = INTRODUCTION.to_owned();
    for section in etcd_flags::SECTIONS {
        let is_honoured = |flag: &&Flag| matches!(flag.effect, Effect::Honoured | Effect::Shared);
        let mut honoured = section.flags.iter().filter(is_honoured).peekable();
        if honoured.peek().is_some() {
            text += &format!("\n{}:\n", section.title);
        }
        honoured.for_each(|flag| text += &entry(flag));
    }
    text += "\nRefused, unless at etcd's default:\n";
    with_effect(Effect::DefaultOnly).for_each(|flag| text += &entry(flag));
    text += "\nAccepted with a warning, without effect:\n";
    let names: Vec<String> =
        with_effect(Effect::None).map(|flag| format!("--{}", flag.name)).collect();
    text += &wrapped(&names);
    text + "\n" + CONCLUSION
}

fn with_effect(effect: Effect) -> impl Iterator<Item = &'static Flag> {
    etcd_flags::all().filter(move |flag| flag.effect == effect)
}

fn entry(flag: &Flag) -> String {
    let value = match flag.shape {
        Shape::Switch | Shape::Anything => "",
        Shape::Text | Shape::Choice(_) => " <text>",
        Shape::Unsigned | Shape::Signed => " <number>",
        Shape::Duration => " <duration>",
        Shape::List => " <list>",
        Shape::Urls => " <urls>",
    };
    let default = match flag.default {
        "" | "false" => String::new(),
        default => format!(" [default: {default}]"),
    };
    format!("  --{}{value}\n      {}{default}\n", flag.name, flag.help)
}

/// Names in lines of a terminal's width.
fn wrapped(names: &[String]) -> String {
    const WIDTH: usize = 96;
    let mut text = String::new();
    let mut line = String::new();
    for name in names {
        if line.len() + name.len() + 1 > WIDTH {
            text += &format!(" {line}\n");
            line.clear();
        }
        line += &format!(" {name}");
    }
    text + &format!(" {line}\n")
}
