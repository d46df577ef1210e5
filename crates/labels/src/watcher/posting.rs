//! One transaction, until the server has it: repeated for ever and never skipped. Only the order in
//! which posts begin is decided elsewhere.

use std::{sync::Arc, time::Duration};

use kubekit::backoff::Backoff;

use super::{Context, tell};
use crate::{
    core::{
        checkpoint::CheckpointError,
        keys::NODE,
        names::NodeHash,
        object::{Document, Uid},
        transaction::{Kind, Source, Transaction},
        watch::{
            delivery::{Taken, is_certain, on_taken, testimony},
            post::{Content, Post},
        },
    },
    kubernetes::{self, Error},
    metrics::Posted,
};

/// The first wait after a failure, and the longest.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// How a post ended.
pub(super) enum Ended {
    /// The server has it, or there is nothing left to have.
    Told(Post),
    /// Its checkpoint cannot be read. Nobody knows the labels, and the checkpoint stays for a person
    /// to look at.
    Untold(Post),
}

pub(super) async fn post(context: Arc<Context>, post: Post) -> Ended {
    let transaction = match &post.content {
        Content::Transaction(transaction) => Some(transaction.clone()),
        Content::Checkpoint { uid } => match testify(&context, &post.node, uid).await {
            Ok(transaction) => transaction.map(Box::new),
            Err(broken) => {
                on_broken(&context, &broken, uid);
                return Ended::Untold(post);
            }
        },
    };
    match transaction {
        Some(transaction) if context.is_dry_run => rehearse(&context, &transaction),
        Some(transaction) => deliver(&context, transaction).await,
        None => {}
    }
    Ended::Told(post)
}

fn rehearse(context: &Context, transaction: &Transaction) {
    let Transaction { name, node, kind, source, .. } = transaction;
    let source = source.map(Source::as_str);
    tracing::info!(node, transaction = %name, kind = kind.as_str(), source, "would post");
    context.metrics.on_posted(kind.as_str(), Posted::DryRun);
}

/// A checkpoint with labels that cannot be read.
struct Broken {
    checkpoint: Document,
    error: CheckpointError,
}

/// Reads the labels from the checkpoint.
async fn testify(
    context: &Context,
    node: &NodeHash,
    uid: &Uid,
) -> Result<Option<Transaction>, Broken> {
    let mut patience = Patience::new("reading a checkpoint", node);
    loop {
        match context.objects.checkpoints.get(&node.to_string()).await {
            Ok(None) => return Ok(None),
            Ok(Some(checkpoint)) => {
                let testimony = testimony(Some(&checkpoint), node, uid);
                return testimony.map_err(|error| Broken { checkpoint, error });
            }
            Err(error) => patience.on_failure(context, &error).await,
        }
    }
}

fn on_broken(context: &Context, broken: &Broken, uid: &Uid) {
    let Broken { checkpoint, error } = broken;
    let node = checkpoint.annotations.get(NODE).map_or("", String::as_str);
    let source = error as &dyn std::error::Error;
    let name = &checkpoint.name;
    tracing::error!(node, checkpoint = name, error = source, "a lost node's labels are unreadable");
    if !context.is_dry_run {
        tell::unreadable(&context.events, node, uid, name, error);
    }
}

async fn deliver(context: &Context, mut transaction: Box<Transaction>) {
    let mut patience = Patience::new("posting", transaction.name.node());
    loop {
        let document = match transaction.encode() {
            Ok(document) => document,
            Err(error) => {
                let Transaction { node, uid, .. } = &*transaction;
                tracing::error!(node, %error, "the labels of a deleted node are lost");
                return tell::too_large(&context.events, node, uid.as_ref(), error);
            }
        };
        match context.objects.transactions.create(&document).await {
            Ok(_) => return on_delivered(context, &transaction, Posted::Created),
            Err(error) if error.kind == kubernetes::Kind::AlreadyExists => {
                match look(context, &transaction).await {
                    Ok(found) => match on_taken((*transaction).clone(), found.as_ref()) {
                        Taken::Done => {
                            return on_delivered(context, &transaction, Posted::AlreadyExists);
                        }
                        Taken::Again(again) => transaction = again,
                    },
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

/// What bears the name of a transaction, where that matters.
async fn look(context: &Context, transaction: &Transaction) -> Result<Option<Document>, Error> {
    if is_certain(transaction) {
        return Ok(None);
    }
    context.objects.transactions.get(&transaction.name.to_string()).await
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
        context.status.on_post_failed(error);
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
