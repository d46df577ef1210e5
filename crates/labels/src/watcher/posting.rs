//! One transaction, until the server has it: repeated for ever and never skipped. Only the order in
//! which posts begin is decided elsewhere.

use std::{sync::Arc, time::Duration};

use kubekit::backoff::Backoff;

use super::{Context, tell};
use crate::{
    core::{
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

/// Ends when the server has it, or when there is nothing left to have.
pub(super) async fn post(context: Arc<Context>, post: Post) -> Post {
    let transaction = match &post.content {
        Content::Transaction(transaction) => Some(transaction.clone()),
        Content::Checkpoint { uid } => testify(&context, &post.node, uid).await,
    };
    match transaction {
        Some(transaction) if context.is_dry_run => rehearse(&context, &transaction),
        Some(transaction) => deliver(&context, transaction).await,
        None => {}
    }
    post
}

fn rehearse(context: &Context, transaction: &Transaction) {
    let Transaction { name, node, kind, source, .. } = transaction;
    let source = source.map(Source::as_str);
    tracing::info!(node, transaction = %name, kind = kind.as_str(), source, "would post");
    context.metrics.on_posted(kind.as_str(), Posted::DryRun);
}

/// Reads the labels from the checkpoint. One that cannot be read has nothing to tell, ever.
async fn testify(context: &Context, node: &NodeHash, uid: &Uid) -> Option<Box<Transaction>> {
    let mut patience = Patience::new("reading a checkpoint", node);
    loop {
        match context.objects.checkpoints.get(&node.to_string()).await {
            Ok(document) => match testimony(document.as_ref(), node, uid) {
                Ok(transaction) => return transaction.map(Box::new),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(%node, error, "a lost node's labels are in a broken checkpoint");
                    return None;
                }
            },
            Err(error) => patience.on_failure(context, &error).await,
        }
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
