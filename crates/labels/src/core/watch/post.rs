//! What a watcher has to tell: one transaction that is to exist on the server.

use crate::core::{
    checkpoint::Checkpoint,
    names::{NodeHash, TransactionName},
    object::{LiveNode, Uid},
    transaction::{Kind, Source, Transaction},
};

/// One transaction to be created, and not let go of until the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    pub node: NodeHash,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Transaction(Box<Transaction>),
    /// The deletion of an incarnation whose labels only its checkpoint has. It is read when its turn
    /// comes, so that thousands of them need no memory.
    Checkpoint {
        uid: Uid,
    },
}

// === impl Post ===

impl Post {
    #[must_use]
    pub fn added(node: &LiveNode, source: Source) -> Self {
        Self::transaction(node, source, Kind::Added)
    }

    /// A deletion at the node's resource version: the event's own where one was seen, else the last
    /// one known, which is below every version of a later incarnation.
    #[must_use]
    pub fn deleted(node: &LiveNode, source: Source) -> Self {
        Self::transaction(node, source, Kind::Deleted(Checkpoint::of(node).snapshot))
    }

    #[must_use]
    pub fn checkpointed(node: NodeHash, uid: Uid) -> Self {
        Self { node, content: Content::Checkpoint { uid } }
    }

    /// The name of an event that was seen. Whoever saw a transaction of this name need not post it.
    /// For what was only inferred the name proves nothing: the resource version it was last seen at
    /// may be the one its `added` was named with.
    #[must_use]
    pub fn witnessed(&self) -> Option<&TransactionName> {
        match &self.content {
            Content::Transaction(transaction) if transaction.source == Some(Source::Watch) => {
                Some(&transaction.name)
            }
            _ => None,
        }
    }

    fn transaction(node: &LiveNode, source: Source, kind: Kind) -> Self {
        let hash = NodeHash::of(&node.name);
        let transaction = Transaction {
            name: TransactionName::new(hash.clone(), node.rv.clone()),
            node: node.name.clone(),
            uid: Some(node.uid.clone()),
            created: Some(node.created),
            source: Some(source),
            kind,
        };
        Self { node: hash, content: Content::Transaction(Box::new(transaction)) }
    }
}
