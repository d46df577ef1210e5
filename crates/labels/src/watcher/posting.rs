//! One transaction, until the server has it: repeated for ever and never skipped. Only the order in
//! which posts begin is decided elsewhere.

use std::{sync::Arc, time::Duration};

use kubekit::backoff::Backoff;

use super::{Context, tell};
use crate::{
    core::{
        checkpoint::Checkpoint,
        keys::TYPE,
        names::{NodeHash, TransactionName},
        object::{Document, Uid},
        transaction::{Kind, Source, Transaction},
        watch::post::{Content, Post},
    },
    kubernetes::{self, Error},
    metrics::Posted,
};

/// The first wait after a failure, and the longest.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// What a checkpoint has to say about an incarnation.
enum Testimony {
    Transaction(Box<Transaction>),
    /// Somebody else told its end and removed it or wrote over it, or it cannot be read.
    Nothing,
}

/// Ends when the server has it, or when there is nothing left to have.
pub(super) async fn post(context: Arc<Context>, post: Post) -> Post {
    let transaction = match &post.content {
        Content::Transaction(transaction) => Some(transaction.clone()),
        Content::Checkpoint { uid } => testify(&context, &post.node, uid).await,
    };
    if let Some(transaction) = transaction {
        deliver(&context, *transaction).await;
    }
    post
}

/// Reads the labels from the checkpoint.
async fn testify(context: &Context, node: &NodeHash, uid: &Uid) -> Option<Box<Transaction>> {
    let mut patience = Patience::new("reading a checkpoint", node);
    loop {
        match context.objects.checkpoints.get(&node.to_string()).await {
            Ok(document) => match testimony(document.as_ref(), node, uid) {
                Testimony::Transaction(transaction) => return Some(transaction),
                Testimony::Nothing => return None,
            },
            Err(error) => patience.on_failure(context, &error).await,
        }
    }
}

fn testimony(document: Option<&Document>, node: &NodeHash, uid: &Uid) -> Testimony {
    let Some(document) = document else { return Testimony::Nothing };
    let Checkpoint { snapshot, created } = match Checkpoint::decode(document) {
        Ok(checkpoint) => checkpoint,
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::error!(%node, error, "the labels of a lost node are in a broken checkpoint");
            return Testimony::Nothing;
        }
    };
    if snapshot.uid.as_ref() != Some(uid) {
        return Testimony::Nothing;
    }
    Testimony::Transaction(Box::new(Transaction {
        name: TransactionName::new(node.clone(), snapshot.rv.clone()),
        node: snapshot.node.clone(),
        uid: Some(uid.clone()),
        created: Some(created),
        source: Some(Source::Checkpoint),
        kind: Kind::Deleted(snapshot),
    }))
}

async fn deliver(context: &Context, mut transaction: Transaction) {
    let mut patience = Patience::new("posting", transaction.name.node());
    loop {
        let document = match transaction.encode() {
            Ok(document) => document,
            Err(error) => {
                let Transaction { node, uid, .. } = &transaction;
                tracing::error!(node, %error, "the labels of a deleted node are lost");
                return tell::too_large(&context.events, node, uid.as_ref(), error);
            }
        };
        match context.objects.transactions.create(&document).await {
            Ok(_) => return on_delivered(context, &transaction, Posted::Created),
            Err(error) if error.kind == kubernetes::Kind::AlreadyExists => {
                match occupant(context, &transaction).await {
                    Ok(Occupant::Ours) => {
                        return on_delivered(context, &transaction, Posted::AlreadyExists);
                    }
                    Ok(Occupant::Arrival) => transaction = renamed(transaction),
                    Ok(Occupant::Nobody) => {}
                    Err(error) => patience.on_failure(context, &error).await,
                }
            }
            Err(error) => {
                context.metrics.on_posted(transaction.kind.as_str(), Posted::Failed);
                patience.on_failure(context, &error).await;
            }
        }
    }
}

/// What bears the name of a transaction that is to be created.
enum Occupant {
    /// The same, by another watcher or by an earlier attempt of our own.
    Ours,
    /// The arrival of the incarnation whose end is to be told.
    Arrival,
    /// It has just been worked off.
    Nobody,
}

/// An event that was seen is alone with its version. An end that was only inferred is named with the
/// version at which the node was last seen, and its arrival may be named with the same.
async fn occupant(context: &Context, transaction: &Transaction) -> Result<Occupant, Error> {
    let is_certain = transaction.source == Some(Source::Watch) || transaction.kind == Kind::Added;
    if is_certain {
        return Ok(Occupant::Ours);
    }
    let found = context.objects.transactions.get(&transaction.name.to_string()).await?;
    let kind = found.as_ref().map(|found| found.data.get(TYPE).map(String::as_str));
    Ok(match kind {
        None => Occupant::Nobody,
        Some(Some("added")) => Occupant::Arrival,
        Some(_) => Occupant::Ours,
    })
}

/// The node's end is after it was last seen: the version that follows is at most the end's own, and
/// below every one of a later incarnation.
fn renamed(transaction: Transaction) -> Transaction {
    let rv = transaction.name.rv().successor().unwrap_or_else(|| transaction.name.rv().clone());
    let name = TransactionName::new(transaction.name.node().clone(), rv);
    Transaction { name, ..transaction }
}

fn on_delivered(context: &Context, transaction: &Transaction, posted: Posted) {
    context.status.on_posted();
    context.metrics.on_posted(transaction.kind.as_str(), posted);
    let is_inferred = transaction.source.is_some_and(|source| source != Source::Watch);
    if let (Kind::Deleted(_), Some(source), true, Posted::Created) =
        (&transaction.kind, transaction.source, is_inferred, posted)
    {
        context.metrics.on_missed_delete(source.as_str());
        tracing::info!(node = transaction.node, source = source.as_str(), "told a missed deletion");
    }
}

/// Waits between attempts. A row of failures is one to whoever reads the log.
struct Patience {
    doing: &'static str,
    node: NodeHash,
    backoff: Backoff,
}

// === impl Patience ===

impl Patience {
    fn new(doing: &'static str, node: &NodeHash) -> Self {
        let backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MAX);
        Self { doing, node: node.clone(), backoff }
    }

    async fn on_failure(&mut self, context: &Context, error: &Error) {
        context.status.on_write_failed(error);
        let wait = self.next_wait(error);
        tokio::time::sleep(wait).await;
    }

    fn next_wait(&mut self, error: &Error) -> Duration {
        let is_first = self.backoff.failures() == 0;
        let wait = self.backoff.on_failure(rand::random());
        let Self { doing, node, .. } = self;
        let error = error as &dyn std::error::Error;
        if is_first {
            tracing::warn!(doing, %node, error, "trying again until it succeeds");
        } else {
            tracing::debug!(doing, %node, error, ?wait, "trying again");
        }
        wait
    }
}
