//! Spells out `use` trees: `use tonic::{Request, Status}` names `tonic::Status`.

/// Every full path that `use` declarations name, with its line (from 1).
///
/// Takes masked text. Renames keep the original name, because that is what rules speak of.
pub(super) fn imports(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let is_word = at == 0 || !is_name_character(code[..at].chars().next_back());
        let Some(length) = code[at..].find(';') else { continue };
        if is_word {
            let line = 1 + code[..at].matches('\n').count();
            let tree = &code[at + "use ".len()..at + length];
            spell_out(&Prefix { path: String::new(), line }, tree, &mut found);
        }
    }
    found
}

struct Prefix {
    path: String,
    line: usize,
}

fn spell_out(prefix: &Prefix, tree: &str, found: &mut Vec<(usize, String)>) {
    let line = prefix.line + leading_lines(tree);
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let inner = Prefix {
            path: format!("{}{}", prefix.path, head.trim()),
            line: line + head.matches('\n').count(),
        };
        let group = group.strip_suffix('}').unwrap_or(group);
        let mut skipped = 0;
        for branch in split_branches(group) {
            let at = Prefix { path: inner.path.clone(), line: inner.line + skipped };
            spell_out(&at, branch, found);
            skipped += branch.matches('\n').count();
        }
    } else if !tree.is_empty() {
        let name = tree.split_whitespace().next().unwrap_or(tree);
        let path = format!("{}{name}", prefix.path);
        found.push((line, path.strip_suffix("::self").unwrap_or(&path).to_owned()));
    }
}

fn leading_lines(text: &str) -> usize {
    text[..text.len() - text.trim_start().len()].matches('\n').count()
}

/// Splits at the commas outside braces.
fn split_branches(group: &str) -> Vec<&str> {
    let mut branches = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                branches.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    branches.push(&group[start..]);
    branches
}

fn is_name_character(character: Option<char>) -> bool {
    character.is_some_and(|character| character.is_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &str, expected: &[(usize, &str)]) {
        let found = imports(code);
        let found: Vec<(usize, &str)> =
            found.iter().map(|(line, path)| (*line, path.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn trees_are_spelled_out_with_their_lines() {
        check("use tonic::{Request, Status as S};", &[(1, "tonic::Request"), (1, "tonic::Status")]);
        check(
            "\nuse std::{\n    env::{self, var},\n    fs,\n};",
            &[(3, "std::env"), (3, "std::env::var"), (4, "std::fs")],
        );
        check("pub(crate) use a::b::*;", &[(1, "a::b::*")]);
    }

    #[test]
    fn other_words_are_not_imports() {
        check("let because = reuse; fn f() {}", &[]);
    }
}
