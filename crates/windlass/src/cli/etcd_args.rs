//! etcd's command line, which is Go's: one or two dashes, `-name x` or `-name=x`, switches without
//! a separate value, nothing but flags. Clap does not speak it, so it is read here off the table.

use crate::{
    config::{Error, suggest},
    etcd_flags::{self, Flag, Shape},
};

/// One flag as typed.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) flag: &'static Flag,
    pub(crate) value: String,
}

/// What the whole command line asks for.
#[derive(Debug)]
pub(crate) enum Request {
    Help,
    Version,
    Serve(Vec<Typed>),
}

/// Reads the arguments after the program's name.
pub(crate) fn parse(arguments: &[String]) -> Result<Request, Error> {
    let mut typed = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let body = strip_dashes(argument)?;
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (body, None),
        };
        if matches!(name, "h" | "help") {
            return Ok(Request::Help);
        }
        let flag = find(name)?;
        let value = match (value, flag.shape) {
            (Some(value), _) => value,
            (None, Shape::Switch | Shape::Anything) => "true".to_owned(),
            (None, _) => rest.next().cloned().ok_or(Error::MissingValue { name: flag.name })?,
        };
        typed.push(Typed { flag, value });
    }
    if typed.iter().any(|typed| typed.flag.name == "version" && typed.value != "false") {
        return Ok(Request::Version);
    }
    Ok(Request::Serve(typed))
}

fn strip_dashes(argument: &str) -> Result<&str, Error> {
    let body = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
    body.filter(|body| !body.is_empty() && !body.starts_with(['-', '=']))
        .ok_or_else(|| Error::NotAFlag { argument: argument.to_owned() })
}

fn find(name: &str) -> Result<&'static Flag, Error> {
    etcd_flags::find(name).ok_or_else(|| Error::UnknownFlag {
        name: name.to_owned(),
        suggestion: suggest::closest(name, etcd_flags::all().map(|flag| flag.name)),
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(line: &str, expected: Expect) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let actual = match parse(&arguments) {
            Ok(Request::Help) => "help".to_owned(),
            Ok(Request::Version) => "version".to_owned(),
            Ok(Request::Serve(typed)) => typed
                .iter()
                .map(|t| format!("{}={}", t.flag.name, t.value))
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => format!("error: {error}; hint: {}", error.hint()),
        };
        expected.assert_eq(&actual);
    }

    #[test]
    fn dashes_and_equals_signs_are_free() {
        check("--name a", expect!["name=a"]);
        check("-name a", expect!["name=a"]);
        check("--name=a", expect!["name=a"]);
        check("-name=a=b", expect!["name=a=b"]);
        check("--name= --data-dir d", expect!["name= data-dir=d"]);
    }

    #[test]
    fn switches_take_no_separate_value() {
        check("--auto-tls --name a", expect!["auto-tls=true name=a"]);
        check("--auto-tls=false", expect!["auto-tls=false"]);
        check(
            "--auto-tls false",
            expect![[
                r#"error: `false` is not a flag; hint: `windlass store serve --help` lists every flag"#
            ]],
        );
        check("--v=9", expect!["v=9"]);
    }

    #[test]
    fn mistakes_are_named() {
        check(
            "--data-dri d",
            expect!["error: unknown flag `--data-dri`; hint: did you mean `--data-dir`?"],
        );
        check(
            "--name",
            expect!["error: flag `--name` needs a value; hint: write `--name=<value>`"],
        );
        check(
            "gateway",
            expect![
                "error: `gateway` is not a flag; hint: `windlass store serve --help` lists every flag"
            ],
        );
        check(
            "---name a",
            expect![
                "error: `---name` is not a flag; hint: `windlass store serve --help` lists every flag"
            ],
        );
    }

    #[test]
    fn help_and_version_are_requests() {
        check("-h", expect!["help"]);
        check("--name a --help", expect!["help"]);
        check("--version", expect!["version"]);
        check("--version=false", expect!["version=false"]);
    }
}
