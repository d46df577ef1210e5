//! The flags of `windlass autoscaler run`: upstream's names and defaults, and a few of our own. Reads
//! what was typed off one table; knows of upstream's other flags so far as to say that they do nothing.

mod foreign;
mod table;

use std::path::PathBuf;

use autoscaler::Options;

use crate::config::{duration, suggest};

pub(crate) use table::{FLAGS, Flag};

/// The provider beside `externalgrpc`.
pub(crate) const SIMCLOUD: &str = "simcloud";

/// What a command line comes to.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) options: Options,
    pub(crate) cloud_provider: String,
    pub(crate) cloud_config: Option<PathBuf>,
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    pub(crate) record_inputs: Option<PathBuf>,
    pub(crate) log_level: String,
    pub(crate) log_format: String,
    /// Flags of upstream's that do nothing here.
    pub(crate) ignored: Vec<String>,
}

/// Whether help is wanted instead.
#[derive(Debug)]
pub(crate) enum Request {
    Help,
    Run(Box<Settings>),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("unknown flag `--{name}`")]
    Unknown { name: String, suggestion: Option<&'static str> },
    #[error("`{0}` is not a flag")]
    NotAFlag(String),
    #[error("flag `--{0}` needs a value")]
    NoValue(String),
    #[error("--{flag}: `{value}` is not {expected}")]
    Value { flag: &'static str, value: String, expected: &'static str },
}

// === impl Error ===

impl Error {
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Unknown { suggestion: Some(name), .. } => format!("did you mean `--{name}`?"),
            Self::NoValue(name) => format!("write `--{name}=<value>`"),
            _ => "`windlass autoscaler run --help` lists every flag".to_owned(),
        }
    }
}

// === impl Settings ===

impl Settings {
    fn new(identity: String) -> Self {
        Self {
            options: Options::new(identity),
            cloud_provider: "externalgrpc".to_owned(),
            cloud_config: None,
            kubeconfig: None,
            context: None,
            record_inputs: None,
            log_level: "info".to_owned(),
            log_format: "json".to_owned(),
            ignored: Vec::new(),
        }
    }
}

/// Reads the arguments, written as Go programs take them: one dash or two, `-name x` or `-name=x`,
/// switches without a value of their own, and `_` in a name for `-`.
pub(crate) fn parse(arguments: &[String], identity: String) -> Result<Request, Error> {
    let mut settings = Settings::new(identity);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let body = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
        let body = body.filter(|body| !body.is_empty() && !body.starts_with(['-', '=']));
        let body = body.ok_or_else(|| Error::NotAFlag(argument.clone()))?;
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (body, None),
        };
        let name = name.replace('_', "-");
        let name = name.as_str();
        if matches!(name, "h" | "help") {
            return Ok(Request::Help);
        }
        let mut next = || rest.next().cloned().ok_or_else(|| Error::NoValue(name.to_owned()));
        let known = FLAGS.iter().find(|flag| flag.name == name);
        match (known, foreign::is_switch(name)) {
            (Some(flag), _) => {
                let value = match value {
                    Some(value) => value,
                    None if flag.is_switch() => "true".to_owned(),
                    None => next()?,
                };
                apply(flag, &mut settings, value)?;
            }
            (None, Some(is_switch)) => {
                if value.is_none() && !is_switch {
                    next()?;
                }
                settings.ignored.push(name.to_owned());
            }
            (None, None) => {
                let all = FLAGS.iter().map(|flag| flag.name);
                let suggestion = suggest::closest(name, all);
                return Err(Error::Unknown { name: name.to_owned(), suggestion });
            }
        }
    }
    settle(&mut settings.options);
    Ok(Request::Run(Box::new(settings)))
}

fn apply(flag: &'static Flag, settings: &mut Settings, value: String) -> Result<(), Error> {
    let set = (flag.set)(settings, &value);
    set.map_err(|expected| Error::Value { flag: flag.name, value, expected })
}

/// What follows from several flags.
fn settle(options: &mut Options) {
    options.registry.drain_timeout = options.plans.drain_timeout();
    options.plans.startup_taints.clone_from(&options.registry.startup_taints);
    options.plans.scale_down.removes_unready = options.registry.removes_unready;
}

pub(crate) fn help() -> String {
    let mut text = HELP.to_owned();
    for flag in FLAGS {
        let (name, default, help) = (flag.name, flag.default, flag.help);
        let default = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        text += &format!("  --{name}{default}\n      {help}\n");
    }
    text + EXIT_CODES
}

const HELP: &str = "\
Make node groups follow the pods. Start several: one leads, the others stand by.

Usage: windlass autoscaler run --cloud-config FILE [flags]

The file says where the provider is: address, and for TLS key, cert, cacert; or, with
--cloud-provider=simcloud, what the simulated cloud is like. Flags are those of
Kubernetes' Cluster Autoscaler, with its names and defaults, and a few of our own; flags of its
that have no counterpart here are accepted with a warning. Durations are written `1h30m`.

";

const EXIT_CODES: &str = "
Exit codes:
  0  stopped because it was asked to
  1  failed
  2  a flag or a file is wrong
";

#[cfg(test)]
mod tests;
