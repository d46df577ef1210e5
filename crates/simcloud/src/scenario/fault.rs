//! What goes wrong: which fault, where, when and how often.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use autoscaler::provider::Method;
use jiff::fmt::serde::unsigned_duration;
use registry::GroupId;
use serde::Deserialize;

/// One line of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    /// Everywhere, if none is named.
    pub group: Option<GroupId>,
    pub zone: Option<String>,
    /// Since the simulation began.
    pub window: Range<Duration>,
    /// How many machines or calls it strikes.
    pub count: u32,
    /// It strikes one in so many of those it could.
    pub one_in: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    // Machines created meanwhile.
    /// They fail for want of quota, and are listed so.
    Quota(Words),
    /// They fail for another reason, and are listed so.
    CreateError(Words),
    /// None are created, and nobody says so.
    Stockout,
    NeverRegisters,
    WrongProviderId,
    EmptyProviderId,
    NeverReady,

    // Machines that were Ready.
    NotReady,
    /// The kubelet is not heard of.
    Silent,
    /// Not Ready and Ready in turn.
    Flapping {
        every: Duration,
    },
    /// Nothing of a zone is heard of.
    Partition,
    /// The cloud has lost the machine.
    Vanishes,
    /// The Node stays when its machine goes; for good, if no time is given.
    NodeOutlives {
        by: Option<Duration>,
    },

    // Calls made meanwhile.
    SlowDelete {
        takes: Duration,
    },
    DeleteFails {
        code: Code,
        message: String,
    },
    DeleteUnimplemented,
    /// What was asked is done, and never answered.
    TimeoutAfterEffect {
        method: Method,
    },
    CallFails {
        method: Method,
        code: Code,
        message: String,
    },
    /// Targets are shown as they were so long ago.
    StaleTarget {
        by: Duration,
    },
    NoTemplate,
    LegacyReplies,
    /// The server shows a certificate that nobody trusts.
    WrongCertificate,
}

