//! How a list goes on where it stopped: the revision all its pages show, and the last task of the
//! page before. Clients pass it back as it is.

use std::fmt;
use std::str::FromStr;

use super::error::{Error, Field};
use crate::core::id::{Revision, TaskId};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) at: Revision,
    pub(super) after: TaskId,
}

// === impl Token ===

impl Token {
    /// `None` for the first page.
    pub(super) fn read(text: &str) -> Result<Option<Self>, Error> {
        if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at, self.after)
    }
}

impl FromStr for Token {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parse = || {
            let (at, after) = text.split_once('.')?;
            let at = at.parse().ok().filter(|at| *at > 0)?;
            Some(Self { at: Revision(at), after: after.parse().ok()? })
        };
        parse().ok_or_else(|| Error::field("token", Field::NotAToken(text.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_out_is_read_and_nothing_else() {
        let token = "17.0190a7e6-8c00-7d3e-8000-00000000002a";
        assert_eq!(token.parse::<Token>().unwrap().to_string(), token);
        assert_eq!(Token::read("").unwrap(), None);
        for other in [
            "17",
            "17.",
            "x.0190a7e6-8c00-7d3e-8000-00000000002a",
            "0.0190a7e6-8c00-7d3e-8000-00000000002a",
        ] {
            let words = Token::read(other).unwrap_err().to_string();
            assert!(words.starts_with("token: "), "{words}");
        }
    }
}
