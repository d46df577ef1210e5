//! Words: how bytes are spelled in a story, in both directions.

use std::{collections::BTreeMap, fmt, iter::Peekable, str::Chars};

use bytes::Bytes;

use super::ErrorKind;

/// The words of one line, taken one after another; flags are taken by name.
#[derive(Debug)]
pub(super) struct Words {
    plain: std::vec::IntoIter<Vec<u8>>,
    flags: BTreeMap<String, Vec<u8>>,
}

/// Bytes as a story spells them.
pub(super) struct Spelled<'a>(pub(super) &'a [u8]);

// === impl Words ===

impl Words {
    pub(super) fn of(line: &str) -> Result<Self, ErrorKind> {
        let mut plain = Vec::new();
        let mut flags = BTreeMap::new();
        let mut chars = line.chars().peekable();
        while let Some(next) = chars.peek().copied() {
            match next {
                ' ' => drop(chars.next()),
                '-' if is_flag(&chars) => {
                    let name = flag_name(&mut chars);
                    flags.insert(name, word(&mut chars)?);
                }
                _ => plain.push(word(&mut chars)?),
            }
        }
        Ok(Self { plain: plain.into_iter(), flags })
    }

    pub(super) fn len(&self) -> usize {
        self.plain.len()
    }

    pub(super) fn next(&mut self, what: &'static str) -> Result<Bytes, ErrorKind> {
        self.plain.next().map(Bytes::from).ok_or(ErrorKind::Missing(what))
    }

    /// The next word, or nothing if there is none.
    pub(super) fn next_or_empty(&mut self) -> Bytes {
        self.plain.next().map(Bytes::from).unwrap_or_default()
    }

    pub(super) fn next_text(&mut self, what: &'static str) -> Result<String, ErrorKind> {
        self.next(what).map(|word| text(&word))
    }

    pub(super) fn next_number(&mut self, what: &'static str) -> Result<i64, ErrorKind> {
        number(&self.next(what)?)
    }

    /// Whether the flag stands there.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        self.flags.remove(name).is_some()
    }

    /// The flag's number, 0 if it does not stand there.
    pub(super) fn flag_number(&mut self, name: &str) -> Result<i64, ErrorKind> {
        self.flags.remove(name).map_or(Ok(0), |value| number(&value))
    }

    /// The number of the flag's name in an enum, 0 if the flag does not stand there.
    pub(super) fn flag_enum(
        &mut self,
        flag: &'static str,
        by_name: impl Fn(&str) -> Option<i32>,
    ) -> Result<i32, ErrorKind> {
        self.flags.remove(flag).map_or(Ok(0), |value| enum_number(&text(&value), flag, by_name))
    }

    /// Refuses what no one took.
    pub(super) fn finish(mut self) -> Result<(), ErrorKind> {
        if let Some(word) = self.plain.next() {
            return Err(ErrorKind::Surplus(text(&word)));
        }
        self.flags.into_keys().next().map_or(Ok(()), |name| Err(ErrorKind::UnknownFlag(name)))
    }
}

/// An enum's number by its name, in any case, or as it stands.
pub(super) fn enum_number(
    word: &str,
    what: &'static str,
    by_name: impl Fn(&str) -> Option<i32>,
) -> Result<i32, ErrorKind> {
    by_name(&word.to_ascii_uppercase())
        .or_else(|| word.parse().ok())
        .ok_or_else(|| ErrorKind::UnknownName(word.to_owned(), what))
}

pub(super) fn number(word: &[u8]) -> Result<i64, ErrorKind> {
    let word = text(word);
    match word.parse() {
        Ok(number) => Ok(number),
        Err(_) => Err(ErrorKind::NotANumber(word)),
    }
}

fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

fn is_flag(chars: &Peekable<Chars<'_>>) -> bool {
    chars.clone().take(2).eq("--".chars())
}

/// Takes `--name` and the `=` behind it.
fn flag_name(chars: &mut Peekable<Chars<'_>>) -> String {
    let name = std::iter::from_fn(|| chars.next_if(|c| !matches!(c, ' ' | '='))).skip(2).collect();
    chars.next_if_eq(&'=');
    name
}

/// Takes the characters up to the next blank, or up to the closing quote.
fn word(chars: &mut Peekable<Chars<'_>>) -> Result<Vec<u8>, ErrorKind> {
    let is_quoted = chars.next_if_eq(&'"').is_some();
    let mut bytes = Vec::new();
    loop {
        match chars.peek() {
            None if is_quoted => return Err(ErrorKind::OpenQuote),
            None => return Ok(bytes),
            Some(' ') if !is_quoted => return Ok(bytes),
            Some('"') if is_quoted => {
                chars.next();
                return Ok(bytes);
            }
            Some(_) => bytes.extend(character(chars)?),
        }
    }
}

/// One character, or the byte its escape means.
fn character(chars: &mut Peekable<Chars<'_>>) -> Result<Vec<u8>, ErrorKind> {
    let first = chars.next().ok_or(ErrorKind::BadEscape)?;
    if first != '\\' {
        return Ok(first.to_string().into_bytes());
    }
    let byte = match chars.next().ok_or(ErrorKind::BadEscape)? {
        '0' => 0,
        'n' => b'\n',
        'x' => {
            let digits: String = chars.by_ref().take(2).collect();
            match u8::from_str_radix(&digits, 16) {
                Ok(byte) => byte,
                Err(_) => return Err(ErrorKind::BadEscape),
            }
        }
        same @ ('"' | '\\') => same as u8,
        _ => return Err(ErrorKind::BadEscape),
    };
    Ok(vec![byte])
}

// === impl Spelled ===

impl fmt::Display for Spelled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        if !self.0.is_empty() && self.0.iter().all(is_plain) {
            return f.write_str(&text(self.0));
        }
        f.write_str("\"")?;
        for byte in self.0 {
            match byte {
                0 => f.write_str("\\0")?,
                b'\n' => f.write_str("\\n")?,
                b'"' | b'\\' => write!(f, "\\{}", *byte as char)?,
                b' '..=b'~' => write!(f, "{}", *byte as char)?,
                other => write!(f, "\\x{other:02x}")?,
            }
        }
        f.write_str("\"")
    }
}
