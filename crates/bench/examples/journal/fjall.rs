//! fjall in the layout revision → record: what a journal on a storage engine would do at least.

use std::path::Path;

use anyhow::Result;
use bench::journal::Subject;
use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, UserValue};
use mvcc::{Change, Record, Revision};

pub(crate) struct Fjall {
    database: Database,
    records: Keyspace,
}

// === impl Fjall ===

impl Fjall {
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let database = Database::builder(folder).open()?;
        let records = database.keyspace("records", KeyspaceCreateOptions::default)?;
        Ok(Self { database, records })
    }
}

impl Subject for Fjall {
    fn append(&mut self, records: Vec<Record>) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for record in records {
            // Every record of the load has one change, so its key-value stands for it.
            for change in record.changes {
                batch.insert(&self.records, key(record.revision), &change.kv.encoded()[..]);
            }
        }
        Ok(batch.commit()?)
    }

    fn read(&self, revision: Revision) -> Result<Option<KeyValue>> {
        Ok(self.records.get(key(revision))?.map(key_value))
    }

    fn scan(&self, visit: &mut dyn FnMut(Record)) -> Result<()> {
        for entry in self.records.iter() {
            let kv = key_value(entry.value()?);
            let revision = Revision(kv.mod_revision());
            visit(Record { revision, changes: vec![Change { sub: 0, kv }] });
        }
        Ok(())
    }
}

fn key(revision: Revision) -> [u8; 8] {
    revision.0.to_be_bytes()
}

fn key_value(value: UserValue) -> KeyValue {
    KeyValue::from_encoded(Bytes::copy_from_slice(&value))
}
