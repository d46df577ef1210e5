//! The table of section 5, moment by moment.

use expect_test::{Expect, expect};

use super::*;

fn ms(millis: u64) -> Boottime {
    Boottime(Duration::from_millis(millis))
}

/// Plays a script: `send`, `ack SENT REMAINING_S`, `at` what is due. Each line begins with its time.
fn check(script: &str, expected: &Expect) {
    let mut lease = Lease::granted(Timing::default(), ms(0));
    let mut told = String::new();
    for line in script.lines().map(str::trim) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        let now = ms(number(0));
        match words[1] {
            "send" => lease.on_sent(now),
            "ack" => lease.on_acknowledged(now, ms(number(2)), Duration::from_secs(number(3))),
            _ => {}
        }
        let duty = match lease.duty(now) {
            Duty::SendKeepAlive => "send".to_owned(),
            Duty::Wait(until) => format!("wait until {}", until.0.as_millis()),
            Duty::Fence => "fenced".to_owned(),
        };
        let overdue = if lease.is_overdue(now) { ", overdue" } else { "" };
        told += &format!("{line}: {duty}, deadline {}{overdue}\n", lease.deadline().0.as_millis());
    }
    expected.assert_eq(&told);
}

#[test]
fn keep_alives_move_the_deadline_from_when_they_were_sent() {
    check(
        "0 at
        3332 at
        3334 at
        3400 send
        3900 ack 3400 10
        6734 at
        7000 send
        7001 ack 3400 10
        7002 ack 7000 10",
        &expect![[r#"
            0 at: wait until 3333, deadline 6666
            3332 at: wait until 3333, deadline 6666
            3334 at: send, deadline 6666
            3400 send: wait until 4400, deadline 6666
            3900 ack 3400 10: wait until 6733, deadline 10066
            6734 at: send, deadline 10066
            7000 send: wait until 8000, deadline 10066
            7001 ack 3400 10: wait until 8000, deadline 10066
            7002 ack 7000 10: wait until 10333, deadline 13666
        "#]],
    );
}

#[test]
fn without_an_answer_it_asks_each_second_and_fences_itself() {
    check(
        "3400 send
        4399 at
        4400 send
        5400 send
        6400 send
        6665 at
        6667 at
        7666 at
        7668 at
        7700 ack 6400 10",
        &expect![[r#"
            3400 send: wait until 4400, deadline 6666
            4399 at: wait until 4400, deadline 6666
            4400 send: wait until 5400, deadline 6666
            5400 send: wait until 6400, deadline 6666
            6400 send: wait until 6666, deadline 6666
            6665 at: wait until 6666, deadline 6666
            6667 at: fenced, deadline 6667
            7666 at: fenced, deadline 6667
            7668 at: fenced, deadline 6667, overdue
            7700 ack 6400 10: fenced, deadline 6667, overdue
        "#]],
    );
}

#[test]
fn the_stores_word_fences_at_once() {
    check(
        "3400 send
        3500 ack 3400 0
        3600 ack 3550 10",
        &expect![[r#"
            3400 send: wait until 4400, deadline 6666
            3500 ack 3400 0: fenced, deadline 3500
            3600 ack 3550 10: fenced, deadline 3500
        "#]],
    );
}

/// The process was stopped: the answer was there in time, the node was not.
#[test]
fn an_answer_read_after_the_deadline_is_too_late() {
    check(
        "3400 send\n9000 ack 3400 10",
        &expect![[r#"
        3400 send: wait until 4400, deadline 6666
        9000 ack 3400 10: fenced, deadline 9000
    "#]],
    );
}

#[test]
fn a_lease_is_neither_too_short_nor_too_long() {
    assert!(Timing::new(TTL_MIN).is_ok() && Timing::new(TTL_MAX).is_ok());
    for ttl in [TTL_MIN - Duration::from_millis(1), TTL_MAX + Duration::from_millis(1)] {
        assert_eq!(Timing::new(ttl), Err(TtlError(ttl)));
    }
}
