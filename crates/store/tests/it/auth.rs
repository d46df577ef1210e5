//! Users, roles and rights, by the numbers of their lines in the specification.

use etcd_api::{
    authpb::{Permission, permission::Type},
    etcdserverpb::{
        AlarmRequest, AuthDisableRequest, AuthEnableRequest, AuthRoleAddRequest,
        AuthRoleGetRequest, AuthRoleGrantPermissionRequest, AuthRoleListRequest,
        AuthRoleRevokePermissionRequest, AuthStatusRequest, AuthUserChangePasswordRequest,
        AuthUserDeleteRequest, AuthUserGetRequest, AuthUserListRequest, AuthenticateRequest,
        CompactionRequest, Compare, DefragmentRequest, HashRequest, LeaseGrantRequest,
        LeaseKeepAliveRequest, LeaseRevokeRequest, MoveLeaderRequest, PutRequest, RangeRequest,
        SnapshotRequest, TxnRequest, alarm_request::AlarmAction,
    },
};
use futures::stream;

use crate::{
    harness::{Clients, PASSWORD, Store, new_folder, open_journal, refusal, soon},
    held::HeldJournal,
};

const DENIED: &str = "PermissionDenied: etcdserver: permission denied";

fn range(key: &'static str, range_end: &'static str) -> RangeRequest {
    RangeRequest { key: key.into(), range_end: range_end.into(), ..Default::default() }
}

fn put(key: &'static str) -> PutRequest {
    PutRequest { key: key.into(), ..Default::default() }
}

async fn login(clients: &mut Clients, name: &str, password: &str) -> Result<String, tonic::Status> {
    let request = AuthenticateRequest { name: name.into(), password: password.into() };
    clients.auth.authenticate(request).await.map(|answer| answer.into_inner().token)
}

/// Gives alice, by a role of the same name, what is listed.
async fn with_alice(store: &Store, permissions: &[(Type, &'static str, &'static str)]) -> Clients {
    let mut clients = store.clients().await;
    clients.add_user("alice").await;
    clients
        .auth
        .role_add(AuthRoleAddRequest { name: "alice".into() })
        .await
        .expect("a role can be added");
    for (kind, key, range_end) in permissions {
        let perm = Permission {
            perm_type: (*kind).into(),
            key: (*key).into(),
            range_end: (*range_end).into(),
        };
        let request = AuthRoleGrantPermissionRequest { name: "alice".into(), perm: Some(perm) };
        clients.auth.role_grant_permission(request).await.expect("it can be granted");
    }
    clients.grant_role("alice", "alice").await;
    clients.enable_auth().await;
    store.login("alice").await
}

/// The time that a lease was given again.
async fn keep_alive(clients: &mut Clients, id: i64) -> Result<i64, tonic::Status> {
    let asked = stream::iter([LeaseKeepAliveRequest { id }]);
    let mut answers = clients.lease.lease_keep_alive(asked).await?.into_inner();
    Ok(answers.message().await?.expect("every request is answered").ttl)
}

#[tokio::test]
async fn l38_enabling_needs_root_with_the_role_root() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    assert_eq!(
        refusal(clients.auth.auth_enable(AuthEnableRequest {}).await),
        "FailedPrecondition: etcdserver: root user does not exist"
    );
    clients.add_user("root").await;
    assert_eq!(
        refusal(clients.auth.auth_enable(AuthEnableRequest {}).await),
        "FailedPrecondition: etcdserver: root user does not have root role"
    );
    clients.grant_role("root", "root").await;
    clients.auth.auth_enable(AuthEnableRequest {}).await.unwrap();
    let status = clients.auth.auth_status(AuthStatusRequest {}).await.unwrap().into_inner();
    assert!(status.enabled, "anybody may ask");
}

#[tokio::test]
async fn l38_logging_in() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    assert_eq!(
        refusal(login(&mut clients, "root", PASSWORD).await),
        "FailedPrecondition: etcdserver: authentication is not enabled"
    );
    clients.enable_auth().await;
    let failed = "InvalidArgument: etcdserver: authentication failed, invalid user ID or password";
    assert_eq!(refusal(login(&mut clients, "root", "wrong").await), failed);
    assert_eq!(refusal(login(&mut clients, "nobody", PASSWORD).await), failed);
    assert!(!login(&mut clients, "root", PASSWORD).await.unwrap().is_empty());
}

