//! Reads, writes, transactions and compaction.

use anyhow::Result;
use etcd_client::{
    Client, CompactionOptions, Compare, CompareOp, DeleteOptions, GetOptions, PutOptions,
    SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse, TxnResponse,
};

use crate::transcript::{Transcript, pair, pairs, revision};

pub(crate) async fn run(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    write(client, transcript).await?;
    read(client, transcript).await?;
    transact(client, transcript).await?;
    compact(client, transcript).await
}

async fn write(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    for (key, value) in [("a", "1"), ("b", ""), ("c", "3")] {
        let answer = client.put(key, value, None).await?;
        transcript.say("put", revision(answer.header()));
    }
    let options = PutOptions::new().with_prev_key();
    let answer = client.put("a", "2", Some(options)).await?;
    transcript.say("put over", answer.prev_key().map(pair).unwrap_or_default());
    let options = PutOptions::new().with_ignore_value();
    transcript.refused("put without a value", client.put("missing", "", Some(options)).await)?;
    transcript.refused("put without a key", client.put("", "1", None).await)?;
    let options = DeleteOptions::new().with_prefix().with_prev_key();
    let answer = client.delete("c", Some(options)).await?;
    transcript.say("delete", format!("{} {}", answer.deleted(), pairs(answer.prev_kvs())));
    Ok(())
}

async fn read(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    for (what, key, options) in [
        ("get", "a", GetOptions::new()),
        ("get missing", "nothing", GetOptions::new()),
        ("get all", "", GetOptions::new().with_all_keys()),
        ("get one of all", "", GetOptions::new().with_all_keys().with_limit(1)),
        ("count", "", GetOptions::new().with_all_keys().with_count_only()),
        ("keys", "", GetOptions::new().with_all_keys().with_keys_only()),
        ("get back then", "a", GetOptions::new().with_revision(2)),
        (
            "sorted",
            "",
            GetOptions::new().with_all_keys().with_sort(SortTarget::Mod, SortOrder::Descend),
        ),
        ("serializable", "b", GetOptions::new().with_serializable()),
    ] {
        let answer = client.get(key, Some(options)).await?;
        let told = (answer.count(), answer.more(), pairs(answer.kvs()));
        transcript.say(what, format!("{} of {}, more: {}", told.2, told.0, told.1));
    }
    let future = GetOptions::new().with_revision(99);
    transcript.refused("get what is to come", client.get("a", Some(future)).await)
}

async fn transact(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    let inner = Txn::new()
        .when([Compare::create_revision("new", CompareOp::Greater, 0)])
        .and_then([TxnOp::get("new", None)])
        .or_else([TxnOp::put("newer", "5", None)]);
    let taken = Txn::new()
        .when([
            Compare::value("a", CompareOp::Equal, "2"),
            Compare::version("x", CompareOp::Equal, 0),
        ])
        .and_then([TxnOp::put("new", "4", None), TxnOp::get("new", None), TxnOp::txn(inner)])
        .or_else([TxnOp::delete("a", None)]);
    transcript.say("transaction", told(&client.txn(taken).await?));
    let other = Txn::new()
        .when([Compare::lease("a", CompareOp::NotEqual, 0)])
        .and_then([TxnOp::get("a", None)])
        .or_else([TxnOp::delete("newer", None)]);
    transcript.say("other branch", told(&client.txn(other).await?));
    let twice = [TxnOp::put("a", "1", None), TxnOp::put("a", "2", None)];
    transcript.refused("a key twice", client.txn(Txn::new().and_then(twice)).await)
}

fn told(answer: &TxnResponse) -> String {
    let parts = answer.op_responses().into_iter().map(|part| match part {
        TxnOpResponse::Put(put) => format!("put {}", revision(put.header())),
        TxnOpResponse::Get(get) => format!("get {}", pairs(get.kvs())),
        TxnOpResponse::Delete(delete) => format!("deleted {}", delete.deleted()),
        TxnOpResponse::Txn(inner) => format!("({})", told(&inner)),
    });
    format!("{} {}", answer.succeeded(), parts.collect::<Vec<_>>().join(", "))
}

async fn compact(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    let options = CompactionOptions::new().with_physical();
    let answer = client.compact(4, Some(options)).await?;
    transcript.say("compact", revision(answer.header()));
    transcript.refused("compact again", client.compact(4, None).await)?;
    let before = GetOptions::new().with_revision(3);
    transcript.refused("get what is compacted", client.get("a", Some(before)).await)
}
