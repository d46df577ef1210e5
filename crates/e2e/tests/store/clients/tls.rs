//! TLS as etcdctl meets it, on etcd and on windlass: whose certificate is accepted, who a client is
//! by its own, and what is refused.

mod authority;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::scene::{Scene, suite};
use e2e::store::{Lane, Store, StoreOptions};
use e2e::wait::{Level, wait_for};
use tokio::process::Command;
use tokio::time::timeout;

use self::authority::{Authority, Identity};

/// How long a store may take until it serves.
const READY_WAIT: Duration = Duration::from_secs(60);

/// More than etcdctl's own patience with a server that refuses it.
const COMMAND_WAIT: Duration = Duration::from_secs(30);

macro_rules! lanes {
    ($($etcd:ident / $windlass:ident => $check:ident;)+) => {$(
        #[test]
        fn $etcd() {
            run(stringify!($etcd), Lane::Etcd, async |scene, lane| $check(scene, lane).await);
        }

        #[test]
        fn $windlass() {
            run(stringify!($windlass), Lane::Windlass, async |scene, lane| $check(scene, lane).await);
        }
    )+};
}

lanes! {
    etcd_asks_for_certificates / windlass_asks_for_certificates => check_certificates;
    etcd_knows_users_by_certificate / windlass_knows_users_by_certificate => check_common_names;
    etcd_makes_its_own_certificate / windlass_makes_its_own_certificate => check_auto_tls;
}

fn run(name: &'static str, lane: Lane, check: impl AsyncFnOnce(&Scene, Lane) -> Result<()>) {
    suite(name, &[lane.asset(), Asset::Etcdctl], async |scene| check(scene, lane).await);
}

/// Only those with a certificate of the trusted authority are served, and encrypted.
async fn check_certificates(scene: &Scene, lane: Lane) -> Result<()> {
    let ours = Authority::new(scene, "ours")?;
    let other = Authority::new(scene, "other")?;
    let (alice, stranger) = (ours.sign("alice")?, other.sign("alice")?);
    let server = start(scene, lane, &demanding(&ours)?).await?;
    let as_alice = alice.flags(&ours);
    server.wait_ready(&as_alice).await?;
    server.expect(&as_alice, "put a 1", "OK").await?;
    server.expect(&as_alice, "get a --print-value-only", "1").await?;
    server.refuse(&ours.flags(), "get a").await.context("without a certificate")?;
    server.refuse(&stranger.flags(&ours), "get a").await.context("of another authority")?;
    server.refuse(&alice.flags(&other), "get a").await.context("a server of another authority")?;
    let plain = server.store.endpoint().replace("https", "http");
    let answer = server.etcdctl_at(&plain, &[], "get a").await?;
    ensure!(!answer.is_success, "served without TLS: {}", answer.said);
    Ok(())
}

/// With users switched on, the common name says who speaks.
async fn check_common_names(scene: &Scene, lane: Lane) -> Result<()> {
    let ours = Authority::new(scene, "ours")?;
    let alice = ours.sign("alice")?.flags(&ours);
    // A certificate without a name leaves it to the password.
    let root = [ours.sign("")?.flags(&ours), vec!["--user=root:secret".to_owned()]].concat();
    let server = start(scene, lane, &demanding(&ours)?).await?;
    server.wait_ready(&alice).await?;
    for command in [
        "user add root:secret",
        "role add root",
        "user grant-role root root",
        "user add alice --no-password",
        "role add app",
        "role grant-permission app --prefix readwrite app/",
        "user grant-role alice app",
        "auth enable",
    ] {
        ensure!(server.etcdctl(&alice, command).await?.is_success, "{command}");
    }
    server.expect(&alice, "put app/1 hers", "OK").await?;
    let denied = server.etcdctl(&alice, "put other 1").await?;
    ensure!(!denied.is_success && denied.said.contains("permission denied"), "{}", denied.said);
    server.expect(&root, "put other 1", "OK").await
}

/// A certificate that nobody signed: encrypted for whoever does not ask further.
async fn check_auto_tls(scene: &Scene, lane: Lane) -> Result<()> {
    let server = start(scene, lane, &["--auto-tls".to_owned()]).await?;
    let trusting = ["--insecure-transport=false", "--insecure-skip-tls-verify"];
    let trusting = trusting.map(ToOwned::to_owned).to_vec();
    server.wait_ready(&trusting).await?;
    server.expect(&trusting, "put a 1", "OK").await?;
    let ours = Authority::new(scene, "ours")?;
    server.refuse(&ours.flags(), "get a").await.context("for whoever asks who signed it")
}

fn demanding(authority: &Authority) -> Result<Vec<String>> {
    let Identity { certificate, key } = authority.sign("server")?;
    let path = |path: std::path::PathBuf| path.display().to_string();
    Ok(vec![
        format!("--cert-file={}", path(certificate)),
        format!("--key-file={}", path(key)),
        format!("--trusted-ca-file={}", path(authority.certificate())),
        "--client-cert-auth".to_owned(),
    ])
}

struct Server {
    store: Store,
    program: std::path::PathBuf,
}

struct Answer {
    is_success: bool,
    said: String,
}

async fn start(scene: &Scene, lane: Lane, flags: &[String]) -> Result<Server> {
    let options = StoreOptions { is_encrypted: true, ..StoreOptions::new(lane, "store") };
    let mut store = Store::prepare(scene, &options.flags(flags))?;
    store.launch()?;
    Ok(Server { store, program: scene.program(Asset::Etcdctl)? })
}

// === impl Server ===

impl Server {
    async fn wait_ready(&self, flags: &[String]) -> Result<()> {
        wait_for("the store to serve", READY_WAIT, async || {
            let answer = self.etcdctl(flags, "endpoint health").await?;
            Ok(if answer.is_success { Level::Reached(()) } else { Level::Below(answer.said) })
        })
        .await
    }

    async fn expect(&self, flags: &[String], command: &str, expected: &str) -> Result<()> {
        let answer = self.etcdctl(flags, command).await?;
        ensure!(answer.is_success && answer.said.trim() == expected, "{command}: {}", answer.said);
        Ok(())
    }

    async fn refuse(&self, flags: &[String], command: &str) -> Result<()> {
        let answer = self.etcdctl(flags, command).await?;
        ensure!(!answer.is_success, "{command} was not refused: {}", answer.said);
        Ok(())
    }

    async fn etcdctl(&self, flags: &[String], command: &str) -> Result<Answer> {
        self.etcdctl_at(&self.store.endpoint(), flags, command).await
    }

    async fn etcdctl_at(&self, at: &str, flags: &[String], command: &str) -> Result<Answer> {
        let mut etcdctl = Command::new(&self.program);
        etcdctl.args(["--endpoints", at, "--command-timeout=3s"]);
        etcdctl.args(flags).args(command.split(' ')).kill_on_drop(true);
        let ended = timeout(COMMAND_WAIT, etcdctl.output()).await;
        let output = ended.with_context(|| format!("{command} does not end"))??;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        Ok(Answer { is_success: output.status.success(), said })
    }
}
