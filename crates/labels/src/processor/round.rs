//! One batch of a node's transactions, under one reading of the node and its record.

use std::error;

use super::{
    Context,
    hand::{Cover, Failure, Hand},
};
use crate::{
    core::{
        command::{Command, Decision, Event, EventReason, QuarantineReason, Row},
        decide::{decide, poisoned},
        queue::{Batch, Entry},
        reading::Reading,
        record::Stored,
        settle::{Cause, settle},
        transaction::{Poison, Transaction},
    },
    kubernetes::Error,
};

pub(super) struct Round<'t> {
    hand: Hand<'t>,
    /// Transactions that are done but for their deletion, in order. They go after the final settle:
    /// until then they are what brings a successor back to this node. None goes earlier: who stores
    /// a record and dies before it is settled has to leave behind the transaction that led to it.
    held: Vec<Entry>,
    /// What the last transaction settled, if it was an `added`.
    settled: Option<Row>,
}

// === impl Round ===

impl<'t> Round<'t> {
    /// Reads the node and its record by quorum reads.
    pub(super) async fn begin(
        context: &'t Context,
        node: &'t str,
        cover: Cover<'t>,
    ) -> Result<Self, Failure> {
        let reading = read_node(context, node).await?;
        Ok(Self::new(context, node, cover, reading))
    }

    /// For transactions of which none names a node: there is nothing to read.
    pub(super) fn unnamed(context: &'t Context, cover: Cover<'t>) -> Self {
        Self::new(context, "", cover, Reading { stored: Stored::Absent, live: None })
    }

    /// Takes what says nothing out of the queue; what does is for a round that knows its node.
    pub(super) async fn set_apart(&mut self, batch: &Batch) -> Result<(), Failure> {
        for entry in &batch.entries {
            match read(self.hand.context, entry).await.map_err(Failure::Unavailable)? {
                Some(Ok(_)) => {}
                Some(Err(poison)) => self.set_poison_apart(entry, &poison).await?,
                None => self.on_gone(entry),
            }
        }
        Ok(())
    }

    fn new(context: &'t Context, node: &'t str, cover: Cover<'t>, reading: Reading) -> Self {
        Self {
            hand: Hand { context, node, cover, reading, is_node_stale: false },
            held: Vec::new(),
            settled: None,
        }
    }

    /// All of them in order, then what is left to settle, then their deletion.
    pub(super) async fn work_off(&mut self, batch: &Batch) -> Result<(), Failure> {
        for entry in &batch.entries {
            match read(self.hand.context, entry).await.map_err(Failure::Unavailable)? {
                Some(Ok(transaction)) => self.process(entry, &transaction).await?,
                Some(Err(poison)) => self.set_poison_apart(entry, &poison).await?,
                None => self.on_gone(entry),
            }
        }
        self.settle(batch).await?;
        for entry in std::mem::take(&mut self.held) {
            self.hand.delete(&entry).await?;
        }
        Ok(())
    }

    async fn set_poison_apart(&mut self, entry: &Entry, poison: &Poison) -> Result<(), Failure> {
        let decision = poisoned(&entry.name, poison);
        self.hand.carry_out(&decision).await?;
        self.hand.context.metrics.on_processed(decision.row.as_str());
        Ok(())
    }

    async fn process(&mut self, entry: &Entry, transaction: &Transaction) -> Result<(), Failure> {
        let Context { policy, clock, .. } = self.hand.context;
        let decision = decide(&self.hand.reading, transaction, policy, clock());
        tracing::info!(node = self.hand.node, transaction = %entry.name, %decision, "decided");
        let is_possible = self.try_carrying_out(&decision, Some(entry)).await?;
        let metrics = &self.hand.context.metrics;
        metrics.on_processed(decision.row.as_str());
        decision.then.into_iter().for_each(|row| metrics.on_processed(row.as_str()));
        if is_possible && finishes(&decision) {
            self.held.push(entry.clone());
        }
        self.settled = decision.then;
        Ok(())
    }

    async fn settle(&mut self, batch: &Batch) -> Result<(), Failure> {
        let Context { policy, clock, metrics, .. } = self.hand.context;
        // Whoever worked on the node's return meanwhile may have found no record. It is there now,
        // so this is the time to see the node.
        if self.hand.is_node_stale {
            self.hand.reading = read_node(self.hand.context, self.hand.node).await?;
        }
        let cause = batch.wish.as_ref().map_or(Cause::Queue, |wish| wish.cause);
        let decision = settle(&self.hand.reading, cause, policy, clock());
        let is_told = !decision.acts() && self.settled == Some(decision.row);
        if decision.commands.is_empty() || is_told {
            return Ok(());
        }
        tracing::info!(node = self.hand.node, %decision, "settled");
        let last = self.held.last().cloned();
        if !self.try_carrying_out(&decision, last.as_ref()).await? {
            self.held.pop();
        }
        metrics.on_processed(decision.row.as_str());
        Ok(())
    }

    /// Whether it could be. What never can is set apart with the transaction that led to it; where
    /// none did, the next resync tries again.
    async fn try_carrying_out(
        &mut self,
        decision: &Decision,
        entry: Option<&Entry>,
    ) -> Result<bool, Failure> {
        let error = match self.hand.carry_out(decision).await {
            Ok(()) => return Ok(true),
            Err(Failure::Impossible(error)) => error,
            Err(failure) => return Err(failure),
        };
        tracing::error!(node = self.hand.node, %decision, error = &error as &dyn error::Error, "refused");
        if let Some(entry) = entry {
            self.hand.quarantine(&entry.name, QuarantineReason::Refused).await?;
        }
        let note = format!("{decision} was refused: {error}");
        self.hand.tell(&Event::new(EventReason::Quarantined, note));
        Ok(false)
    }

    fn on_gone(&self, entry: &Entry) {
        self.hand.context.backlog.on_gone(&entry.name, entry.uid.as_ref());
    }
}

/// By quorum reads, in the order that [`Reading`] asks for.
async fn read_node(context: &Context, node: &str) -> Result<Reading, Failure> {
    let live = context.objects.nodes.get(node).await.map_err(Failure::Unavailable)?;
    let record = context.objects.records.get(node).await.map_err(Failure::Unavailable)?;
    Ok(Reading { stored: Stored::read(record.as_ref()), live })
}

fn finishes(decision: &Decision) -> bool {
    decision.commands.iter().any(|command| matches!(command, Command::DeleteTransaction(_)))
}

/// A transaction's content, fetched if it is not at hand; nothing if it is gone.
pub(super) async fn read(
    context: &Context,
    entry: &Entry,
) -> Result<Option<Result<Transaction, Poison>>, Error> {
    let fetched;
    let document = match &entry.document {
        Some(document) => Some(document),
        None => {
            fetched = context.objects.transactions.get(&entry.name.to_string()).await?;
            fetched.as_ref()
        }
    };
    Ok(document.map(|document| Transaction::decode(&entry.name, document)))
}
