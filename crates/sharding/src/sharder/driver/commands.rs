//! Each command becomes something under way.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::Driver;
use super::answers::Done;
use crate::core::object::LabelChange;
use crate::core::sharder::{Answer, Command, Event, KindSet, Selector, Token};
use crate::sharder::hand::Outcome;

// === impl Driver ===

impl Driver {
    pub(super) fn carry_out(&mut self, command: Command) {
        let timeout = self.core.request_timeout();
        let hand = self.hand.within(timeout);
        let done: BoxFuture<'static, Done> = match command {
            Command::WriteObject { token, name, version, change } => {
                let is_drain = matches!(change, LabelChange::Drain(_));
                if is_drain {
                    self.journeys.on_drain(&name);
                }
                let written = hand.write_object(name, (version, change), timeout);
                if is_drain { drained(token, written) } else { answered(token, written) }
            }
            Command::ReadObject { token, name } => answered(token, hand.read_object(name)),
            Command::WriteLease { token, lease, is_new } => {
                answered(token, within(timeout, hand.write_lease(lease, is_new)))
            }
            Command::ReadLease { token, id, namespace } => {
                answered(token, hand.read_lease(id, namespace))
            }
            Command::DeleteLease { token, lease } => {
                answered(token, within(timeout, hand.delete_lease(lease)))
            }
            Command::ShowState { id, namespace, word } => Box::pin(async move {
                let result = hand.show_state((&id, &namespace), word).await;
                Done::Shown { id, namespace, result }
            }),
            Command::WriteTable { token, kept, version } => {
                let epoch = kept.epoch;
                let written = hand.write_table(kept, version);
                Box::pin(async move { Done::TableWritten { token, epoch, outcome: written.await } })
            }
            Command::ReadTable => self.read_table(),
            Command::ListPage { token, kinds, selector, is_first } => {
                self.list_page(token, (kinds, selector), is_first)
            }
            Command::ListChildren { token, from, parents } => {
                answered(token, hand.list_children(from, parents))
            }
            Command::Tell(news) => return self.on_news(&news),
        };
        self.under_way.push(done);
    }

    pub(super) fn read_table(&self) -> BoxFuture<'static, Done> {
        let (rings, ring) = (self.context.rings.clone(), self.names.ring().clone());
        Box::pin(async move {
            Done::TableRead(match rings.get(ring.as_str()).await {
                Ok(Some(ring)) => {
                    let version = ring.version();
                    let kept = ring.status.and_then(|status| status.table);
                    Ok(Event::TableRead { kept, version })
                }
                // The Ring is gone; the supervisor sees that too.
                Ok(None) => Ok(Event::Standby),
                Err(error) => Err(error),
            })
        })
    }

    fn list_page(
        &mut self,
        token: Token,
        (kinds, selector): (KindSet, Selector),
        is_first: bool,
    ) -> BoxFuture<'static, Done> {
        let began = Instant::now();
        let cursor = self.cursor.take().filter(|_| !is_first);
        let (mut cursor, began) = match (cursor, self.page) {
            (Some(cursor), Some((_, began))) => (cursor, began),
            _ => (self.hand.cursor(kinds, selector), began),
        };
        self.page = Some((token, began));
        let names = self.names.clone();
        Box::pin(async move {
            let page = cursor.next(&names).await.map(|page| Answer::Page {
                objects: page.map(|page| page.objects).unwrap_or_default(),
                is_last: cursor.is_last(),
            });
            Done::Page { token, cursor, page }
        })
    }
}

fn answered(
    token: Token,
    outcome: impl Future<Output = Outcome> + Send + 'static,
) -> BoxFuture<'static, Done> {
    Box::pin(async move { Done::Answered { token, outcome: outcome.await } })
}

fn drained(
    token: Token,
    outcome: impl Future<Output = Outcome> + Send + 'static,
) -> BoxFuture<'static, Done> {
    Box::pin(async move { Done::Drained { token, outcome: outcome.await } })
}

/// The wait for a free place counts too: the core reckons from when it asked.
async fn within(timeout: Duration, outcome: impl Future<Output = Outcome>) -> Outcome {
    tokio::time::timeout(timeout, outcome).await.unwrap_or((Answer::Failed, None))
}