/// What an error says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    pub code: String,
    pub message: String,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Code {
    InvalidArgument,
    NotFound,
    FailedPrecondition,
    ResourceExhausted,
    #[default]
    Internal,
    Unavailable,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    #[error("there is no fault `{0}`")]
    Kind(String),
    #[error("`{fault}` needs `{key}`")]
    Missing { fault: String, key: &'static str },
    #[error("`{fault}` makes nothing of `{key}`")]
    Useless { fault: String, key: &'static str },
    #[error("there is no group `{0}`")]
    Group(GroupId),
    #[error("there is no method `{0}`")]
    Method(String),
    #[error("`{0}` is no way for a call to fail")]
    Code(String),
    #[error("`until` is not after `from`")]
    Window,
    #[error("`{0}` is 0")]
    Zero(&'static str),
}

/// As it is written: which of the keys mean something depends on the fault.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenFault {
    fault: String,
    group: Option<GroupId>,
    zone: Option<String>,
    #[serde(default, with = "unsigned_duration::optional")]
    from: Option<Duration>,
    #[serde(default, with = "unsigned_duration::optional")]
    until: Option<Duration>,
    count: Option<u32>,
    one_in: Option<u64>,
    code: Option<String>,
    message: Option<String>,
    method: Option<String>,
    #[serde(default, with = "unsigned_duration::optional")]
    every: Option<Duration>,
    #[serde(default, with = "unsigned_duration::optional")]
    takes: Option<Duration>,
    #[serde(default, with = "unsigned_duration::optional")]
    by: Option<Duration>,
}

// === impl Kind ===

impl Kind {
    /// Whether it strikes single machines or calls, and not all that happens meanwhile.
    fn is_counted(&self) -> bool {
        !matches!(
            self,
            Self::Stockout
                | Self::Partition
                | Self::StaleTarget { .. }
                | Self::NoTemplate
                | Self::LegacyReplies
                | Self::WrongCertificate
        )
    }
}

// === impl WrittenFault ===

impl WrittenFault {
    pub(super) fn check(mut self, groups: &BTreeSet<&GroupId>) -> Result<Fault, FaultError> {
        let kind = self.kind()?;
        self.refuse_useless(&kind)?;
        if let Some(group) = self.group.as_ref().filter(|group| !groups.contains(group)) {
            return Err(FaultError::Group(group.clone()));
        }
        let window = self.from.unwrap_or(Duration::ZERO)..self.until.unwrap_or(Duration::MAX);
        if window.is_empty() {
            return Err(FaultError::Window);
        }
        let (count, one_in) = (self.count.unwrap_or(u32::MAX), self.one_in.unwrap_or(1));
        if count == 0 || one_in == 0 {
            return Err(FaultError::Zero(if count == 0 { "count" } else { "one_in" }));
        }
        Ok(Fault { kind, group: self.group, zone: self.zone, window, count, one_in })
    }

    /// Takes the keys that mean something to the fault.
    fn kind(&mut self) -> Result<Kind, FaultError> {
        Ok(match self.fault.as_str() {
            "quota" => Kind::Quota(self.words("QUOTA_EXCEEDED", "no quota is left")),
            "create-error" => Kind::CreateError(self.words("CREATE_FAILED", "it did not start")),
            "stockout" => Kind::Stockout,
            "never-registers" => Kind::NeverRegisters,
            "wrong-provider-id" => Kind::WrongProviderId,
            "empty-provider-id" => Kind::EmptyProviderId,
            "never-ready" => Kind::NeverReady,
            "not-ready" => Kind::NotReady,
            "silent" => Kind::Silent,
            "flapping" => Kind::Flapping { every: self.flap()? },
            "partition" if self.zone.is_none() => return Err(self.missing("zone")),
            "partition" => Kind::Partition,
            "vanishes" => Kind::Vanishes,
            "node-outlives" => Kind::NodeOutlives { by: self.by.take() },
            "slow-delete" => {
                let takes = self.takes.take().ok_or_else(|| self.missing("takes"))?;
                Kind::SlowDelete { takes }
            }
            "delete-fails" => {
                let (code, message) = self.failure()?;
                Kind::DeleteFails { code, message }
            }
            "delete-unimplemented" => Kind::DeleteUnimplemented,
            "timeout-after-effect" => Kind::TimeoutAfterEffect { method: self.method()? },
            "call-fails" => {
                let (code, message) = self.failure()?;
                Kind::CallFails { method: self.method()?, code, message }
            }
            "stale-target" => {
                Kind::StaleTarget { by: self.by.take().ok_or_else(|| self.missing("by"))? }
            }
            "no-template" => Kind::NoTemplate,
            "legacy-replies" => Kind::LegacyReplies,
            "wrong-certificate" => Kind::WrongCertificate,
            _ => return Err(FaultError::Kind(self.fault.clone())),
        })
    }

    fn failure(&mut self) -> Result<(Code, String), FaultError> {
        let code = self.code.take().map(|code| code.parse()).transpose()?;
        let message = self.message.take().unwrap_or_else(|| "scripted to fail".to_owned());
        Ok((code.unwrap_or_default(), message))
    }

    fn words(&mut self, code: &str, message: &str) -> Words {
        Words {
            code: self.code.take().unwrap_or_else(|| code.to_owned()),
            message: self.message.take().unwrap_or_else(|| message.to_owned()),
        }
    }

    fn flap(&mut self) -> Result<Duration, FaultError> {
        let every = self.every.take().ok_or_else(|| self.missing("every"))?;
        if every.is_zero() { Err(FaultError::Zero("every")) } else { Ok(every) }
    }

    fn method(&mut self) -> Result<Method, FaultError> {
        let name = self.method.take().ok_or_else(|| self.missing("method"))?;
        let method = Method::ALL.into_iter().find(|method| method.as_str() == name);
        method.ok_or(FaultError::Method(name))
    }

    fn missing(&self, key: &'static str) -> FaultError {
        FaultError::Missing { fault: self.fault.clone(), key }
    }

    fn refuse_useless(&self, kind: &Kind) -> Result<(), FaultError> {
        let is_counted = kind.is_counted();
        let useless = [
            ("code", self.code.is_some()),
            ("message", self.message.is_some()),
            ("method", self.method.is_some()),
            ("every", self.every.is_some()),
            ("takes", self.takes.is_some()),
            ("by", self.by.is_some()),
            ("count", self.count.is_some() && !is_counted),
            ("one_in", self.one_in.is_some() && !is_counted),
        ];
        match useless.into_iter().find(|(_, is_there)| *is_there) {
            Some((key, _)) => Err(FaultError::Useless { fault: self.fault.clone(), key }),
            None => Ok(()),
        }
    }
}

// === impl Code ===

impl std::str::FromStr for Code {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        Ok(match text {
            "invalid-argument" => Self::InvalidArgument,
            "not-found" => Self::NotFound,
            "failed-precondition" => Self::FailedPrecondition,
            "resource-exhausted" => Self::ResourceExhausted,
            "internal" => Self::Internal,
            "unavailable" => Self::Unavailable,
            _ => return Err(FaultError::Code(text.to_owned())),
        })
    }
}
