//! Three stores over one grid are one store to their clients, whichever of them they ask.

use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use e2e::assets::Asset;
use e2e::client::Client;
use e2e::report::say;
use e2e::wait::{Level, wait_for};
use e2e::{http, load};
use etcd_api::etcdserverpb::{
    LeaseGrantRequest, LeaseTimeToLiveRequest, MemberListRequest, MoveLeaderRequest, PutRequest,
    RangeRequest, WatchCreateRequest, WatchRequest, watch_request::RequestUnion,
};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::Instant;
use tokio_stream::StreamExt;

use crate::stage::{Case, Kind, Stage};
use crate::together::{REPLICAS, TAKEOVER_WAIT, Together, with};

/// What followers count when they hear of a batch.
const TIDINGS: &str = "windlass_replica_tidings_total";
/// One after the other, so that each is a batch of its own.
const WRITES: usize = 50;
/// What users are told, whose queries must work.
const DOCUMENT: &str = include_str!("../../../../docs/ignite.md");

pub(crate) fn cases() -> Vec<Case> {
    let single = |name: &str, play| Case::new(name, Kind::Single, play).at_length();
    let three = |name: &str, play| Case::new(name, Kind::Three, play);
    vec![
        single("single::replicas::are_one_store", are_one_store),
        single("single::replicas::show_their_data_by_sql", show_their_data_by_sql),
        single("single::replicas::a_paused_writer_wakes_without_the_role", a_paused_writer),
        three("three::replicas::are_one_store", are_one_store),
        three("three::replicas::followers_are_told", followers_are_told),
        three("three::replicas::serve_etcdctl", serve_etcdctl),
        three("three::replicas::a_paused_writer_wakes_without_the_role", a_paused_writer),
    ]
}

fn put(key: &str, value: &str) -> PutRequest {
    PutRequest { key: key.to_owned().into(), value: value.to_owned().into(), ..Default::default() }
}

/// Who has just started is listed with the next beat.
async fn wait_for_members(client: &Client) -> Result<()> {
    wait_for("all replicas to be listed", TAKEOVER_WAIT, async || {
        let request = MemberListRequest { linearizable: true };
        let listed = client.cluster().member_list(request).await?.into_inner();
        Ok(if listed.members.len() == REPLICAS {
            Level::Reached(())
        } else {
            Level::Below(format!("{listed:?}"))
        })
    })
    .await
}

/// What is written through one is read, watched, leased and listed through every other, and each can
/// be made the writer.
fn are_one_store(stage: &mut Stage) -> Result<()> {
    with(stage, "replicas_are_one_store", &[Asset::Windlass], async |together, _| {
        for writer in 0..REPLICAS {
            let key = format!("w{writer}");
            let written = together.client(writer)?.kv().put(put(&key, "v")).await?.into_inner();
            let revision = written.header.context("an answer has a header")?.revision;
            for reader in 0..REPLICAS {
                let request = RangeRequest { key: key.clone().into(), ..Default::default() };
                let read = together.client(reader)?.kv().range(request).await?.into_inner();
                let header = read.header.context("an answer has a header")?;
                ensure!(read.kvs.len() == 1 && header.revision >= revision, "{reader}: {read:?}");
            }
        }
        let lease = LeaseGrantRequest { ttl: 600, id: 0 };
        let lease = together.client(0)?.lease().lease_grant(lease).await?.into_inner();
        for index in 0..REPLICAS {
            let request = LeaseTimeToLiveRequest { id: lease.id, keys: false };
            let left = together.client(index)?.lease().lease_time_to_live(request).await?;
            ensure!(left.get_ref().granted_ttl == 600, "{index}: {left:?}");
            wait_for_members(&together.client(index)?).await?;
        }
        let first = load::read_events(&together.client(0)?).await?;
        let last = load::read_events(&together.client(REPLICAS - 1)?).await?;
        ensure!(first == last, "two replicas tell two histories");
        hand_the_role_around(together).await
    })
}

