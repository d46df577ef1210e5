//! Why a call did not do what it was asked: the three ways in which one can end without success, and
//! an answer that makes no sense.

use std::error;
use std::fmt;

use registry::Fault;

/// A provider's words are cut here; they end up in logs, Events and the status.
const WORDS_CHARS_MAX: usize = 500;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Answered so. Not asked again until a restart.
    #[error("the provider does not support {method}")]
    Unsupported { method: Method },
    /// Answered with a refusal. Should something have happened all the same, the next reading shows it.
    #[error("the provider refused {method}: {message} ({code})")]
    Rejected { method: Method, code: String, message: String },
    /// Not answered. What was asked may have been done.
    #[error("no answer to {method}")]
    Unknown {
        method: Method,
        #[source]
        source: Box<dyn error::Error + Send + Sync>,
    },
    /// Answered with something that cannot be read.
    #[error("the answer to {method} cannot be read")]
    Unreadable {
        method: Method,
        #[source]
        source: Box<dyn error::Error + Send + Sync>,
    },
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    Refresh,
    NodeGroups,
    NodeGroupForNode,
    NodeGroupTargetSize,
    NodeGroupIncreaseSize,
    NodeGroupDecreaseTargetSize,
    NodeGroupDeleteNodes,
    NodeGroupNodes,
    NodeGroupTemplateNodeInfo,
    NodeGroupGetOptions,
    GpuLabel,
    GetAvailableGpuTypes,
    Cleanup,
}

// === impl Error ===

impl Error {
    /// A refusal, its words cut to a bearable length.
    pub fn rejected(method: Method, code: impl fmt::Display, message: &str) -> Self {
        let message = message.chars().take(WORDS_CHARS_MAX).collect();
        Self::Rejected { method, code: code.to_string(), message }
    }

    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Unsupported { .. })
    }

    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// As the registry keeps it, causes included.
    #[must_use]
    pub fn to_fault(&self) -> Fault {
        let mut words = self.to_string();
        let mut cause = error::Error::source(self);
        while let Some(error) = cause {
            words += &format!(": {error}");
            cause = error.source();
        }
        Fault(words.chars().take(WORDS_CHARS_MAX).collect())
    }
}

// === impl Method ===

impl Method {
    pub const ALL: [Self; 13] = [
        Self::Refresh,
        Self::NodeGroups,
        Self::NodeGroupForNode,
        Self::NodeGroupTargetSize,
        Self::NodeGroupIncreaseSize,
        Self::NodeGroupDecreaseTargetSize,
        Self::NodeGroupDeleteNodes,
        Self::NodeGroupNodes,
        Self::NodeGroupTemplateNodeInfo,
        Self::NodeGroupGetOptions,
        Self::GpuLabel,
        Self::GetAvailableGpuTypes,
        Self::Cleanup,
    ];

    /// As the protocol calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refresh => "Refresh",
            Self::NodeGroups => "NodeGroups",
            Self::NodeGroupForNode => "NodeGroupForNode",
            Self::NodeGroupTargetSize => "NodeGroupTargetSize",
            Self::NodeGroupIncreaseSize => "NodeGroupIncreaseSize",
            Self::NodeGroupDecreaseTargetSize => "NodeGroupDecreaseTargetSize",
            Self::NodeGroupDeleteNodes => "NodeGroupDeleteNodes",
            Self::NodeGroupNodes => "NodeGroupNodes",
            Self::NodeGroupTemplateNodeInfo => "NodeGroupTemplateNodeInfo",
            Self::NodeGroupGetOptions => "NodeGroupGetOptions",
            Self::GpuLabel => "GPULabel",
            Self::GetAvailableGpuTypes => "GetAvailableGPUTypes",
            Self::Cleanup => "Cleanup",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
