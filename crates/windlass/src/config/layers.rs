//! Gathers settings from the command line, the environment and the configuration file.
//!
//! As in etcd, a configuration file stands alone: with one, flags and `ETCD_*` variables are
//! ignored. Without one, a flag beats its variable, and a variable beats the default.

use std::path::Path;

use super::{Error, Origin, Setting, Settings, file};
use crate::{
    cli::etcd_args,
    etcd_flags::{self, Effect, Flag, ONE_MEMBER, Shape},
};

const ENV_PREFIX: &str = "ETCD_";
const CONFIG_FILE: &str = "config-file";

/// Variables etcd's packaging sets that are no flags.
const ENV_WITHOUT_FLAG: [&str; 1] = ["ETCD_UNSUPPORTED_ARCH"];

/// The settings in force, and what the user should know about how they came to be.
#[derive(Debug, Default)]
pub(crate) struct Layered {
    pub(crate) settings: Settings,
    pub(crate) warnings: Vec<String>,
}

/// Everything that was said, before it is known what counts.
pub(crate) struct Layers<'a> {
    pub(crate) flags: Vec<etcd_args::Typed>,
    /// All environment variables; those that are not etcd's are skipped.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) read_file: &'a dyn Fn(&Path) -> std::io::Result<String>,
}

// === impl Layers ===

impl Layers<'_> {
    pub(crate) fn resolve(self) -> Result<Layered, Error> {
        let mut layered = match self.config_file() {
            Some(path) => self.by_file(Path::new(&path))?,
            None => self.by_flags_and_environment()?,
        };
        let is_shared = layered.settings.given("journal").is_some();
        let without_effect: Vec<String> = layered
            .settings
            .iter()
            .filter_map(|setting| without_effect(setting, is_shared))
            .collect();
        layered.warnings.extend(without_effect);
        Ok(layered)
    }

    fn config_file(&self) -> Option<String> {
        let from_flag = self.flags.iter().rev().find(|typed| typed.flag.name == CONFIG_FILE);
        let from_env = || self.variable("ETCD_CONFIG_FILE").map(str::to_owned);
        from_flag.map(|typed| typed.value.clone()).filter(|path| !path.is_empty()).or_else(from_env)
    }

    fn by_file(&self, path: &Path) -> Result<Layered, Error> {
        let read = |source| Error::ReadFile { path: path.to_owned(), source };
        let text = (self.read_file)(path).map_err(read)?;
        let mut layered = file::parse(path, &text)?;
        let mut ignored: Vec<String> =
            self.flags.iter().map(|typed| format!("--{}", typed.flag.name)).collect();
        ignored.extend(self.etcd_variables().map(|(name, _)| name.to_owned()));
        ignored.retain(|name| name != "--config-file" && name != "ETCD_CONFIG_FILE");
        if !ignored.is_empty() {
            let names = ignored.join(", ");
            layered.warnings.push(format!("ignored because of --config-file: {names}"));
        }
        Ok(layered)
    }

    fn by_flags_and_environment(&self) -> Result<Layered, Error> {
        let mut layered = Layered::default();
        for (name, value) in self.etcd_variables() {
            match flag_of_variable(name) {
                Some(flag) => {
                    let origin = Origin::Environment(name.to_owned());
                    layered.settings.set(Setting::new(flag, value.to_owned(), origin)?);
                }
                None => layered.warnings.push(format!("unknown environment variable {name}")),
            }
        }
        for typed in &self.flags {
            let variable = typed.flag.env_name();
            if self.variable(&variable).is_some() {
                let flag = typed.flag.name;
                layered.warnings.push(format!("{variable} is overridden by --{flag}"));
            }
            let origin = Origin::Flag(typed.flag.name);
            layered.settings.set(Setting::new(typed.flag, typed.value.clone(), origin)?);
        }
        Ok(layered)
    }

    /// An empty variable counts as not set, as in etcd.
    fn etcd_variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(name, value)| name.starts_with(ENV_PREFIX) && !value.is_empty())
            .filter(|(name, _)| !ENV_WITHOUT_FLAG.contains(name))
    }

    fn variable(&self, wanted: &str) -> Option<&str> {
        self.etcd_variables().find(|(name, _)| *name == wanted).map(|(_, value)| value)
    }
}

/// `--version` and the flags etcd itself ignores cannot be set from the environment.
fn flag_of_variable(name: &str) -> Option<&'static Flag> {
    etcd_flags::all().find(|flag| {
        flag.shape != Shape::Anything && flag.name != "version" && flag.env_name() == name
    })
}

fn without_effect(setting: &Setting, is_shared: bool) -> Option<String> {
    let flag = setting.flag();
    let why = match flag.effect {
        Effect::None => flag.help,
        Effect::Shared if !is_shared => ONE_MEMBER,
        Effect::Shared | Effect::Honoured | Effect::DefaultOnly => return None,
    };
    Some(format!("{} has no effect: {why}", setting.origin()))
}
