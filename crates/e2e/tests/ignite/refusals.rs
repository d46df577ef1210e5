//! What a journal refuses, and in which words.

use anyhow::{Context, Result, ensure};
use journal::Journal;
use journal_ignite::{IgniteJournal, Options, TlsFiles, init};

use crate::stage::{Case, Kind, Stage, user};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("refusals::a_wrong_address", Kind::Single, a_wrong_address),
        Case::new(
            "refusals::no_journal_and_a_foreign_one",
            Kind::Single,
            no_journal_and_a_foreign_one,
        ),
        Case::new("refusals::too_few_replicas", Kind::Single, too_few_replicas),
        Case::new("refusals::a_zone_that_gives_up_on_order", Kind::Single, an_available_zone),
        Case::new("refusals::a_lost_grid", Kind::Single, a_lost_grid),
        Case::new("refusals::an_unsynced_log", Kind::Guarded, an_unsynced_log),
        Case::new("refusals::a_wrong_password", Kind::Guarded, a_wrong_password),
        Case::new("refusals::a_wrong_certificate", Kind::Guarded, a_wrong_certificate),
    ]
}

/// The whole chain of what opening failed with.
fn refusal(options: Options) -> Result<String> {
    let error = IgniteJournal::open(options).err().context("it was opened")?;
    Ok(format!("{:#}", anyhow::Error::new(error)))
}

fn expect(told: &str, words: &[&str]) -> Result<()> {
    for word in words {
        ensure!(told.contains(word), "`{word}` is not in: {told}");
    }
    Ok(())
}

fn a_wrong_address(stage: &mut Stage) -> Result<()> {
    let mut options = stage.journal();
    let [nobody] = e2e::ports::free()?;
    options.client.addresses = vec![format!("127.0.0.1:{nobody}")];
    expect(&refusal(options)?, &["connect to the grid", "cannot connect to 127.0.0.1:"])?;
    // Somebody listens, but waits for the end of a line that never comes.
    let mut options = stage.journal();
    options.client.addresses = stage.ignite.rest();
    expect(&refusal(options)?, &["did not greet", "is it a port for Ignite's clients?"])
}

fn no_journal_and_a_foreign_one(stage: &mut Stage) -> Result<()> {
    let options = stage.journal();
    expect(&refusal(options.clone())?, &["there is no journal in schema", "init"])?;
    let schema = options.schema.clone();
    let client = stage.client();
    let made = async {
        let client = ignite_client::Client::connect(client).await?;
        let script =
            format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.HEAD (ID VARCHAR PRIMARY KEY)");
        client.execute_script(&script).await
    };
    stage.runtime.block_on(made)?;
    expect(&refusal(options.clone())?, &[&options.schema, "something else"])?;
    let error = init(&options).err().context("somebody else's table was taken")?;
    expect(&format!("{:#}", anyhow::Error::new(error)), &["something else"])?;

    let newer = stage.journal();
    init(&newer)?;
    let update = format!("UPDATE {}.HEAD SET FORMAT = 99", newer.schema);
    let client = stage.client();
    stage.runtime.block_on(async {
        let client = ignite_client::Client::connect(client).await?;
        client.execute(None, &update, &[]).await.map(drop)
    })?;
    expect(&refusal(newer)?, &["format 99", "this program reads 1"])
}

fn too_few_replicas(stage: &mut Stage) -> Result<()> {
    let mut options = stage.journal();
    init(&options)?;
    init(&options).context("a second time changes nothing")?;
    options.is_unsafe_allowed = false;
    let told = refusal(options.clone())?;
    expect(&told, &["REPLICAS of zone", "is 1, it must be at least 3"])?;
    ensure!(!told.contains("fsync") && !told.contains("CONSISTENCY"), "{told}");
    options.rest.clear();
    expect(&refusal(options)?, &["no address of its REST interface"])
}

