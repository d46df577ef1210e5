//! Tells who leads, and each proclamation of the leader, until the one who listens goes away.

use std::sync::Arc;

use bytes::Bytes;
use etcd_api::{
    etcdserverpb::WatchCreateRequest,
    mvccpb::{EventType, KeyValue},
    v3electionpb::LeaderResponse,
};
use futures::Stream;
use mvcc::Revision;
use tonic::Status;

use super::{
    agent::Agent,
    line::{self, Line},
    status,
};
use crate::{Error, watch::Follower};

struct Observer {
    agent: Arc<Agent>,
    line: Line,
    state: State,
}

/// What an observer waits for.
enum State {
    /// Nothing: it looks who leads. Ends with that, or without a leader.
    Looking,
    /// Nobody leads: the first that takes a place will.
    Vacant(Follower),
    /// Proclamations of the leader, until its key is deleted.
    Led(Follower),
}

pub(super) fn observe(
    agent: Arc<Agent>,
    name: &[u8],
) -> impl Stream<Item = Result<LeaderResponse, Status>> + use<> {
    let line = Line::new(agent.clone(), name);
    let observer = Observer { agent, line, state: State::Looking };
    futures::stream::try_unfold(observer, |mut observer| async move {
        let told = observer.next().await.map_err(status::without_code)?;
        Ok(Some((told, observer)))
    })
}

// === impl Observer ===

impl Observer {
    async fn next(&mut self) -> Result<LeaderResponse, Error> {
        loop {
            match &mut self.state {
                State::Looking => {
                    if let Some(leader) = self.look().await? {
                        return Ok(leader);
                    }
                }
                State::Vacant(follower) => {
                    let kv = follower.next().await?.event.kv();
                    if !kv.is_tombstone() {
                        let revision = Revision(kv.mod_revision());
                        self.state = self.led(&kv, revision)?;
                        return Ok(self.leader(kv, revision));
                    }
                }
                State::Led(follower) => {
                    let change = follower.next().await?;
                    if change.event.kind() == EventType::Put {
                        return Ok(self.leader(change.event.kv(), change.revision));
                    }
                    self.state = State::Looking;
                }
            }
        }
    }

    async fn look(&mut self) -> Result<Option<LeaderResponse>, Error> {
        let mut found = self.line.first().await?;
        let seen = Revision(found.header.as_ref().map_or(0, |header| header.revision));
        let Some(kv) = found.kvs.pop() else {
            self.state = State::Vacant(self.vacant(seen)?);
            return Ok(None);
        };
        self.state = self.led(&kv, seen)?;
        Ok(Some(LeaderResponse { header: found.header, kv: Some(kv) }))
    }

    fn vacant(&self, seen: Revision) -> Result<Follower, Error> {
        let key = self.line.prefix().clone();
        let range_end = line::end_of(&key);
        self.follow(key, range_end, seen)
    }

    fn led(&self, leader: &KeyValue, seen: Revision) -> Result<State, Error> {
        Ok(State::Led(self.follow(leader.key_bytes(), Bytes::new(), seen)?))
    }

    fn follow(&self, key: Bytes, range_end: Bytes, seen: Revision) -> Result<Follower, Error> {
        let start_revision = seen.next().0;
        self.agent.follow(WatchCreateRequest {
            key,
            range_end,
            start_revision,
            ..Default::default()
        })
    }

    fn leader(&self, kv: KeyValue, revision: Revision) -> LeaderResponse {
        LeaderResponse { header: Some(self.agent.context().header(revision)), kv: Some(kv) }
    }
}
