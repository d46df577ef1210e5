//! A small language for stories about auth. Each line is a request, sent by nobody or, behind
//! `NAME>` or `NAME@REVISION>`, by a user:
//!
//! ```text
//! user-add alice        grant app rw a c      role-get app
//! alice> range a b      alice@3> put a        root> disable
//! ```
//!
//! The answer to each line is `ok`, what was asked for, or the error as etcd words it. `\0` in a key
//! is a zero byte. Lease 7 has the keys `a` and `x`.

use std::fmt::Write as _;

use bytes::Bytes;
use etcd_api::{
    authpb::{Permission, permission::Type},
    etcdserverpb::{DeleteRangeRequest, PutRequest, RangeRequest, TxnRequest},
};
use expect_test::Expect;
use journal::MetaChange;
use mvcc::{Keyspace, LeaseId, Position, ReadError, Values};

use crate::auth::{Access, Caller, Change, Error, PasswordHash, State};

/// Runs a script from an empty store.
#[track_caller]
pub(super) fn check(script: &str, expected: &Expect) {
    check_from(&mut State::default(), script, expected);
}

#[track_caller]
pub(super) fn check_from(state: &mut State, script: &str, expected: &Expect) {
    expected.assert_eq(&run(state, script, &mut |_| {}));
}

/// Runs a script and hands over what is to be journaled.
pub(super) fn run(
    state: &mut State,
    script: &str,
    journal: &mut dyn FnMut(Vec<MetaChange>),
) -> String {
    let mut told = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (caller, words) = sender(state, line);
        let before = state.revision();
        let answer = match change(&words) {
            Some(change) => state.apply(&caller, change).map(|meta| {
                let step = if state.revision() == before { "" } else { ", revision +1" };
                let kept = if meta.is_empty() { ", nothing to keep" } else { "" };
                journal(meta);
                format!("ok{step}{kept}")
            }),
            None => ask(state, state.access(&caller), &words),
        };
        let answer = answer.unwrap_or_else(|error| error.api_error().message().to_owned());
        writeln!(told, "{line} → {answer}").unwrap();
    }
    told
}

fn sender<'l>(state: &State, line: &'l str) -> (Caller, Vec<&'l str>) {
    let Some((sender, request)) = line.split_once('>') else {
        return (Caller::Anonymous, line.split_whitespace().collect());
    };
    let (name, revision) = match sender.split_once('@') {
        Some((name, revision)) => (name, revision.parse().unwrap()),
        None => (sender, state.revision()),
    };
    (
        Caller::User { name: name.trim_matches('"').into(), revision },
        request.split_whitespace().collect(),
    )
}

fn change(words: &[&str]) -> Option<Change> {
    let text = |word: &&str| (*word).trim_matches('"').to_owned();
    let password = || PasswordHash::from(Bytes::from_static(b"hash"));
    Some(match words {
        ["enable"] => Change::Enable,
        ["disable"] => Change::Disable,
        ["user-add", name, "no-password"] => Change::AddUser { name: text(name), password: None },
        ["user-add", name] => Change::AddUser { name: text(name), password: Some(password()) },
        ["user-delete", name] => Change::DeleteUser { name: text(name) },
        ["passwd", name] => Change::SetPassword { name: text(name), password: password() },
        ["grant-role", user, role] => Change::GrantRole { user: text(user), role: text(role) },
        ["revoke-role", user, role] => Change::RevokeRole { user: text(user), role: text(role) },
        ["role-add", name] => Change::AddRole { name: text(name) },
        ["role-delete", name] => Change::DeleteRole { name: text(name) },
        ["grant", role] => Change::GrantPermission { role: text(role), permission: None },
        ["grant", role, kind, range @ ..] => {
            let (key, range_end) = key_range(range);
            let permission = Some(Permission { perm_type: perm_type(kind), key, range_end });
            Change::GrantPermission { role: text(role), permission }
        }
        ["revoke", role, range @ ..] => {
            let (key, range_end) = key_range(range);
            Change::RevokePermission { role: text(role), key, range_end }
        }
        _ => return None,
    })
}

fn ask(state: &State, access: Access<'_>, words: &[&str]) -> Result<String, Error> {
    match words {
        ["status"] => Ok(format!("enabled {}, {}", state.is_enabled(), state.revision())),
        ["user-get", name] => {
            access.user_get(name)?;
            Ok(format!("{:?}", state.user_roles(name)?))
        }
        ["user-list"] => access.admin().map(|()| format!("{:?}", state.user_names())),
        ["role-get", name] => {
            access.role_get(name)?;
            let permissions = state.role_permissions(name)?;
            let told: Vec<String> = permissions.iter().map(permission).collect();
            Ok(format!("[{}]", told.join(", ")))
        }
        ["role-list"] => access.admin().map(|()| format!("{:?}", state.role_names())),
        [kind, rest @ ..] => refusal(access, kind, rest).map(|()| "ok".to_owned()),
        [] => panic!("an empty request"),
    }
}

