//! A cluster of one: what it says of itself, and what it refuses.

use etcd_api::etcdserverpb::{
    DowngradeRequest, Member, MemberAddRequest, MemberListRequest, MemberPromoteRequest,
    MemberRemoveRequest, MemberUpdateRequest,
};

use crate::harness::{CLIENT_URL, Clients, NAME, PEER_URL, Store, refusal};

async fn own_id(clients: &mut Clients) -> u64 {
    let list = clients.cluster.member_list(MemberListRequest::default()).await;
    list.expect("anybody may ask").into_inner().members[0].id
}

fn add(url: &str) -> MemberAddRequest {
    MemberAddRequest { peer_ur_ls: vec![url.into()], is_learner: false }
}

#[tokio::test]
async fn the_list_names_the_one_member() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    for linearizable in [false, true] {
        let list = clients.cluster.member_list(MemberListRequest { linearizable }).await.unwrap();
        let list = list.into_inner();
        let header = list.header.unwrap();
        assert_eq!(header.revision, 0, "members have no revision");
        assert_ne!((header.cluster_id, header.raft_term), (0, 0));
        let member = Member {
            id: header.member_id,
            name: NAME.into(),
            peer_ur_ls: vec![PEER_URL.into()],
            client_ur_ls: vec![CLIENT_URL.into()],
            is_learner: false,
        };
        assert_eq!(list.members, [member]);
    }
}

#[tokio::test]
async fn the_member_is_the_same_after_a_restart() {
    let store = Store::start().await;
    let before = own_id(&mut store.clients().await).await;
    let store = store.restart().await;
    assert_eq!(own_id(&mut store.clients().await).await, before);
}

#[tokio::test]
async fn nobody_can_be_added() {
    let store = Store::start().await;
    let cluster = &mut store.clients().await.cluster;
    for (url, refused) in [
        ("nonsense", "InvalidArgument: etcdserver: given member URLs are invalid"),
        (PEER_URL, "FailedPrecondition: etcdserver: Peer URLs already exists"),
        ("http://10.0.0.9:2380", "FailedPrecondition: etcdserver: not capable"),
    ] {
        assert_eq!(refusal(cluster.member_add(add(url)).await), refused, "{url}");
    }
}

#[tokio::test]
async fn the_only_member_stays_what_it_is() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let id = own_id(&mut clients).await;
    let cluster = &mut clients.cluster;
    assert_eq!(
        refusal(cluster.member_remove(MemberRemoveRequest { id }).await),
        "Unknown: etcdserver: re-configuration failed due to not enough started members"
    );
    assert_eq!(
        refusal(cluster.member_promote(MemberPromoteRequest { id }).await),
        "FailedPrecondition: etcdserver: can only promote a learner member"
    );
    let same = MemberUpdateRequest { id, peer_ur_ls: vec![PEER_URL.into()] };
    assert_eq!(cluster.member_update(same).await.unwrap().into_inner().members.len(), 1);
    let other = MemberUpdateRequest { id, peer_ur_ls: vec!["http://10.0.0.9:2380".into()] };
    assert_eq!(
        refusal(cluster.member_update(other).await),
        "FailedPrecondition: etcdserver: not capable"
    );
}

#[tokio::test]
async fn a_stranger_is_not_found() {
    let store = Store::start().await;
    let cluster = &mut store.clients().await.cluster;
    let not_found = "NotFound: etcdserver: member not found";
    let (id, peer_ur_ls) = (1, vec![PEER_URL.to_owned()]);
    assert_eq!(refusal(cluster.member_remove(MemberRemoveRequest { id }).await), not_found);
    assert_eq!(refusal(cluster.member_promote(MemberPromoteRequest { id }).await), not_found);
    let update = MemberUpdateRequest { id, peer_ur_ls };
    assert_eq!(refusal(cluster.member_update(update).await), not_found);
}

#[tokio::test]
async fn with_auth_on_the_list_needs_a_user_and_changes_need_root() {
    let store = Store::start().await;
    let mut anybody = store.clients().await;
    anybody.add_user("alice").await;
    anybody.enable_auth().await;
    let list = MemberListRequest::default();
    let nobody = "InvalidArgument: etcdserver: user name is empty";
    assert_eq!(refusal(anybody.cluster.member_list(list).await), nobody);
    assert_eq!(refusal(anybody.cluster.member_add(add("http://a:1")).await), nobody);

    let mut alice = store.login("alice").await;
    alice.cluster.member_list(list).await.unwrap();
    let denied = "PermissionDenied: etcdserver: permission denied";
    assert_eq!(refusal(alice.cluster.member_add(add("http://a:1")).await), denied);
    let remove = MemberRemoveRequest { id: 1 };
    assert_eq!(refusal(alice.cluster.member_remove(remove).await), denied);

    let mut root = store.login("root").await;
    let not_found = "NotFound: etcdserver: member not found";
    assert_eq!(refusal(root.cluster.member_remove(remove).await), not_found);
}

#[tokio::test]
async fn a_downgrade_that_nobody_knows_is_refused_in_the_words_of_etcd() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let request = DowngradeRequest { action: 3, version: "3.6.0".into() };
    let answer = clients.maintenance.downgrade(request).await;
    assert_eq!(refusal(answer), "Unknown: etcdserver: unknown method");
}