/// Who follows hears of what is written from who writes it, and a watch there tells of it.
fn followers_are_told(stage: &mut Stage) -> Result<()> {
    with(stage, "replicas_followers_are_told", &[Asset::Windlass], async |together, _| {
        let writer = together.wait_for_writer(None).await?;
        let follower = (writer + 1) % REPLICAS;
        let port = together.stores[follower].port();
        let before = http::metric(port, TIDINGS).await?;
        let create = WatchCreateRequest { key: "told".into(), ..Default::default() };
        let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        let requests = tokio_stream::once(request).chain(tokio_stream::pending());
        let mut watching = together.client(follower)?.watch().watch(requests).await?.into_inner();
        watching.message().await?.context("the watch begins")?;
        let mut delays = Vec::new();
        for number in 0..WRITES {
            let request = put("told", &number.to_string());
            together.client(writer)?.kv().put(request).await.context("put")?;
            let written = Instant::now();
            let heard = tokio::time::timeout(TAKEOVER_WAIT, watching.message()).await;
            let heard = heard.context("nothing is heard")??.context("the watch goes on")?;
            ensure!(heard.events.len() == 1, "{heard:?}");
            delays.push(written.elapsed());
        }
        delays.sort_unstable();
        let told = http::metric(port, TIDINGS).await? - before;
        say(&format!("told: {told} words, half the events within {:?}", delays[WRITES / 2]));
        ensure!(told >= WRITES as f64, "a follower heard {told} words of {WRITES} writes");
        Ok(())
    })
}

/// Asked of whichever store, the role goes where it was asked to, and who is nobody does not get it.
async fn hand_the_role_around(together: &Together) -> Result<()> {
    let listed = MemberListRequest { linearizable: true };
    let members = together.client(0)?.cluster().member_list(listed).await?.into_inner().members;
    for index in 0..REPLICAS {
        let port = format!(":{}", together.stores[index].port());
        let is_it = |urls: &[String]| urls.iter().any(|url| url.ends_with(&port));
        let member = members.iter().find(|member| is_it(&member.client_ur_ls));
        let target_id = member.context("every store is a member")?.id;
        let asked = (index + 1) % REPLICAS;
        let request = MoveLeaderRequest { target_id };
        together.client(asked)?.maintenance().move_leader(request).await.context("move")?;
        let writer = together.wait_for_writer(None).await?;
        ensure!(writer == index, "{index} was to write, {writer} does");
        together.client(asked)?.kv().put(put("moved", &index.to_string())).await?;
    }
    let request = MoveLeaderRequest { target_id: 1 };
    let refused = together.client(0)?.maintenance().move_leader(request).await;
    let told = refused.err().context("nobody was given the role")?.to_string();
    ensure!(told.contains("bad leader transferee"), "{told}");
    Ok(())
}

/// The queries of the document, while the stores run.
fn show_their_data_by_sql(stage: &mut Stage) -> Result<()> {
    with(stage, "replicas_show_their_data", &[Asset::Windlass], async |together, _| {
        let client = together.client(1)?;
        let lease = LeaseGrantRequest { ttl: 600, id: 7_587_883_205_612_345_678 };
        client.lease().lease_grant(lease).await?;
        for revision in 2..20 {
            let lease = 7_587_883_205_612_345_678;
            let request = PutRequest { lease, ..put("greeting", &revision.to_string()) };
            client.kv().put(request).await?;
        }
        let block = DOCUMENT.split("```sql").nth(1).and_then(|rest| rest.split("```").next());
        let block = block.context("the document has queries")?;
        let statements = block.split(';').map(str::trim).filter(|it| !it.is_empty());
        let grid = ignite_client::Client::connect(together.journal.client.clone()).await?;
        let mut asked = 0;
        for statement in statements {
            let own = statement.replace("WINDLASS.", &format!("{}.", together.journal.schema));
            let rows = grid.execute(None, &own, &[]).await.with_context(|| own.clone())?;
            let rows = rows.all().await.with_context(|| own.clone())?;
            ensure!(!rows.is_empty(), "nothing is found by {own}");
            asked += 1;
        }
        ensure!(asked >= 5, "only {asked} queries were found in the document");
        Ok(())
    })
}

