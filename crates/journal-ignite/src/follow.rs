//! Following a journal that somebody else writes: where it stands, its newest records, and who is
//! there.

use ignite_client::{Row, Value};
use journal::{Epoch, Member, Tip};
use mvcc::{Change, Position, Record, Revision};

use crate::{
    Error,
    error::Step,
    grid::Grid,
    head::Head,
    read::LARGE_ROWS,
    rows::{change, history_key},
};

/// Revisions asked for at once: with the largest requests a hundred MiB.
const TAIL_REVISIONS: i64 = 64;
/// Changes that are asked for before it is known how many a revision has. Most have one.
const SUBS_FIRST: u32 = 2;
/// Changes of one large revision asked for at once.
const SUBS_MORE: u32 = 256;
/// Between the addresses of a member, none of which may hold a space.
const URLS_SEPARATOR: &str = " ";

// === impl Grid ===

impl Grid {
    pub(crate) async fn tip(&self) -> Result<Tip, Error> {
        let head = self.head_watched().await?;
        let Head { epoch, revision, meta, forgotten, .. } = head;
        Ok(Tip { epoch, revision, meta, forgotten })
    }

    /// By key at the primary: a snapshot would have to be waited for.
    pub(crate) async fn tail(&self, from: Revision, to: Revision) -> Result<Vec<Record>, Error> {
        let (mut records, mut next) = (Vec::new(), from);
        let mut most = TAIL_REVISIONS;
        while next <= to {
            let (last, known) = (Revision(to.0.min(next.0 + most - 1)), records.len());
            match self.piece(next, last, &mut records).await {
                Err(error) if error.is_too_large() && most > i64::from(LARGE_ROWS) => {
                    most = LARGE_ROWS.into();
                    records.truncate(known);
                    continue;
                }
                read => read?,
            }
            next = last.next();
        }
        // Where something was forgotten, a revision may look whole and not be.
        if self.head_now().await?.forgotten >= from {
            return Err(Error::Forgotten { revision: from });
        }
        Ok(records)
    }

    async fn piece(
        &self,
        from: Revision,
        to: Revision,
        records: &mut Vec<Record>,
    ) -> Result<(), Error> {
        let revisions = (from.0..=to.0).map(Revision);
        let places = revisions.flat_map(|at| (0..SUBS_FIRST).map(move |sub| (at, sub)));
        let found = self.changes(places.map(|(at, sub)| Position::new(at, sub)).collect()).await?;
        for (at, found) in (from.0..=to.0).map(Revision).zip(found.chunks(SUBS_FIRST as usize)) {
            let mut changes: Vec<Change> = found.iter().flatten().cloned().collect();
            if changes.len() == SUBS_FIRST as usize {
                self.rest_of(at, &mut changes).await?;
            }
            if !is_whole(&changes) {
                return Err(self.why_missing(at).await?);
            }
            records.push(Record { revision: at, changes });
        }
        Ok(())
    }

    /// The changes behind those of which it is known that they are there.
    async fn rest_of(&self, at: Revision, changes: &mut Vec<Change>) -> Result<(), Error> {
        let mut sub = SUBS_FIRST;
        loop {
            let places = (sub..sub + SUBS_MORE).map(|sub| Position::new(at, sub)).collect();
            let found = self.changes(places).await?;
            let is_end = found.last().is_none_or(Option::is_none);
            changes.extend(found.into_iter().flatten());
            if is_end {
                return Ok(());
            }
            sub += SUBS_MORE;
        }
    }

    async fn changes(&self, places: Vec<Position>) -> Result<Vec<Option<Change>>, Error> {
        let keys: Vec<Row> = places.iter().map(|at| history_key(&self.layout, *at)).collect();
        let rows = self.history.get_all(None, &keys).await.step("read the newest changes")?;
        let read = |row: Row| change(&row).map(|(at, kv)| Change { sub: at.sub, kv });
        rows.into_iter().map(|row| row.map(read).transpose()).collect()
    }

    async fn why_missing(&self, revision: Revision) -> Result<Error, Error> {
        let is_forgotten = revision <= self.head_now().await?.forgotten;
        Ok(if is_forgotten {
            Error::Forgotten { revision }
        } else {
            Error::MissingRevision { revision }
        })
    }

    pub(crate) async fn announce(&self, member: &Member) -> Result<(), Error> {
        let Member { id, name, peer_urls, client_urls, epoch, beat } = member;
        let row = self.layout.members.row([
            Value::I64(id.cast_signed()),
            name.as_str().into(),
            peer_urls.join(URLS_SEPARATOR).as_str().into(),
            client_urls.join(URLS_SEPARATOR).as_str().into(),
            Value::I64(epoch.0.cast_signed()),
            Value::I64(beat.cast_signed()),
        ]);
        self.members.upsert(None, &row).await.step("tell the others of this member")
    }

    pub(crate) async fn withdraw(&self, id: u64) -> Result<(), Error> {
        let key = self.layout.members_key.row([Value::I64(id.cast_signed())]);
        self.members.delete(None, &key).await.step("take a member off the list").map(drop)
    }

    pub(crate) async fn all_members(&self) -> Result<Vec<Member>, Error> {
        let statement = format!(
            "SELECT ID, NAME, PEER_URLS, CLIENT_URLS, EPOCH, BEAT FROM {}.MEMBERS ORDER BY ID",
            self.schema
        );
        let rows = self.client.execute(None, &statement, &[]).await.step("list the members")?;
        let rows = rows.all().await.step("list the members")?;
        rows.iter().map(member).collect()
    }
}

/// Whether the changes are those from the first on, with none left out.
fn is_whole(changes: &[Change]) -> bool {
    !changes.is_empty() && (0..).zip(changes).all(|(sub, change)| change.sub == sub)
}

fn member(row: &Row) -> Result<Member, Error> {
    let bad = |column: &'static str| Error::BadRow {
        table: "MEMBERS",
        column,
        found: format!("{:?}", row.get(column)),
    };
    let number = |column| row.get(column).and_then(Value::as_i64).ok_or_else(|| bad(column));
    let text = |column| row.get(column).and_then(Value::as_str).ok_or_else(|| bad(column));
    let urls = |column| {
        let text = text(column)?;
        Ok::<_, Error>(text.split_whitespace().map(ToOwned::to_owned).collect())
    };
    Ok(Member {
        id: number("ID")?.cast_unsigned(),
        name: text("NAME")?.to_owned(),
        peer_urls: urls("PEER_URLS")?,
        client_urls: urls("CLIENT_URLS")?,
        epoch: Epoch(number("EPOCH")?.cast_unsigned()),
        beat: number("BEAT")?.cast_unsigned(),
    })
}

#[cfg(test)]
mod tests {
    use journal::suite::{put, record};

    use super::*;

    #[test]
    fn a_revision_is_whole_from_its_first_change_on() {
        let whole = record(2, [put(2, "a", b""), put(2, "b", b"")]).changes;
        assert!(is_whole(&whole) && is_whole(&whole[..1]));
        assert!(!is_whole(&whole[1..]) && !is_whole(&[]));
    }

    #[test]
    fn a_member_without_its_name_is_told_by_the_column() {
        let row = Row::new([("ID", Value::I64(-1)), ("NAME", Value::I32(1))]);
        assert!(member(&row).unwrap_err().to_string().contains("column NAME of MEMBERS"));
    }
}
