//! Tables that are read when nobody knows what became of a write.

use super::*;

/// A table in which everything is of this instance.
fn all_of(id: &str, epoch: u64) -> Kept {
    let share = Share { id: id.parse().unwrap(), weight: 100 };
    let slots = Slots::empty(64).unwrap().with_members(&[share], &Load::unknown());
    Kept::new(epoch, &slots)
}

/// Everything else is answered; then the answer to the open write of a table is lost, and this one read.
fn lose_answer(stage: &mut Stage, kept: Kept) {
    let is_table =
        |command: &Command| matches!(command, Command::WriteTable { .. } | Command::ReadTable);
    let is_other = |command: &Command| is_routine(command) && !is_table(command);
    while let Some(index) = stage.open.iter().position(is_other) {
        let command = stage.open.remove(index);
        if let Some(event) = stage.routine(command) {
            stage.tell(event);
        }
    }
    let index = stage.open.iter().position(is_table).expect("a table is written");
    let Command::WriteTable { token, .. } = stage.open.remove(index) else { panic!() };
    stage.tell(Event::Answered { token, answer: Answer::Failed });
    let index = stage.open.iter().position(is_table).expect("it is read");
    assert_eq!(stage.open.remove(index), Command::ReadTable);
    stage.tell(Event::TableRead { kept: Some(kept), version: Version("50".to_owned()) });
}

/// What the dead had belonged to it still by the table that was read first, and nobody looked at it
/// again when the next that was read said otherwise: its Lease was held, and nothing moved.
#[test]
fn a_table_that_is_read_is_followed_like_one_that_was_written() {
    let mut stage = Stage::settled(&["a", "b"], vec![object("x", 5, Some("a"))]);
    stage.pass(secs(16));
    stage.renew(&["b"], 20);
    stage.pass(secs(14));
    stage.renew(&["b"], 30);
    let (token, written) = stage.lease_request();
    let held = Lease { version: Version("31".to_owned()), ..written.unwrap() };
    stage.tell(Event::Answered { token, answer: Answer::Lease(Box::new(held)) });
    lose_answer(&mut stage, all_of("a", 1));
    lose_answer(&mut stage, all_of("b", 2));
    stage.answer_all();
    assert_eq!(stage.labels(), [("x".to_owned(), shard("b"))]);
}