/// The commands of the document: what is put through one is heard through another, and the role is
/// shown and handed over.
fn serve_etcdctl(stage: &mut Stage) -> Result<()> {
    let needs = [Asset::Windlass, Asset::Etcdctl];
    with(stage, "replicas_serve_etcdctl", &needs, async |together, _| {
        let program = together.scene.program(Asset::Etcdctl)?;
        let etcdctl = |endpoints: &str, words: &[&str]| {
            let mut command = Command::new(&program);
            command.args(["--endpoints", endpoints]).args(words);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
            command
        };
        let [first, last] = [0, REPLICAS - 1].map(|index| together.stores[index].endpoint());
        let watching = etcdctl(&last, &["watch", "--rev", "1", "greeting"]).spawn();
        let mut watching = watching.context("start etcdctl")?;
        let put = etcdctl(&first, &["put", "greeting", "hello"]).output().await?;
        ensure!(put.status.success(), "{put:?}");
        let mut lines = BufReader::new(watching.stdout.take().context("a pipe")?).lines();
        let heard = tokio::time::timeout(TAKEOVER_WAIT, async {
            while let Some(line) = lines.next_line().await? {
                if line == "hello" {
                    return Ok(());
                }
            }
            bail!("the watch ended")
        });
        heard.await.context("the watch hears nothing")??;
        let all = together.endpoints();
        let status = etcdctl(&all, &["endpoint", "status", "-w", "json"]).output().await?;
        let (leader, others) = roles(&serde_json::from_slice(&status.stdout)?)?;
        ensure!(others.len() == REPLICAS - 1, "{leader} and {others:?}");
        let target = format!("{:x}", others[0]);
        let moved = etcdctl(&all, &["move-leader", &target]).output().await?;
        let told = String::from_utf8_lossy(&moved.stdout).into_owned();
        ensure!(told.contains("Leadership transferred from"), "{told} {moved:?}");
        Ok(())
    })
}

/// The member that writes, and the others, as `endpoint status` tells them.
fn roles(status: &Value) -> Result<(u64, Vec<u64>)> {
    let each = status.as_array().context("a list")?;
    let number = |status: &Value, path: &str| {
        let found = status.pointer(path).and_then(Value::as_u64);
        found.with_context(|| format!("{path} in {status}"))
    };
    let (mut leaders, mut others) = (Vec::new(), Vec::new());
    for one in each {
        let own = number(one, "/Status/header/member_id")?;
        let is_leader = number(one, "/Status/leader")? == own;
        if is_leader { leaders.push(own) } else { others.push(own) }
    }
    ensure!(leaders.len() == 1, "{leaders:?} all write");
    Ok((leaders[0], others))
}

/// A writer that stood still while another took the role neither writes nor shows what is old.
fn a_paused_writer(stage: &mut Stage) -> Result<()> {
    with(stage, "replicas_a_paused_writer", &[Asset::Windlass], async |together, _| {
        let writer = together.wait_for_writer(None).await?;
        together.client(writer)?.kv().put(put("k", "before")).await?;
        together.pause(writer)?;
        let next = together.wait_for_writer(Some(writer)).await?;
        together.client(next)?.kv().put(put("k", "after")).await?;
        together.resume(writer)?;
        let request = RangeRequest { key: "k".into(), ..Default::default() };
        // The first answer may be that it does not know; the first value must be the newest.
        let read = wait_for("the woken store to answer", TAKEOVER_WAIT, async || {
            Ok(match together.client(writer)?.kv().range(request.clone()).await {
                Ok(read) => Level::Reached(read.into_inner()),
                Err(status) => Level::Below(status.to_string()),
            })
        })
        .await?;
        ensure!(read.kvs.len() == 1 && read.kvs[0].value() == b"after", "{read:?}");
        ensure!(together.wait_for_writer(None).await? == next, "the role moved again");
        together.client(writer)?.kv().put(put("k", "through the woken one")).await?;
        Ok(())
    })
}
