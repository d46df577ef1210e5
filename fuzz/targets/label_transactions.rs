//! Any ConfigMap as a queued transaction: it is quarantined, or it is the same transaction after it
//! was posted, about the node that its name is made from.
//!
//! The first line is the node's name and the event's resource version; the ConfigMap's name is made
//! from them, because nobody guesses a hash.
#![no_main]

mod config_map;

use labels::core::{
    names::{NodeHash, TransactionName},
    rv::ResourceVersion,
    transaction::Transaction,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let document = config_map::parse(text);
    let Some((node, rv)) = document.name.split_once(' ') else { return };
    let Ok(rv) = rv.parse::<ResourceVersion>() else { return };
    let name = TransactionName::new(NodeHash::of(node), rv);
    let spelled: TransactionName = name.to_string().parse().expect("a name is a name");
    assert_eq!(spelled, name);

    let Ok(transaction) = Transaction::decode(&name, &document) else { return };
    assert_eq!(transaction.node, node);
    let posted = transaction.encode().expect("no input is large");
    let again = Transaction::decode(&name, &posted).expect("what was posted can be read");
    assert_eq!(again, transaction);
});