fn refusal(access: Access<'_>, kind: &str, words: &[&str]) -> Result<(), Error> {
    let keyspace = with_lease();
    let leases = keyspace.leases();
    match kind {
        "range" => {
            let (key, range_end) = key_range(words);
            access.range(&key, &range_end)
        }
        "put" => access.put(&put(words), leases),
        "delete" => access.delete_range(&delete(words)),
        "txn" => access.txn(&txn(words), leases),
        "lease-write" => access.lease_write(words.iter().map(|key| unescape(key))),
        "lease-read" => access.lease_read(words.iter().map(|key| unescape(key))),
        "anyone" => access.identified(),
        "admin" => access.admin(),
        "unchanged" => access.unchanged(),
        _ => panic!("unknown request `{kind}`"),
    }
}

/// `txn compare:a success:put:b failure:range:c:d success:txn:delete:e`: words are parts, colons part
/// them.
fn txn(words: &[&str]) -> TxnRequest {
    use etcd_api::etcdserverpb::{Compare, RequestOp, request_op::Request};
    let mut request = TxnRequest::default();
    for word in words {
        let parts: Vec<&str> = word.split(':').collect();
        let op = |parts: &[&str]| RequestOp {
            request: Some(match parts {
                ["range", range @ ..] => {
                    let (key, range_end) = key_range(range);
                    Request::RequestRange(RangeRequest { key, range_end, ..Default::default() })
                }
                ["put", words @ ..] => Request::RequestPut(put(words)),
                ["delete", words @ ..] => Request::RequestDeleteRange(delete(words)),
                ["txn", nested @ ..] => Request::RequestTxn(txn(&[nested.join(":").as_str()])),
                _ => panic!("unknown operation in `{word}`"),
            }),
        };
        match parts.as_slice() {
            ["compare", range @ ..] => {
                let (key, range_end) = key_range(range);
                request.compare.push(Compare { key, range_end, ..Default::default() });
            }
            ["success", rest @ ..] => request.success.push(op(rest)),
            ["failure", rest @ ..] => request.failure.push(op(rest)),
            _ => panic!("unknown part `{word}`"),
        }
    }
    request
}

fn put(words: &[&str]) -> PutRequest {
    PutRequest {
        key: unescape(words[0]),
        lease: if words.contains(&"lease=7") { 7 } else { 0 },
        prev_kv: words.contains(&"prev"),
        ..Default::default()
    }
}

fn delete(words: &[&str]) -> DeleteRangeRequest {
    let range: Vec<&str> = words.iter().copied().filter(|word| *word != "prev").collect();
    let (key, range_end) = key_range(&range);
    DeleteRangeRequest { key, range_end, prev_kv: words.contains(&"prev") }
}

fn key_range(words: &[&str]) -> (Bytes, Bytes) {
    let part = |at: usize| words.get(at).map(|word| unescape(word)).unwrap_or_default();
    (part(0), part(1))
}

fn unescape(word: &str) -> Bytes {
    word.trim_matches('"').replace("\\0", "\0").into_bytes().into()
}

fn perm_type(kind: &str) -> i32 {
    match kind {
        "read" => Type::Read.into(),
        "write" => Type::Write.into(),
        "rw" => Type::Readwrite.into(),
        unknown => unknown.parse().unwrap(),
    }
}

fn permission(permission: &Permission) -> String {
    let kind = match permission.perm_type {
        0 => "read".to_owned(),
        1 => "write".to_owned(),
        2 => "rw".to_owned(),
        unknown => unknown.to_string(),
    };
    let (key, end) = (permission.key.escape_ascii(), permission.range_end.escape_ascii());
    format!("{kind}[{key},{end})")
}

/// Lease 7 with the keys `a` and `x`.
fn with_lease() -> Keyspace {
    struct NoValues;
    impl Values for NoValues {
        fn read(&self, _: Position) -> Result<etcd_api::mvccpb::KeyValue, ReadError> {
            Err("puts read nothing back".into())
        }
    }
    let mut keyspace = Keyspace::new();
    keyspace.grant(LeaseId(7), 60).unwrap();
    for key in ["a", "x"] {
        let put = PutRequest { key: key.into(), lease: 7, ..Default::default() };
        keyspace.put(&put, &NoValues).unwrap();
    }
    keyspace
}