/// A zone that was made before with the mode that goes on without a majority is left as it is, and
/// refused.
fn an_available_zone(stage: &mut Stage) -> Result<()> {
    let mut options = stage.journal();
    let (zone, client) = (options.schema.clone(), stage.client());
    let made = async {
        let client = ignite_client::Client::connect(client).await?;
        let settings = "REPLICAS 1, PARTITIONS 1, CONSISTENCY MODE 'HIGH_AVAILABILITY'";
        let script = format!("CREATE ZONE {zone} ({settings}) STORAGE PROFILES ['default']");
        client.execute_script(&script).await
    };
    stage.runtime.block_on(made).context("make the zone")?;
    init(&options).context("what is there is left")?;
    let opened = IgniteJournal::open(options.clone()).context("unsafe settings are allowed")?;
    expect(&opened.allowed().join("; "), &["CONSISTENCY MODE of zone", "HIGH_AVAILABILITY"])?;
    options.is_unsafe_allowed = false;
    let words = ["CONSISTENCY MODE of zone", "is HIGH_AVAILABILITY, it must be STRONG_CONSISTENCY"];
    expect(&refusal(options)?, &words)
}

fn an_unsynced_log(stage: &mut Stage) -> Result<()> {
    let mut options = stage.journal();
    init(&options)?;
    IgniteJournal::open(options.clone()).context("unsafe settings are allowed")?;
    options.is_unsafe_allowed = false;
    let told = refusal(options)?;
    expect(&told, &["ignite.raft.fsync of https://127.0.0.1:", "is false, it must be true"])
}

fn a_wrong_password(stage: &mut Stage) -> Result<()> {
    let mut options = stage.journal();
    options.client.credentials = None;
    expect(&refusal(options.clone())?, &["user or password are wrong"])?;
    options.client.credentials = Some(user("wrong"));
    expect(&refusal(options.clone())?, &["user or password are wrong"])?;
    options.client.credentials = Some(user("ignite"));
    init(&options).context("the right password")?;
    let journal = IgniteJournal::open(options).context("the right password")?;
    journal.claim().context("claim")?;
    Ok(())
}

/// Neither side talks to somebody it does not know.
fn a_wrong_certificate(stage: &mut Stage) -> Result<()> {
    let right = stage.journal();
    let files = right.tls.clone().context("the node is guarded")?;
    let own = files.own.clone().context("the node asks for a certificate")?;
    let with = |files| {
        let mut wrong = right.clone();
        wrong.tls = Some(files);
        wrong
    };
    let told = refusal(with(TlsFiles { authorities: own.certificate, ..files.clone() }))?;
    expect(&told, &["cannot connect to 127.0.0.1:", "UnknownIssuer"])?;
    let elsewhere = Options::from_url("ignite://a:1?ca=b&name=elsewhere")?.tls.context("a name")?;
    let server_name = elsewhere.server_name;
    let told = refusal(with(TlsFiles { server_name, ..files.clone() }))?;
    expect(&told, &["cannot connect to 127.0.0.1:", "not valid for name"])?;
    let told = refusal(with(TlsFiles { own: None, ..files.clone() }))?;
    expect(&told, &["127.0.0.1:"])?;
    let nowhere = TlsFiles { authorities: "/nowhere/ca.pem".into(), ..files };
    expect(&refusal(with(nowhere))?, &["cannot read /nowhere/ca.pem"])
}

/// A writer whose grid is gone for good says so and takes no more.
fn a_lost_grid(stage: &mut Stage) -> Result<()> {
    let options = stage.journal();
    init(&options)?;
    let journal = IgniteJournal::open(options).context("open")?;
    let epoch = journal.claim().context("claim")?;
    stage.ignite.kill(0)?;
    let told = journal.durable().err().context("the grid is gone")?;
    expect(&format!("{:#}", anyhow::Error::new(told)), &["engine is unavailable", "read HEAD"])?;
    let told = journal.condense(epoch).err().context("the grid is gone")?;
    expect(&format!("{:#}", anyhow::Error::new(told)), &["can no longer be written"])?;
    let restarted = stage.ignite.restart(0);
    stage.runtime.block_on(restarted)?;
    let told = journal.condense(epoch).err().context("a stopped writer stays stopped")?;
    expect(&format!("{:#}", anyhow::Error::new(told)), &["an earlier one failed"])
}