#[tokio::test]
async fn l38_without_a_token_or_with_a_bad_one() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    clients.enable_auth().await;
    assert_eq!(
        refusal(clients.kv.put(put("a")).await),
        "InvalidArgument: etcdserver: user name is empty"
    );
    let bad = "Unauthenticated: etcdserver: invalid auth token";
    let mut stranger = store.clients_as("token", "nonsense").await;
    assert_eq!(refusal(stranger.kv.put(put("a")).await), bad);
    assert_eq!(refusal(stranger.kv.range(range("a", "")).await), bad);
    assert_eq!(refusal(stranger.auth.auth_status(AuthStatusRequest {}).await), bad);
    assert_eq!(refusal(login(&mut stranger, "root", PASSWORD).await), bad);
}

#[tokio::test]
async fn l38_a_token_ends_with_the_password_it_was_given_for() {
    let store = Store::start().await;
    with_alice(&store, &[(Type::Readwrite, "a", "")]).await;
    let mut alice = store.login("alice").await;
    alice.kv.put(put("a")).await.unwrap();
    let change = AuthUserChangePasswordRequest {
        name: "alice".into(),
        password: "new".into(),
        ..Default::default()
    };
    store.login("root").await.auth.user_change_password(change).await.unwrap();
    assert_eq!(
        refusal(alice.kv.put(put("a")).await),
        "Unauthenticated: etcdserver: invalid auth token"
    );
}

#[tokio::test]
async fn l39_a_token_may_come_in_either_field() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    clients.enable_auth().await;
    let token = login(&mut clients, "root", PASSWORD).await.unwrap();
    for (field, token) in [
        ("token", token.clone()),
        ("authorization", token.clone()),
        ("authorization", format!("Bearer {token}")),
    ] {
        let mut root = store.clients_as(field, &token).await;
        root.kv.put(put("a")).await.unwrap();
    }
}

#[tokio::test]
async fn l40_permissions_are_merged() {
    let store = Store::start().await;
    let mut alice = with_alice(&store, &[(Type::Read, "a", "c"), (Type::Read, "c", "e")]).await;
    alice.kv.range(range("a", "e")).await.unwrap();
    assert_eq!(refusal(alice.kv.range(range("a", "f")).await), DENIED);
    assert_eq!(refusal(alice.kv.put(put("a")).await), DENIED);
}

#[tokio::test]
async fn l40_seeing_what_was_there_needs_the_right_to_read() {
    let store = Store::start().await;
    let mut alice = with_alice(&store, &[(Type::Write, "a", "")]).await;
    alice.kv.put(put("a")).await.unwrap();
    let with_previous = PutRequest { prev_kv: true, ..put("a") };
    assert_eq!(refusal(alice.kv.put(with_previous).await), DENIED);
    let compare = Compare { key: "a".into(), ..Default::default() };
    let txn = TxnRequest { compare: vec![compare], ..Default::default() };
    assert_eq!(refusal(alice.kv.txn(txn).await), DENIED);
}

#[tokio::test]
async fn l40_a_lease_belongs_to_those_who_may_write_its_keys() {
    let store = Store::start().await;
    let mut alice = with_alice(&store, &[(Type::Readwrite, "a", "")]).await;
    alice.lease.lease_grant(LeaseGrantRequest { id: 7, ttl: 100 }).await.unwrap();
    let mut root = store.login("root").await;
    root.kv.put(PutRequest { lease: 7, ..put("b") }).await.unwrap();
    assert_eq!(refusal(alice.kv.put(PutRequest { lease: 7, ..put("a") }).await), DENIED);
    assert_eq!(refusal(alice.lease.lease_revoke(LeaseRevokeRequest { id: 7 }).await), DENIED);
    assert_eq!(refusal(keep_alive(&mut alice, 7).await), DENIED);
    assert_eq!(keep_alive(&mut root, 7).await.unwrap(), 100);
    root.lease.lease_revoke(LeaseRevokeRequest { id: 7 }).await.unwrap();
}

/// A lease whose keys alice may write, and one without keys, are hers to keep and to end.
#[tokio::test]
async fn l40_who_may_write_the_keys_of_a_lease_may_keep_and_end_it() {
    let store = Store::start().await;
    let mut alice = with_alice(&store, &[(Type::Write, "a", "c")]).await;
    for (id, key) in [(7, Some("b")), (8, None)] {
        alice.lease.lease_grant(LeaseGrantRequest { id, ttl: 100 }).await.unwrap();
        if let Some(key) = key {
            alice.kv.put(PutRequest { lease: id, ..put(key) }).await.unwrap();
        }
        assert_eq!(keep_alive(&mut alice, id).await.unwrap(), 100);
        alice.lease.lease_revoke(LeaseRevokeRequest { id }).await.unwrap();
    }
}

