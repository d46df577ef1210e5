//! What leaves the machine is encrypted, and only who has a certificate is heard.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::process::{Process, Program};
use e2e::scene::Scene;
use e2e::tasks::command::Windlass;
use e2e::wait::{Level, wait_for};
use e2e::{ports, tasks::command::Said};
use tokio::process::Command;

use crate::stage::{PATIENCE, cases};

cases! {
    certificates_are_asked_for,
    a_store_is_reached_with_certificates,
    a_public_address_needs_them,
}

async fn certificates_are_asked_for(scene: &Scene) -> Result<()> {
    let ca = Authority::init(scene, &["node1"]).await?;
    let [api, store] = ports::free()?;
    let mut node = ca.node("node1", api, &[format!("--store-listen=127.0.0.1:{store}")])?;
    let stranger = Windlass::asking(scene, &format!("https://127.0.0.1:{api}"))?;
    let friend = stranger.clone().known_by(&ca.identity("me"));
    wait_for_nodes(&mut node, &friend, &["node1"]).await?;
    let said = friend.run(&["--", "echo", "hello"]).await?;
    ensure!(said.code == Some(0) && said.stdout == "hello\n", "{said:?}");
    let by = friend.json(&["task", "list"], &[]).await?;
    ensure!(by[0]["submitted_by"].as_str().is_some_and(|by| by.contains("me")), "{by}");
    let plain = Windlass::asking(scene, &format!("http://127.0.0.1:{api}"))?;
    for uncertified in [stranger, plain] {
        let said = uncertified.call(&["nodes"], &[]).await?;
        ensure!(said.code != Some(0) && !said.stdout.contains("node1"), "{said:?}");
    }
    node.stop().await?;
    Ok(())
}

/// By another node, which was given an endpoint too many, and by etcd's own client.
async fn a_store_is_reached_with_certificates(scene: &Scene) -> Result<()> {
    let ca = Authority::init(scene, &["node1", "node2"]).await?;
    let [first, second, store, nobody] = ports::free()?;
    let mut node1 = ca.node("node1", first, &[format!("--store-listen=127.0.0.1:{store}")])?;
    let friend = Windlass::asking(scene, &format!("https://127.0.0.1:{first}"))?;
    let friend = friend.known_by(&ca.identity("me"));
    wait_for_nodes(&mut node1, &friend, &["node1"]).await?;
    let endpoints = [nobody, store].map(|port| format!("https://127.0.0.1:{port}")).join(",");
    let mut node2 = ca.node("node2", second, &[format!("--store={endpoints}")])?;
    let friend = Windlass::asking(scene, &format!("https://127.0.0.1:{second}"))?;
    let friend = friend.known_by(&ca.identity("me"));
    wait_for_nodes(&mut node2, &friend, &["node1", "node2"]).await?;
    let id = friend.detach(&["--", "true"]).await?;
    ensure!(friend.call(&["task", "wait"], &[&id]).await?.code == Some(0));

    let mut etcdctl = Command::new(scene.program(Asset::Etcdctl)?);
    etcdctl.args(ca.identity("me")).arg(format!("--endpoints=https://127.0.0.1:{store}"));
    etcdctl.args(["get", "--prefix", "--keys-only", "/task/"]);
    let said = Said::from(etcdctl.output().await.context("run etcdctl")?);
    ensure!(said.code == Some(0) && said.stdout.contains(&id), "{said:?}");
    node2.stop().await?;
    node1.stop().await?;
    Ok(())
}

async fn a_public_address_needs_them(scene: &Scene) -> Result<()> {
    let data = scene.path().join("refused").display().to_string();
    for arguments in [&["--listen=0.0.0.0:0"][..], &["--listen=0.0.0.0:0", "--insecure"]] {
        let arguments = [arguments, &["--data-dir", &data, "--runtime=process"]].concat();
        let said = windlass(scene, &["node"], &arguments).await?;
        ensure!(said.code == Some(2), "{said:?}");
        ensure!(said.stderr.contains("hint:"), "{said:?}");
    }
    Ok(())
}

/// A certificate authority in a folder of the scene, and those it has given certificates.
struct Authority<'a> {
    scene: &'a Scene,
    folder: PathBuf,
}

// === impl Authority ===

impl<'a> Authority<'a> {
    /// With a certificate for each of the nodes, and one for the client `me`.
    async fn init(scene: &'a Scene, nodes: &[&str]) -> Result<Self> {
        let ca = Self { scene, folder: scene.path().join("ca") };
        ca.call(&["ca", "init"]).await?;
        for node in nodes {
            ca.call(&["ca", "issue", "--node", node]).await?;
        }
        ca.call(&["ca", "issue", "--client", "me"]).await?;
        Ok(ca)
    }

    async fn call(&self, verb: &[&str]) -> Result<()> {
        let folder = self.folder.display().to_string();
        let said = windlass(self.scene, verb, &["--dir", &folder]).await?;
        ensure!(said.code == Some(0), "{verb:?}: {said:?}");
        Ok(())
    }

    /// The flags by which somebody is known, to windlass and to etcdctl.
    fn identity(&self, name: &str) -> Vec<String> {
        [
            ("cacert", "ca.crt".to_owned()),
            ("cert", format!("{name}.crt")),
            ("key", format!("{name}.key")),
        ]
        .map(|(flag, file)| format!("--{flag}={}", self.folder.join(file).display()))
        .to_vec()
    }

    fn node(&self, name: &str, port: u16, more: &[String]) -> Result<Process> {
        let mut arguments = ["node", "--name", name].map(ToOwned::to_owned).to_vec();
        arguments.push(format!("--listen=127.0.0.1:{port}"));
        arguments.push(format!("--data-dir={}", self.scene.path().join(name).display()));
        arguments.extend(self.identity(name));
        arguments.extend_from_slice(more);
        Process::start(&Program {
            name: name.to_owned(),
            path: self.scene.program(Asset::Windlass)?,
            arguments,
            environment: Vec::new(),
            log_folder: self.scene.folder("logs")?,
        })
    }
}

async fn wait_for_nodes(node: &mut Process, friend: &Windlass, names: &[&str]) -> Result<()> {
    wait_for("the node to answer its friend", PATIENCE, async || {
        node.ensure_alive()?;
        let said = friend.call(&["nodes"], &[]).await?;
        let is_there = said.code == Some(0) && names.iter().all(|name| said.stdout.contains(name));
        Ok(if is_there { Level::Reached(()) } else { Level::Below(format!("{said:?}")) })
    })
    .await
}

async fn windlass(scene: &Scene, verb: &[&str], arguments: &[&str]) -> Result<Said> {
    let mut command = Command::new(scene.program(Asset::Windlass)?);
    let output = command.args(verb).args(arguments).output().await;
    Ok(Said::from(output.context("run windlass")?))
}
