//! The text format from before OpenMetrics, in which etcd answers and which every scraper reads.
//!
//! The two differ in what a counter is called: OpenMetrics describes `x` and samples `x_total`, the
//! older format describes `x_total` too, and takes a sample without a description for no counter.

use std::fmt::Write;

/// Rewrites what was rendered for OpenMetrics.
pub(crate) fn from_open_metrics(open: &str) -> String {
    let mut classic = String::with_capacity(open.len());
    let mut lines = open.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        let described = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '));
        let kind = lines.peek().and_then(|next| next.strip_prefix("# TYPE "));
        let is_counter =
            |name: &str| kind.and_then(|kind| kind.strip_prefix(name)) == Some(" counter");
        match described {
            Some((name, help)) if is_counter(name) => {
                lines.next();
                write!(classic, "# HELP {name}_total {help}\n# TYPE {name}_total counter\n")
            }
            _ => writeln!(classic, "{line}"),
        }
        .expect("writing to a string cannot fail");
    }
    classic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_described_by_the_name_they_have() {
        let open = "# HELP a A thing.\n# TYPE a counter\na_total 1\n\
                    # HELP b_total B.\n# TYPE b_total gauge\nb_total 2\n# EOF\n";
        let classic = "# HELP a_total A thing.\n# TYPE a_total counter\na_total 1\n\
                       # HELP b_total B.\n# TYPE b_total gauge\nb_total 2\n";
        assert_eq!(from_open_metrics(open), classic);
    }
}
