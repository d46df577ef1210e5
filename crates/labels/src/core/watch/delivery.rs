//! What becomes of a post on its way: which transaction a checkpoint makes, and what to do when its
//! name is taken.

use crate::core::{
    checkpoint::{Checkpoint, CheckpointError},
    keys::TYPE,
    names::{NodeHash, TransactionName},
    object::{Document, Uid},
    transaction::{Kind, Source, Transaction},
};

/// What to do about a transaction whose name is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The server has it: from another watcher, or from an earlier attempt of our own.
    Done,
    /// Post it again, under this name.
    Again(Box<Transaction>),
}

/// The end of an incarnation as its checkpoint tells it. Nothing, if somebody else told it and
/// removed the checkpoint or wrote over it.
pub fn testimony(
    checkpoint: Option<&Document>,
    node: &NodeHash,
    uid: &Uid,
) -> Result<Option<Transaction>, CheckpointError> {
    let Some(document) = checkpoint else { return Ok(None) };
    let Checkpoint { snapshot, created } = Checkpoint::decode(document)?;
    if snapshot.uid.as_ref() != Some(uid) {
        return Ok(None);
    }
    Ok(Some(Transaction {
        name: TransactionName::new(node.clone(), snapshot.rv.clone()),
        node: snapshot.node.clone(),
        uid: Some(uid.clone()),
        created: Some(created),
        source: Some(Source::Checkpoint),
        kind: Kind::Deleted(snapshot),
    }))
}

/// Whether a taken name alone says that the transaction exists. An event that was seen is alone with
/// its version. An end that was only inferred is named with the version at which the node was last
/// seen, and its arrival may be named with the same.
#[must_use]
pub fn is_certain(transaction: &Transaction) -> bool {
    transaction.source == Some(Source::Watch) || transaction.kind == Kind::Added
}

/// What to do about a transaction whose name was taken, and what was found under it then.
#[must_use]
pub fn on_taken(transaction: Transaction, found: Option<&Document>) -> Taken {
    if is_certain(&transaction) {
        return Taken::Done;
    }
    match found.map(|found| found.data.get(TYPE).map(String::as_str)) {
        // It has just been worked off.
        None => Taken::Again(Box::new(transaction)),
        Some(Some("added")) => Taken::Again(Box::new(renamed(transaction))),
        Some(_) => Taken::Done,
    }
}

/// The end came after the node was last seen: the version that follows is at most the end's own, and
/// below every one of a later incarnation.
fn renamed(transaction: Transaction) -> Transaction {
    let rv = transaction.name.rv().successor().unwrap_or_else(|| transaction.name.rv().clone());
    let name = TransactionName::new(transaction.name.node().clone(), rv);
    Transaction { name, ..transaction }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::watch::{
        notation::{node, show, uid},
        post::{Content, Post},
    };

    fn transaction(post: Post) -> Transaction {
        let Content::Transaction(transaction) = post.content else { panic!("no transaction") };
        *transaction
    }

    fn shown(transaction: Transaction) -> String {
        let node = transaction.name.node().clone();
        show(&Post { node, content: Content::Transaction(Box::new(transaction)) })
    }

    /// What follows when `post`'s name is taken by `found`.
    fn taken(post: Post, found: Option<Post>) -> String {
        let found = found.map(|found| transaction(found).encode().unwrap());
        match on_taken(transaction(post), found.as_ref()) {
            Taken::Done => "done".to_owned(),
            Taken::Again(transaction) => shown(*transaction),
        }
    }

    #[test]
    fn an_end_that_was_inferred_steps_aside_for_the_arrival() {
        let last = node("a u1 9 x=1");
        let arrival = || Post::added(&last, Source::Watch);
        let end = |source| Post::deleted(&last, source);
        assert_eq!(taken(end(Source::Gap), Some(arrival())), "a.10 deleted u1 (gap) x=1");
        assert_eq!(taken(end(Source::List), Some(end(Source::List))), "done");
        assert_eq!(taken(end(Source::List), None), "a.9 deleted u1 (list) x=1");
        assert_eq!(taken(end(Source::Watch), Some(end(Source::Watch))), "done");
        assert_eq!(taken(Post::added(&last, Source::List), Some(arrival())), "done");
    }

    #[test]
    fn a_checkpoint_tells_of_its_own_incarnation_only() {
        let (a, checkpoint) = (NodeHash::of("a"), Checkpoint::of(&node("a u1 9 x=1 m=3")));
        let document = checkpoint.encode().unwrap();
        let told = |uid: &Uid, document| testimony(document, &a, uid).unwrap().map(shown);
        let end = Some("a.9 deleted u1 (checkpoint) x=1 m=3".to_owned());
        assert_eq!(told(&uid("u1"), Some(&document)), end);
        assert_eq!(told(&uid("u2"), Some(&document)), None);
        assert_eq!(told(&uid("u1"), None), None);
        let broken = Document { data: [].into(), ..document };
        assert!(testimony(Some(&broken), &a, &uid("u1")).is_err());
    }
}
