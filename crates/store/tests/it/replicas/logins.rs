//! Users, roles and tokens, whichever replica is asked.

use etcd_api::etcdserverpb::{
    AuthUserAddRequest, AuthUserChangePasswordRequest, AuthUserListRequest, AuthenticateRequest,
    PutRequest,
};

use super::{get, leader, start, value};
use crate::harness::{PASSWORD, refusal};

fn change_password(name: &str) -> AuthUserChangePasswordRequest {
    AuthUserChangePasswordRequest {
        name: name.into(),
        password: "another".into(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_hold_everywhere() {
    let replicas = start(2).await;
    let follower = 1 - leader(&replicas, None).await;
    let mut clients = replicas[follower].store.clients().await;
    clients.put("k", "v").await;
    clients.add_user("nobody").await;
    clients.enable_auth().await;
    for replica in &replicas {
        let mut anonymous = replica.store.clients().await;
        assert!(refusal(anonymous.kv.range(get("k")).await).contains("user name is empty"));
        let put = PutRequest { key: "k".into(), ..Default::default() };
        assert!(refusal(anonymous.kv.put(put).await).contains("user name is empty"));
        let mut root = replica.store.login("root").await;
        root.put("k", "w").await;
        let mut nobody = replica.store.login("nobody").await;
        let put = PutRequest { key: "k".into(), ..Default::default() };
        assert!(refusal(nobody.kv.put(put).await).contains("permission denied"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_is_cut_off_passes_no_login_on() {
    let replicas = start(2).await;
    let holder = leader(&replicas, None).await;
    replicas[holder].store.clients().await.enable_auth().await;
    let mut stale = replicas[1 - holder].store.login("root").await;
    let mut root = replicas[holder].store.login("root").await;
    replicas[1 - holder].seat.cut_off(true);
    root.auth.user_change_password(change_password("root")).await.expect("it is changed");
    let request = AuthUserAddRequest { name: "mallory".into(), ..Default::default() };
    let refused = refusal(stale.auth.user_add(request.clone()).await);
    assert_eq!(refused, "Unavailable: etcdserver: no leader");
    replicas[1 - holder].seat.cut_off(false);
    let refused = refusal(stale.auth.user_add(request).await);
    assert_eq!(refused, "Unauthenticated: etcdserver: invalid auth token");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_cut_off_lets_nobody_in_and_tells_of_no_user() {
    let replicas = start(2).await;
    let holder = leader(&replicas, None).await;
    replicas[holder].store.clients().await.enable_auth().await;
    let mut root = replicas[holder].store.login("root").await;
    replicas.iter().for_each(|replica| replica.seat.cut_off(true));
    let no_leader = "Unavailable: etcdserver: no leader";
    for replica in &replicas {
        let request = AuthenticateRequest { name: "root".into(), password: PASSWORD.into() };
        let mut clients = replica.store.clients().await;
        assert_eq!(refusal(clients.auth.authenticate(request).await), no_leader);
    }
    assert_eq!(refusal(root.auth.user_list(AuthUserListRequest {}).await), no_leader);
    replicas.iter().for_each(|replica| replica.seat.cut_off(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_at_one_is_a_login_at_all() {
    let replicas = start(2).await;
    replicas[0].store.clients().await.enable_auth().await;
    let request = AuthenticateRequest { name: "root".into(), password: PASSWORD.into() };
    let answer = replicas[0].store.clients().await.auth.authenticate(request).await;
    let token = answer.expect("may log in").into_inner().token;
    for replica in &replicas {
        let mut root = replica.store.clients_as("token", &token).await;
        root.put("k", "v").await;
        assert_eq!(value(&mut root, "k").await.as_deref(), Some("v"));
    }
    let mut root = replicas[0].store.clients_as("token", &token).await;
    root.auth.user_change_password(change_password("root")).await.expect("it is changed");
    for replica in &replicas {
        let mut stale = replica.store.clients_as("token", &token).await;
        let refused = refusal(stale.kv.range(get("k")).await);
        assert_eq!(refused, "Unauthenticated: etcdserver: invalid auth token");
    }
}
