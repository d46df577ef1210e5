//! `windlass store import` of a real etcd: every key, lease, user and role is what it was.

use std::path::Path;
use std::process::Output;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::client::Client;
use e2e::scene::{Scene, suite};
use e2e::store::{Lane, Store, StoreOptions};
use etcd_api::authpb::{Permission, permission};
use etcd_api::etcdserverpb as pb;
use etcd_api::mvccpb::KeyValue;
use pb::request_op::Request::{RequestDeleteRange, RequestPut};
use tokio::process::Command;
use tonic::Code;

/// Keys are asked for in questions of 64: these take several.
const KEYS: usize = 300;

/// Keys that one transaction changes.
const TOGETHER: usize = 20;

/// A lease that keys are attached to, and one without keys, with their times.
const LEASES: [(i64, i64); 2] = [(7, 3600), (8, 7200)];

/// Keys attached to the first lease.
const LEASED: usize = 10;

const ROOT_PASSWORD: &str = "secret";

#[test]
fn windlass_imports_an_etcd() {
    suite("windlass_imports_an_etcd", &[Asset::Etcd, Asset::Windlass], async |scene| {
        let cheap = ["--bcrypt-cost", "4"];
        let etcd = StoreOptions::new(Lane::Etcd, "etcd").flags(Lane::Etcd.without_sync());
        let etcd = Store::start(scene, &etcd.flags(cheap)).await?;
        fill(&etcd.client()?).await?;
        let folder = scene.path().join("imported");
        let told = import(scene, &etcd, &folder).await?;
        ensure!(told.contains("passwords cannot be read"), "{told}");

        let windlass = StoreOptions::new(Lane::Windlass, "windlass").flags(cheap);
        let login = Some(("root", ROOT_PASSWORD));
        let options = StoreOptions { data_dir: Some(folder), login, ..windlass };
        let imported = Store::start(scene, &options).await?;
        let (left, right) = (log_in(&etcd, "root").await?, log_in(&imported, "root").await?);
        compare_keys(&left, &right).await?;
        compare_leases(&left, &right).await?;
        compare_auth(&left, &right).await?;
        check_ann(&imported, &right).await
    });
}

async fn fill(client: &Client) -> Result<()> {
    for (id, ttl) in LEASES {
        client.lease().lease_grant(pb::LeaseGrantRequest { id, ttl }).await?;
    }
    fill_keys(client).await?;
    let auth = || client.auth();
    for name in ["root", "ann"] {
        let user = pb::AuthUserAddRequest {
            name: name.to_owned(),
            password: ROOT_PASSWORD.to_owned(),
            ..Default::default()
        };
        auth().user_add(user).await?;
        auth().role_add(pb::AuthRoleAddRequest { name: role(name).to_owned() }).await?;
        let granted = (name.to_owned(), role(name).to_owned());
        auth()
            .user_grant_role(pb::AuthUserGrantRoleRequest { user: granted.0, role: granted.1 })
            .await?;
    }
    // Not in the order of their keys.
    for (key, range_end, kind) in [
        ("x", "y", permission::Type::Write),
        ("k000", "k010", permission::Type::Readwrite),
        ("b", "", permission::Type::Read),
    ] {
        let perm =
            Permission { perm_type: kind.into(), key: key.into(), range_end: range_end.into() };
        let grant =
            pb::AuthRoleGrantPermissionRequest { name: role("ann").to_owned(), perm: Some(perm) };
        auth().role_grant_permission(grant).await?;
    }
    auth().auth_enable(pb::AuthEnableRequest {}).await?;
    Ok(())
}

fn role(user: &str) -> &str {
    if user == "root" { "root" } else { "reader" }
}

/// Keys whose order by change is not that of their names, some put again, some gone, some gone and
/// put again, and some changed together.
async fn fill_keys(client: &Client) -> Result<()> {
    for number in (0..KEYS).rev() {
        put(client, number, "first").await?;
    }
    for number in (0..KEYS).step_by(3) {
        put(client, number, "second").await?;
    }
    for number in (0..KEYS).step_by(5) {
        let request = pb::DeleteRangeRequest { key: key(number).into(), ..Default::default() };
        client.kv().delete_range(request).await?;
    }
    for number in (0..KEYS).step_by(10) {
        put(client, number, "").await?;
    }
    let op = |number| request_op(RequestPut(put_request(number, "together")));
    let gone = pb::DeleteRangeRequest { key: key(KEYS - 1).into(), ..Default::default() };
    let success = (100..100 + TOGETHER).map(op).chain([request_op(RequestDeleteRange(gone))]);
    let txn = pb::TxnRequest { success: success.collect(), ..Default::default() };
    client.kv().txn(txn).await?;
    Ok(())
}

fn request_op(request: pb::request_op::Request) -> pb::RequestOp {
    pb::RequestOp { request: Some(request) }
}

fn key(number: usize) -> String {
    format!("k{number:03}")
}

fn put_request(number: usize, value: &str) -> pb::PutRequest {
    let lease = if number < LEASED { LEASES[0].0 } else { 0 };
    let value = value.to_owned().into();
    pb::PutRequest { key: key(number).into(), value, lease, ..Default::default() }
}

async fn put(client: &Client, number: usize, value: &str) -> Result<()> {
    client.kv().put(put_request(number, value)).await?;
    Ok(())
}

