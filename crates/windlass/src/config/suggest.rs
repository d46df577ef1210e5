//! `did you mean …?` for names that were mistyped.

/// How alike two names must be, from 0 to 1, to be worth suggesting.
const LIKENESS_MIN: f64 = 0.7;

/// etcd 3.6 dropped this prefix from the flags it made permanent.
const FORMER_PREFIX: &str = "experimental-";

/// The known name that `typed` most likely stood for.
pub(crate) fn closest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let typed = typed.to_lowercase().replace('_', "-");
    let typed = typed.strip_prefix(FORMER_PREFIX).unwrap_or(&typed);
    known
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(typed, name), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd_flags;

    #[test]
    fn near_misses_are_suggested() {
        for (typed, expected) in [
            ("data-dri", Some("data-dir")),
            ("listen_client_urls", Some("listen-client-urls")),
            ("listen-client-url", Some("listen-client-urls")),
            ("experimental-compaction-batch-limit", Some("compaction-batch-limit")),
            ("quota-bytes", None),
            ("enable-v2", None),
        ] {
            let found = closest(typed, etcd_flags::all().map(|flag| flag.name));
            assert_eq!(found, expected, "{typed}");
        }
    }
}
