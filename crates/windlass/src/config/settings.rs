//! Which value each flag ends up with, and who said so. Values are text, already checked against
//! the shape of their flag; what they mean together is decided in `serve`.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use super::{Error, duration};
use crate::etcd_flags::{self, Effect, Flag, Shape};

/// What `strconv.ParseBool` takes.
const TRUE: [&str; 6] = ["1", "t", "T", "true", "TRUE", "True"];
const FALSE: [&str; 6] = ["0", "f", "F", "false", "FALSE", "False"];

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Environment(String),
    File { path: PathBuf, line: u64, key: String },
    Default(&'static str),
}

/// One value for one flag.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    flag: &'static Flag,
    text: String,
    origin: Origin,
}

/// The values in force: at most one per flag, defaults left out.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    chosen: BTreeMap<&'static str, Setting>,
}

// === impl Origin ===

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Default(name) => write!(f, "--{name}"),
            Self::Environment(name) => f.write_str(name),
            Self::File { path, line, key } => write!(f, "{}:{line}: {key}", path.display()),
        }
    }
}

// === impl Setting ===

impl Setting {
    /// A value that has the shape its flag asks for.
    pub(crate) fn new(flag: &'static Flag, text: String, origin: Origin) -> Result<Self, Error> {
        let setting = Self { flag, text, origin };
        setting.check()?;
        Ok(setting)
    }

    pub(crate) fn flag(&self) -> &'static Flag {
        self.flag
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    fn check(&self) -> Result<(), Error> {
        match self.flag.shape {
            Shape::Switch => self.switch().map(drop),
            Shape::Unsigned => self.unsigned().map(drop),
            Shape::Signed => self.signed().map(drop),
            Shape::Duration => self.duration().map(drop),
            Shape::Choice(words) if !words.contains(&self.text.as_str()) => {
                Err(self.bad(format!("one of {}", words.join(", "))))
            }
            Shape::Text | Shape::List | Shape::Urls | Shape::Anything | Shape::Choice(_) => Ok(()),
        }?;
        if self.flag.effect == Effect::DefaultOnly && !self.is_default() {
            return Err(Error::Unsupported {
                origin: self.origin.clone(),
                value: self.text.clone(),
                reason: self.flag.help,
            });
        }
        Ok(())
    }

    /// An empty value is how etcd's scripts spell "not given".
    fn is_default(&self) -> bool {
        match self.flag.shape {
            Shape::Switch => self.switch().is_ok_and(|on| on == TRUE.contains(&self.flag.default)),
            _ => self.text.is_empty() || self.text == self.flag.default,
        }
    }

    fn switch(&self) -> Result<bool, Error> {
        match self.text.as_str() {
            text if TRUE.contains(&text) => Ok(true),
            text if FALSE.contains(&text) => Ok(false),
            _ => Err(self.bad("true or false")),
        }
    }

    fn unsigned(&self) -> Result<u64, Error> {
        self.text.parse().map_err(|_source: std::num::ParseIntError| self.bad("a whole number"))
    }

    fn signed(&self) -> Result<i64, Error> {
        self.text.parse().map_err(|_source: std::num::ParseIntError| self.bad("a whole number"))
    }

    fn duration(&self) -> Result<Duration, Error> {
        duration::parse(&self.text).ok_or_else(|| self.bad("a duration such as `10m` or `500ms`"))
    }

    fn bad(&self, expected: impl Into<String>) -> Error {
        Error::BadValue {
            origin: self.origin.clone(),
            value: self.text.clone(),
            expected: expected.into(),
        }
    }
}

// === impl Settings ===

impl Settings {
    /// The later of two values for one flag wins, as in Go's flag parser.
    pub(crate) fn set(&mut self, setting: Setting) {
        self.chosen.insert(setting.flag.name, setting);
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.chosen.contains_key(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.chosen.values()
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.chosen.get(name).map_or_else(|| known(name).default, |setting| &setting.text)
    }

    /// The text, unless it is empty.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        self.text(name).split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
    }

    pub(crate) fn is_on(&self, name: &str) -> Result<bool, Error> {
        self.setting(name).switch()
    }

    pub(crate) fn unsigned(&self, name: &str) -> Result<u64, Error> {
        self.setting(name).unsigned()
    }

    pub(crate) fn signed(&self, name: &str) -> Result<i64, Error> {
        self.setting(name).signed()
    }

    pub(crate) fn duration(&self, name: &str) -> Result<Duration, Error> {
        self.setting(name).duration()
    }

    /// A number that must fit a narrower type.
    pub(crate) fn bounded<T: TryFrom<u64>>(&self, name: &str, expected: &str) -> Result<T, Error> {
        let number = self.unsigned(name)?;
        T::try_from(number).map_err(|_out_of_range| self.bad_value(name, expected))
    }

    pub(crate) fn origin(&self, name: &str) -> Origin {
        self.setting(name).origin
    }

    pub(crate) fn bad_value(&self, name: &str, expected: &str) -> Error {
        self.setting(name).bad(expected)
    }

    /// The value in force, which may be the default.
    fn setting(&self, name: &str) -> Setting {
        self.chosen.get(name).cloned().unwrap_or_else(|| {
            let flag = known(name);
            Setting { flag, text: flag.default.into(), origin: Origin::Default(flag.name) }
        })
    }
}

fn known(name: &str) -> &'static Flag {
    etcd_flags::find(name).expect("code only asks for flags that the table lists")
}