/// To read the keys of a lease is not enough.
#[tokio::test]
async fn l40_who_may_read_the_keys_of_a_lease_may_not_keep_or_end_it() {
    let store = Store::start().await;
    let mut alice = with_alice(&store, &[(Type::Read, "a", "")]).await;
    let mut root = store.login("root").await;
    root.lease.lease_grant(LeaseGrantRequest { id: 7, ttl: 100 }).await.unwrap();
    root.kv.put(PutRequest { lease: 7, ..put("a") }).await.unwrap();
    assert_eq!(refusal(keep_alive(&mut alice, 7).await), DENIED);
    assert_eq!(refusal(alice.lease.lease_revoke(LeaseRevokeRequest { id: 7 }).await), DENIED);
}

#[tokio::test]
async fn l40_looking_after_the_store_is_for_root() {
    let store = Store::start().await;
    let mut alice = with_alice(&store, &[(Type::Readwrite, "a", "")]).await;
    let Clients { kv, maintenance, auth, .. } = &mut alice;
    let compaction = CompactionRequest { revision: 1, physical: false };
    let activate = AlarmRequest { action: AlarmAction::Activate.into(), ..Default::default() };
    for refused in [
        refusal(kv.compact(compaction).await),
        refusal(maintenance.defragment(DefragmentRequest {}).await),
        refusal(maintenance.snapshot(SnapshotRequest {}).await),
        refusal(maintenance.hash(HashRequest {}).await),
        refusal(maintenance.alarm(activate).await),
        refusal(maintenance.move_leader(MoveLeaderRequest { target_id: 1 }).await),
        refusal(auth.auth_disable(AuthDisableRequest {}).await),
        refusal(auth.user_list(AuthUserListRequest {}).await),
        refusal(auth.role_list(AuthRoleListRequest {}).await),
        refusal(auth.user_delete(AuthUserDeleteRequest { name: "root".into() }).await),
    ] {
        assert_eq!(refused, DENIED);
    }
}

#[tokio::test]
async fn l40_users_may_ask_about_themselves_and_their_roles() {
    let store = Store::start().await;
    let mut alice = with_alice(&store, &[(Type::Read, "a", "b")]).await;
    let user = |name: &str| AuthUserGetRequest { name: name.into() };
    let role = |role: &str| AuthRoleGetRequest { role: role.into() };
    let mine = alice.auth.user_get(user("alice")).await.unwrap().into_inner();
    assert_eq!(mine.roles, ["alice"]);
    let perm = alice.auth.role_get(role("alice")).await.unwrap().into_inner().perm;
    assert_eq!((&*perm[0].key, &*perm[0].range_end), (&b"a"[..], &b"b"[..]));
    assert_eq!(refusal(alice.auth.user_get(user("root")).await), DENIED);
    assert_eq!(refusal(alice.auth.role_get(role("root")).await), DENIED);
}

/// The rights are checked, then the value is read. Where they change in between, they are no longer
/// what the answer may rest on.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn l40_what_was_read_while_rights_changed_is_not_handed_out() {
    let folder = new_folder();
    let journal = HeldJournal::new(open_journal(&folder));
    // Without a cache, so that the value is read from the journal.
    let store = Store::start_over(journal.clone(), folder, |options| options.cache_bytes = 0).await;
    store.clients().await.put("a", "secret").await;
    let mut alice = with_alice(&store, &[(Type::Read, "a", "")]).await;
    let mut root = store.login("root").await;
    let (key, role) = ("a".into(), "alice".into());
    let revoke = AuthRoleRevokePermissionRequest { role, key, ..Default::default() };

    journal.hold_reads();
    let change = async {
        soon(journal.arrival()).await;
        root.auth.role_revoke_permission(revoke).await.expect("root may revoke");
        journal.release();
    };
    let (read, ()) = tokio::join!(alice.kv.range(range("a", "")), change);
    assert_eq!(refusal(read), "InvalidArgument: etcdserver: revision of auth store is old");
}

#[tokio::test]
async fn l41_changes_raise_the_revision_of_auth_alone() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let status = |status: etcd_api::etcdserverpb::AuthStatusResponse| {
        (status.auth_revision, status.header.unwrap().revision)
    };
    let before = clients.auth.auth_status(AuthStatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status(before), (1, 1));
    clients.add_user("alice").await;
    let added = clients.auth.role_add(AuthRoleAddRequest { name: "r".into() }).await.unwrap();
    assert_eq!(added.into_inner().header.unwrap().revision, 1);
    let after = clients.auth.auth_status(AuthStatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status(after), (3, 1));
}

#[tokio::test]
async fn users_and_roles_survive_a_restart() {
    let store = Store::start().await;
    drop(with_alice(&store, &[(Type::Readwrite, "a", "")]).await);
    let store = store.restart().await;
    let mut alice = store.login("alice").await;
    alice.kv.put(put("a")).await.unwrap();
    assert_eq!(refusal(alice.kv.put(put("b")).await), DENIED);
}
