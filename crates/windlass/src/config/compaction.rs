//! `--auto-compaction-mode` and `--auto-compaction-retention`, which only mean something together.

use std::time::Duration;

use store::AutoCompaction;

use super::{Error, Settings, duration};

const RETENTION: &str = "auto-compaction-retention";
const SECONDS_PER_HOUR: u64 = 60 * 60;

pub(crate) fn of(settings: &Settings) -> Result<AutoCompaction, Error> {
    match settings.text("auto-compaction-mode") {
        "revision" => by_revision(settings),
        _ => by_time(settings),
    }
}

/// A bare number counts hours.
fn by_time(settings: &Settings) -> Result<AutoCompaction, Error> {
    let text = settings.text(RETENTION);
    let kept = match text.parse::<u64>() {
        Ok(hours) => hours.checked_mul(SECONDS_PER_HOUR).map(Duration::from_secs),
        Err(_) => duration::parse(text),
    };
    match kept {
        Some(Duration::ZERO) => Ok(AutoCompaction::Off),
        Some(kept) => Ok(AutoCompaction::Periodic(kept)),
        None => Err(settings.bad_value(RETENTION, "a number of hours or a duration such as `30m`")),
    }
}

fn by_revision(settings: &Settings) -> Result<AutoCompaction, Error> {
    match settings.text(RETENTION).parse::<i64>() {
        Ok(0) => Ok(AutoCompaction::Off),
        Ok(kept) if kept > 0 => Ok(AutoCompaction::Revision(kept)),
        _ => Err(settings.bad_value(RETENTION, "a number of revisions")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::serve::tests::settings;

    fn check(mode: &str, retention: &str, expected: Option<AutoCompaction>) {
        let line = format!("--auto-compaction-mode={mode} --auto-compaction-retention={retention}");
        assert_eq!(of(&settings(&line)).ok(), expected, "{line}");
    }

    #[test]
    fn retention_is_read_by_its_mode() {
        let hours = |hours: u64| Some(AutoCompaction::Periodic(Duration::from_secs(hours * 3600)));
        check("periodic", "0", Some(AutoCompaction::Off));
        check("periodic", "0s", Some(AutoCompaction::Off));
        check("periodic", "1", hours(1));
        check("periodic", "72h", hours(72));
        check("periodic", "-1", None);
        check("periodic", "often", None);
        check("revision", "0", Some(AutoCompaction::Off));
        check("revision", "1000", Some(AutoCompaction::Revision(1000)));
        check("revision", "1h", None);
        check("revision", "-5", None);
    }
}
