//! Blanks comments and literals, so that rules see code only.

/// What the scan is inside of.
#[derive(Clone, Copy)]
enum Inside {
    Code,
    LineComment,
    /// Block comments nest; holds the depth.
    BlockComment(usize),
    /// A string or character, ended by this byte unless escaped.
    Quoted(u8),
    /// A raw string, ended by a quote and this many hashes.
    Raw(usize),
}

/// The same text with comments and literals as spaces; lines and columns stay where they are.
pub(super) fn mask(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut masked = Vec::with_capacity(bytes.len());
    let mut inside = Inside::Code;
    while masked.len() < bytes.len() {
        let at = masked.len();
        let (width, next) = step(bytes, at, inside);
        let is_code = matches!((inside, next), (Inside::Code, Inside::Code));
        for &byte in &bytes[at..at + width] {
            masked.push(if is_code || byte == b'\n' { byte } else { b' ' });
        }
        inside = next;
    }
    String::from_utf8(masked).expect("only whole characters of literals and comments are blanked")
}

/// How many bytes to take, and what the scan is inside of after them.
fn step(bytes: &[u8], at: usize, inside: Inside) -> (usize, Inside) {
    let rest = &bytes[at..];
    match inside {
        Inside::Code => step_code(bytes, at),
        Inside::LineComment if rest[0] == b'\n' => (1, Inside::Code),
        Inside::LineComment => (1, inside),
        Inside::BlockComment(depth) if rest.starts_with(b"*/") => {
            (2, if depth == 1 { Inside::Code } else { Inside::BlockComment(depth - 1) })
        }
        Inside::BlockComment(depth) if rest.starts_with(b"/*") => {
            (2, Inside::BlockComment(depth + 1))
        }
        Inside::BlockComment(_) => (1, inside),
        Inside::Quoted(_) if rest[0] == b'\\' => (rest.len().min(2), inside),
        Inside::Quoted(quote) if rest[0] == quote => (1, Inside::Code),
        Inside::Quoted(_) => (1, inside),
        Inside::Raw(hashes) if ends_raw(rest, hashes) => (1 + hashes, Inside::Code),
        Inside::Raw(_) => (1, inside),
    }
}

fn step_code(bytes: &[u8], at: usize) -> (usize, Inside) {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return (2, Inside::LineComment);
    }
    if rest.starts_with(b"/*") {
        return (2, Inside::BlockComment(1));
    }
    let follows_name = at > 0 && is_name_byte(bytes[at - 1]);
    if let (false, Some((width, hashes))) = (follows_name, raw_start(rest)) {
        return (width, Inside::Raw(hashes));
    }
    match rest[0] {
        b'"' => (1, Inside::Quoted(b'"')),
        b'\'' if is_character(rest) => (1, Inside::Quoted(b'\'')),
        _ => (1, Inside::Code),
    }
}

/// The width of `r"`, `r##"` or `br"`, and its hashes.
fn raw_start(rest: &[u8]) -> Option<(usize, usize)> {
    let after_b = rest.strip_prefix(b"b").or(rest.strip_prefix(b"c")).unwrap_or(rest);
    let after_r = after_b.strip_prefix(b"r")?;
    let hashes = after_r.iter().take_while(|&&byte| byte == b'#').count();
    let is_start = after_r.get(hashes) == Some(&b'"');
    is_start.then(|| (rest.len() - after_r.len() + hashes + 1, hashes))
}

fn ends_raw(rest: &[u8], hashes: usize) -> bool {
    rest[0] == b'"' && rest.len() > hashes && rest[1..=hashes].iter().all(|&byte| byte == b'#')
}

/// Tells `'a'` and `'\n'` from the lifetime `'a`.
fn is_character(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(&first) if is_name_byte(first) && first.is_ascii() => rest.get(2) == Some(&b'\''),
        Some(_) => true,
        None => false,
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, code: &str) {
        let masked = mask(text);
        assert_eq!(masked.len(), text.len(), "columns stay");
        let squeezed: Vec<&str> = masked.split_whitespace().collect();
        assert_eq!(squeezed.join(" "), code);
    }

    #[test]
    fn comments_and_strings_vanish() {
        check("a(); // tokio::spawn\nb();", "a(); b();");
        check("a(); /* x /* y */ z */ b();", "a(); b();");
        check(r#"call("tokio::spawn \" still", x)"#, "call( , x)");
        check("/// doc with `code`\nfn f() {}", "fn f() {}");
    }

    #[test]
    fn raw_strings_end_at_their_hashes() {
        check(r###"a(r#"say "x" "#, b)"###, "a( , b)");
        check(r##"a(br"\", b)"##, "a( , b)");
        check("for r in rs { bar }", "for r in rs { bar }");
    }

    #[test]
    fn lifetimes_are_code_and_characters_are_not() {
        check("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
        check("x == '\"' || y == '\\'' || z == 'ä'", "x == || y == || z ==");
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(mask("\"a\nb\" c").lines().count(), 2);
    }
}
