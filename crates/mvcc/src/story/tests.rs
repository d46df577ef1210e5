//! The language itself: what is refused where, and that reading and writing are inverse.

use expect_test::{Expect, expect};

use super::{Answer, parse, render};

/// Shows the command that `text` means, or why it means none.
fn check(text: &str, expected: Expect) {
    let story = format!("{text}\n----\n");
    let shown = match parse(&story) {
        Ok(steps) => format!("{:?}", steps[0].command),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&shown);
}

#[test]
fn mistakes_are_named_with_their_line() {
    check("pull a", expect!["line 1: no command is called `pull`"]);
    check("get", expect!["line 1: the command lacks its key"]);
    check("get a b c", expect!["line 1: `c` is one word too many"]);
    check("get a --limit=x", expect!["line 1: `x` is no number"]);
    check("get a --prev-kv", expect!["line 1: the command takes no flag `--prev-kv`"]);
    check("get a --order=up", expect!["line 1: `up` is no order"]);
    check("get \"a", expect!["line 1: a quoted word does not end"]);
    check("get \\y", expect!["line 1: a word has an escape that means nothing"]);
    check("get a\nget b", expect!["line 2: only a transaction has more than one line"]);
}

#[test]
fn mistakes_inside_transactions_are_named_with_their_line() {
    check("txn\n  when mod a = 1", expect!["line 2: `when` is no clause"]);
    check("txn\n  then compact 3", expect!["line 2: `compact` cannot stand inside a transaction"]);
    check("txn\n  if size a = 1", expect!["line 2: `size` is no target"]);
    check("txn\n  if mod a ~ 1", expect!["line 2: `~` is no relation"]);
    check("txn\n  then*x get a", expect!["line 2: `x` is no number"]);
    check("txn\n  then txn\n    if mod a = b\n  then get a", expect!["line 3: `b` is no number"]);
    check(
        "txn\n  then get a\n    if mod a = 1",
        expect!["line 2: only a transaction has more than one line"],
    );
}

#[test]
fn a_command_without_an_answer_is_no_step() {
    let error = parse("# remark\nget a\n").unwrap_err();
    assert_eq!(error.to_string(), "line 2: the command has no answer: `----` is missing");
}

#[test]
fn words_are_bytes() {
    check(
        r#"put "a \"\x01" \0\n"#,
        expect![[
            r#"Put(PutRequest { key: b"a \"\x01", value: b"\0\n", lease: 0, prev_kv: false, ignore_value: false, ignore_lease: false })"#
        ]],
    );
}

#[test]
fn lines_belong_to_the_transaction_they_stand_in() {
    check(
        "txn\n  then txn\n    then del b\n  else del c",
        expect![[
            r#"Txn(TxnRequest { compare: [], success: [RequestOp { request: Some(RequestTxn(TxnRequest { compare: [], success: [RequestOp { request: Some(RequestDeleteRange(DeleteRangeRequest { key: b"b", range_end: b"", prev_kv: false })) }], failure: [] })) }], failure: [RequestOp { request: Some(RequestDeleteRange(DeleteRangeRequest { key: b"c", range_end: b"", prev_kv: false })) }] })"#
        ]],
    );
}

#[test]
fn a_story_with_the_answers_it_expects_is_written_as_it_was_read() {
    let text = "# One.\n\nget \"\"\n----\nerror: no key\n\n# Two.\nwatch --rev=2\n----\n\nput a 1\n----\nerror: full\n";
    let steps = parse(text).unwrap();
    let answers = [
        Answer::Refused("no key".to_owned()),
        Answer::Watch(Vec::new()),
        Answer::Refused("full".to_owned()),
    ];
    assert_eq!(render(&steps, &answers), text);
}
