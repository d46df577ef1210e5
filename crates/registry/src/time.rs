//! Arithmetic on moments that cannot fail, and how moments and durations are written. Reads no clock.

use std::time::Duration;

use jiff::Timestamp;

/// The moment after `at`, or the end of time: a deadline beyond it is never reached either way.
pub(crate) fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// How long `to` is after `from`; nothing if it is before.
pub(crate) fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}

/// `3m02s`, `15m`, `1h05m`: whole seconds, without units that are zero at the end.
pub(crate) fn words(duration: Duration) -> String {
    let (hours, minutes, seconds) = parts(duration);
    match (hours, minutes, seconds) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, 0) => format!("{minutes}m"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, 0, 0) => format!("{hours}h"),
        (hours, minutes, 0) => format!("{hours}h{minutes:02}m"),
        (hours, minutes, seconds) => format!("{hours}h{minutes:02}m{seconds:02}s"),
    }
}

/// `3m0s`: as upstream's messages have it, where alerts look for it.
pub(crate) fn upstream_words(duration: Duration) -> String {
    match parts(duration) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// `10:17:11`, with the date if it is not today's.
pub(crate) fn clock(at: Timestamp, now: Timestamp) -> String {
    let day = |at: Timestamp| at.strftime("%F").to_string();
    let format = if day(at) == day(now) { "%T" } else { "%F %T" };
    at.strftime(format).to_string()
}

fn parts(duration: Duration) -> (u64, u64, u64) {
    let seconds = duration.as_secs();
    (seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_whole_seconds() {
        let check = |seconds, ours: &str, upstream: &str| {
            let duration = Duration::from_secs(seconds);
            assert_eq!((words(duration), upstream_words(duration)), (ours.into(), upstream.into()));
        };
        check(0, "0s", "0s");
        check(182, "3m02s", "3m2s");
        check(180, "3m", "3m0s");
        check(3_600, "1h", "1h0m0s");
        check(3_900, "1h05m", "1h5m0s");
        check(90_061, "25h01m01s", "25h1m1s");
    }

    #[test]
    fn the_date_is_written_if_it_is_another() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-03-01T08:00:00Z");
        assert_eq!(clock(at("2026-03-01T07:59:58Z"), now), "07:59:58");
        assert_eq!(clock(at("2026-02-28T23:00:00Z"), now), "2026-02-28 23:00:00");
    }

    #[test]
    fn arithmetic_ends_at_the_end_of_time() {
        let forever = Duration::from_secs(u64::MAX);
        assert_eq!(later(Timestamp::UNIX_EPOCH, forever), Timestamp::MAX);
        assert_eq!(elapsed(Timestamp::MAX, Timestamp::MIN), Duration::ZERO);
    }
}
