//! ConfigMaps as text that a person can write and a fuzzer can change: a name in the first line, then
//! one entry a line, `l KEY=VALUE` for a label, `a` for an annotation, `d` for data. Other lines mean
//! nothing.

use labels::core::object::Document;

pub(crate) fn parse(text: &str) -> Document {
    let mut lines = text.lines();
    let name = lines.next().unwrap_or_default().to_owned();
    let mut document = Document { name, ..Document::default() };
    for (kind, entry) in lines.filter_map(|line| line.split_once(' ')) {
        let (key, value) = entry.split_once('=').unwrap_or((entry, ""));
        let entries = match kind {
            "l" => &mut document.labels,
            "a" => &mut document.annotations,
            "d" => &mut document.data,
            _ => continue,
        };
        entries.insert(key.to_owned(), value.to_owned());
    }
    document
}