/// What it says.
async fn import(scene: &Scene, from: &Store, folder: &Path) -> Result<String> {
    let Output { status, stderr, .. } = Command::new(scene.program(Asset::Windlass)?)
        .args(["store", "import", "--from", &from.endpoint(), "--user", "root", "--data-dir"])
        .arg(folder)
        .env("WINDLASS_PASSWORD", ROOT_PASSWORD)
        .output()
        .await
        .context("run windlass store import")?;
    let told = String::from_utf8_lossy(&stderr).into_owned();
    ensure!(status.success(), "import: {status}: {told}");
    Ok(told)
}

async fn log_in(store: &Store, name: &str) -> Result<Client> {
    store.client()?.log_in(name, ROOT_PASSWORD).await
}

/// Keys, values, revisions, versions and leases, and where the store stands.
async fn compare_keys(left: &Client, right: &Client) -> Result<()> {
    let (left, right) = (all_keys(left).await?, all_keys(right).await?);
    ensure!(left.0 == right.0, "revision {} became {}", left.0, right.0);
    ensure!(left.1.len() > KEYS / 2, "only {} keys were put", left.1.len());
    ensure!(left.1.len() == right.1.len(), "{} keys became {}", left.1.len(), right.1.len());
    for (left, right) in left.1.iter().zip(&right.1) {
        ensure!(left.parts() == right.parts(), "{:?} became {:?}", left.parts(), right.parts());
    }
    Ok(())
}

async fn all_keys(client: &Client) -> Result<(i64, Vec<KeyValue>)> {
    let request = pb::RangeRequest {
        key: b"\0".as_slice().into(),
        range_end: b"\0".as_slice().into(),
        ..Default::default()
    };
    let answer = client.kv().range(client.request(request)).await?.into_inner();
    Ok((answer.header.context("every answer has a header")?.revision, answer.kvs))
}

async fn compare_leases(left: &Client, right: &Client) -> Result<()> {
    let (left, right) = (leases(left).await?, leases(right).await?);
    ensure!(left == right, "{left:?} became {right:?}");
    let keys: Vec<usize> = left.iter().map(|(_, _, keys)| keys.len()).collect();
    ensure!(left.len() == LEASES.len() && keys[0] > 0 && keys[1] == 0, "{left:?}");
    Ok(())
}

/// Each lease, the time it was granted for and its keys.
async fn leases(client: &Client) -> Result<Vec<(i64, i64, Vec<Vec<u8>>)>> {
    let listed = client.lease().lease_leases(client.request(pb::LeaseLeasesRequest {})).await?;
    let mut leases = Vec::new();
    for lease in listed.into_inner().leases {
        let request = pb::LeaseTimeToLiveRequest { id: lease.id, keys: true };
        let answer = client.lease().lease_time_to_live(client.request(request)).await?.into_inner();
        ensure!(answer.ttl > 0, "{answer:?}");
        let mut keys: Vec<Vec<u8>> = answer.keys.iter().map(|key| key.to_vec()).collect();
        keys.sort();
        leases.push((answer.id, answer.granted_ttl, keys));
    }
    leases.sort();
    Ok(leases)
}

async fn compare_auth(left: &Client, right: &Client) -> Result<()> {
    let (left, right) = (auth(left).await?, auth(right).await?);
    ensure!(left == right, "{left:#?} became {right:#?}");
    Ok(())
}

/// Everything that can be asked about users and roles, without headers.
async fn auth(client: &Client) -> Result<Vec<String>> {
    let request = client.request(pb::AuthStatusRequest {});
    let status = client.auth().auth_status(request).await?.into_inner();
    let mut told = vec![format!("enabled {} at {}", status.enabled, status.auth_revision)];
    let request = client.request(pb::AuthUserListRequest {});
    for name in client.auth().user_list(request).await?.into_inner().users {
        let request = client.request(pb::AuthUserGetRequest { name: name.clone() });
        let user = client.auth().user_get(request).await?.into_inner();
        told.push(format!("user {name}: {:?}", user.roles));
    }
    let request = client.request(pb::AuthRoleListRequest {});
    for role in client.auth().role_list(request).await?.into_inner().roles {
        let request = client.request(pb::AuthRoleGetRequest { role: role.clone() });
        let answer = client.auth().role_get(request).await?.into_inner();
        told.push(format!("role {role}: {:?}", answer.perm));
    }
    Ok(told)
}

/// A user whose password could not be read may do what it could once it has one again.
async fn check_ann(store: &Store, root: &Client) -> Result<()> {
    let refused = log_in(store, "ann").await.err().context("ann has no password")?;
    ensure!(format!("{refused:#}").contains("authentication failed"), "{refused:#}");
    let (name, password) = ("ann".to_owned(), ROOT_PASSWORD.to_owned());
    let request = pb::AuthUserChangePasswordRequest { name, password, ..Default::default() };
    root.auth().user_change_password(root.request(request)).await?;
    let ann = log_in(store, "ann").await?;
    let get = |number| pb::RangeRequest { key: key(number).into(), ..Default::default() };
    ann.kv().range(ann.request(get(1))).await?;
    let refused = ann.kv().range(ann.request(get(11))).await.err().context("out of range")?;
    ensure!(refused.code() == Code::PermissionDenied, "{refused}");
    Ok(())
}
