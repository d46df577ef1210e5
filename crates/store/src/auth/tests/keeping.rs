//! What is journaled is what is read back.

use std::collections::BTreeMap;

use bytes::Bytes;
use expect_test::expect;

use super::script::run;
use crate::auth::State;

const STORY: &str = r"
    user-add root
    grant-role root root
    user-add alice
    user-add slash/no-password no-password
    role-add app
    role-add gone
    grant app rw a c
    grant app read x \0
    grant-role alice app
    grant-role alice gone
    enable
    root> role-delete gone
    root> user-add bob
    root> user-delete bob
    root> revoke app a c
";

/// The meta table after a story.
fn kept(state: &mut State, story: &str) -> BTreeMap<Bytes, Bytes> {
    let mut table = BTreeMap::new();
    run(state, story, &mut |meta| {
        for change in meta {
            match change.value {
                Some(value) => table.insert(change.key, value),
                None => table.remove(&change.key),
            };
        }
    });
    table
}

fn facts(state: &State) -> String {
    let users = state.users.iter().map(|(name, user)| (name, user.password.is_some(), &user.roles));
    let roles = state.roles.iter().map(|(name, role)| (name, role.permissions()));
    format!(
        "{} {} {:?} {:?}",
        state.is_enabled(),
        state.revision(),
        users.collect::<Vec<_>>(),
        roles.collect::<Vec<_>>()
    )
}

#[test]
fn after_every_change_the_kept_entries_make_the_same_state() {
    let story: Vec<&str> = STORY.lines().collect();
    for length in 0..=story.len() {
        let mut state = State::default();
        let table = kept(&mut state, &story[..length].join("\n"));
        let entries = table.iter().map(|(key, value)| (&**key, &**value));
        let loaded = State::load(entries).unwrap();
        assert_eq!(facts(&loaded), facts(&state), "after {} lines", length);
    }
}

#[test]
fn entries_by_name() {
    let table = kept(&mut State::default(), STORY);
    let keys = table.keys().map(|key| key.escape_ascii().to_string());
    expect![[r#"
        auth/enabled
        auth/revision
        auth/role/app
        auth/user/alice
        auth/user/root
        auth/user/slash/no-password"#]]
    .assert_eq(&keys.collect::<Vec<_>>().join("\n"));
}

#[test]
fn foreign_entries_are_refused() {
    let refusal = |key: &[u8], value: &[u8]| State::load([(key, value)]).unwrap_err().to_string();
    let refusals = [
        refusal(b"auth/other", b""),
        refusal(b"auth/enabled", b"yes"),
        refusal(b"auth/revision", b"1"),
        refusal(b"auth/user/alice", b"\xff"),
        refusal(b"auth/user/alice", b"\x0a\x03bob"),
        refusal(b"auth/role/\xff", b"\x0a\x01\xff"),
    ];
    expect![[r#"
        unknown meta entry `auth/other`
        meta entry `auth/enabled` has an impossible value
        meta entry `auth/revision` has an impossible value
        meta entry `auth/user/alice` cannot be decoded
        meta entry `auth/user/alice` has an impossible value
        meta entry `auth/role/�` has an impossible value"#]]
    .assert_eq(&refusals.join("\n"));
}

/// Hashes must not reach a log through `Debug`.
#[test]
fn debug_tells_no_hash() {
    let mut state = State::default();
    run(&mut state, "user-add alice", &mut |_| {});
    assert!(!format!("{state:?}").contains("hash"));
    assert!(format!("{state:?}").contains("alice"));
}
