//! Where the first value of a JSON text ends, learned as the text comes, each byte looked at once.
//! Knows brackets and strings; whether what they enclose is JSON is for whoever reads it.

/// How far a text was looked through.
#[derive(Debug, Default)]
pub(super) struct Scan {
    seen_bytes: usize,
    open_brackets: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Plain,
    InString,
    /// In a string, behind a backslash.
    Escaped,
}

// === impl Scan ===

impl Scan {
    /// Whether there is anything to read in `text`, which is what was looked through before and what
    /// came since: a value that has ended, or one that has no end of its own.
    pub(super) fn has_value(&mut self, text: &[u8]) -> bool {
        while let Some(byte) = text.get(self.seen_bytes) {
            if self.ends_value(*byte) {
                return true;
            }
            self.seen_bytes += 1;
        }
        false
    }

    fn ends_value(&mut self, byte: u8) -> bool {
        match (self.state, byte) {
            (State::Escaped, _) => self.state = State::InString,
            (State::InString, b'\\') => self.state = State::Escaped,
            (State::InString, b'"') => {
                self.state = State::Plain;
                return self.open_brackets == 0;
            }
            (State::Plain, b'"') => self.state = State::InString,
            (State::Plain, b'{' | b'[') => self.open_brackets += 1,
            (State::Plain, b'}' | b']') if self.open_brackets > 1 => self.open_brackets -= 1,
            (State::Plain, b'}' | b']') => return true,
            (State::Plain, byte) => return self.open_brackets == 0 && !byte.is_ascii_whitespace(),
            (State::InString, _) => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At which length there is something to read, if the text comes byte by byte.
    fn check(text: &str, expected: Option<usize>) {
        let mut scan = Scan::default();
        let found = (0..=text.len()).find(|length| scan.has_value(&text.as_bytes()[..*length]));
        assert_eq!(found, expected, "{text}");
        assert_eq!(Scan::default().has_value(text.as_bytes()), expected.is_some(), "{text}");
    }

    #[test]
    fn a_message_is_there_when_its_last_bracket_is() {
        check("{}", Some(2));
        check(" \n{\"a\": [1, {\"b\": null}]} {", Some(25));
        check(r#"{"a": "}\"}\\"}{"#, Some(15));
        for text in ["", " \r\n", r#"{"a": "}"#, r#"{"a": "\"}"#, r#"{"a": [}"#, "{\"a\": 1"] {
            check(text, None);
        }
    }

    #[test]
    fn what_is_no_message_is_read_too() {
        check("null", Some(1));
        check("]", Some(1));
        check(" \"text\" ", Some(7));
        check("\"text", None);
    }
}
