//! Who has how much, in which state, and what is on its way.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;
use serde::Serialize;

use super::view::{Catalogue, View, look_up, resources};
use super::{Admin, Error};
use crate::core::lease::Lease;
use crate::core::membership::State;
use crate::core::names::InstanceId;
use crate::core::object::Drain;
use crate::core::partition::Table;
use crate::kubernetes::{MemberStatus, Objects, Request, Verb, found};
use crate::manifests::NAME;

/// Pages of draining objects that are read. A ring has a thousand of them at most, unless they are
/// overdue, and then the eldest says enough.
const PAGES_MAX: usize = 20;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Absent if none has ever led.
    pub sharder: Option<Lead>,
    pub rings: Vec<Status>,
}

/// The Lease by which one sharder leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lead {
    /// Absent if it was given up and nobody has taken it.
    pub holder: Option<String>,
    pub renewed: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub ring: String,
    pub is_deleted: bool,
    pub conditions: Vec<Told>,
    /// The fullest instance compared with the mean, as last counted.
    pub imbalance: Option<f64>,
    pub table_epoch: Option<u64>,
    pub members: Vec<Member>,
    pub moves: Moves,
    /// What cannot be read, and why.
    pub problems: Vec<String>,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub since: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    pub id: InstanceId,
    pub namespace: Option<String>,
    /// As the sharder told last; of one it has not told about, as its Lease tells.
    pub state: String,
    pub since: Option<Timestamp>,
    /// Absent without a Lease.
    pub renewed: Option<Timestamp>,
    pub weight: u32,
    pub slots: usize,
    /// Absent if they have not been counted.
    pub objects: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moves {
    /// Objects on their way, as the sharder told last.
    pub moving: usize,
    /// Objects whose instance is to give them up.
    pub draining: usize,
    pub oldest_deadline: Option<Timestamp>,
}

// === impl Admin ===

impl Admin {
    /// Of one ring, or of all by name.
    pub async fn status(&self, ring: Option<&str>) -> Result<Answer, Error> {
        let rings = match ring {
            Some(name) => vec![self.ring(name).await?],
            None => self.all_rings().await?,
        };
        let (mut statuses, mut catalogue) = (Vec::new(), Catalogue::new());
        for ring in rings {
            let view = self.view(ring).await?;
            look_up(&self.client, &view.ring.spec, &mut catalogue).await?;
            let moves = self.moves(&view, &catalogue).await?;
            statuses.push(view.status(moves)?);
        }
        Ok(Answer { sharder: self.lead().await?, rings: statuses })
    }

    async fn lead(&self) -> Result<Option<Lead>, Error> {
        let api: Api<api::Lease> = Api::namespaced(self.client.clone(), &self.home);
        let about = format!("Lease {}/{NAME}", self.home);
        let stored = found(Request::read(Verb::Read, &about).answer(api.get(NAME)).await)?;
        let spec = stored.and_then(|stored| stored.spec);
        Ok(spec.map(|spec| Lead {
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
            renewed: spec.renew_time.map(|time| time.0),
        }))
    }

    async fn moves(&self, view: &View, catalogue: &Catalogue) -> Result<Moves, Error> {
        let moving = view.ring.status.as_ref().map_or(0, |status| status.moving);
        let mut moves = Moves { moving, ..Moves::default() };
        for resource in resources(&view.ring.spec) {
            let Some(served) = catalogue.get(&resource) else { continue };
            let objects = Objects::new(self.client.clone(), view.names.clone(), served.clone());
            let mut token = None;
            for _ in 0..PAGES_MAX {
                let page = objects.page(&view.names.drain_label(), token.as_deref()).await?;
                page.objects.iter().for_each(|object| moves.on_draining(object.drain));
                token = page.token;
                if token.is_none() {
                    break;
                }
            }
        }
        Ok(moves)
    }
}

// === impl Moves ===

impl Moves {
    fn on_draining(&mut self, drain: Option<Drain>) {
        self.draining += 1;
        let Some(Drain::Until(seconds)) = drain else { return };
        let seconds = i64::try_from(seconds).ok();
        let deadline = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
        self.oldest_deadline = self.oldest_deadline.into_iter().chain(deadline).min();
    }
}

// === impl View ===

impl View {
    pub(super) fn status(&self, moves: Moves) -> Result<Status, Error> {
        let status = self.ring.status.clone().unwrap_or_default();
        Ok(Status {
            ring: self.name().to_string(),
            is_deleted: self.ring.is_deleted(),
            conditions: status.conditions.into_iter().map(Told::from).collect(),
            imbalance: status.imbalance,
            table_epoch: status.table.map(|table| table.epoch),
            members: self.member_statuses(status.members)?,
            moves,
            problems: self.problems.clone(),
        })
    }

    /// All that the sharder told about or that have a Lease, by id and namespace.
    fn member_statuses(&self, told: Vec<MemberStatus>) -> Result<Vec<Member>, Error> {
        let key = |member: &Member| (member.id.clone(), member.namespace.clone());
        let told = told.into_iter().map(Member::from);
        let mut members: BTreeMap<_, _> = told.map(|member| (key(&member), member)).collect();
        for lease in &self.leases {
            let judged = self.judge(lease);
            members.entry(key(&judged)).or_insert(judged).renewed = lease.renewed;
        }
        let mut members: Vec<Member> = members.into_values().collect();
        if let Some(Table::Slots(slots)) = &self.table()? {
            // Of two Leases with one id, the id's slots are those of the elder.
            let seated = members.iter_mut().filter(|it| it.state != State::Conflict.as_str());
            seated.for_each(|member| member.slots = slots.held_by(&member.id));
        }
        Ok(members)
    }

    /// An instance that the sharder has not told about.
    fn judge(&self, lease: &Lease) -> Member {
        let is_eldest = self.roster.lease(&lease.id) == Some(lease);
        let state = self.roster.state(&lease.id, self.now).filter(|_| is_eldest);
        Member {
            id: lease.id.clone(),
            namespace: Some(lease.namespace.clone()),
            state: state.unwrap_or(State::Conflict).as_str().to_owned(),
            since: None,
            renewed: lease.renewed,
            weight: lease.weight().value(),
            slots: 0,
            objects: None,
        }
    }
}

// === impl Member ===

impl From<MemberStatus> for Member {
    fn from(told: MemberStatus) -> Self {
        let MemberStatus { id, namespace, state, weight, slots, objects, since } = told;
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let (since, objects) = (Some(since.0), Some(objects));
        Self { id, namespace, state, since, renewed: None, weight, slots, objects }
    }
}

// === impl Told ===

impl From<Condition> for Told {
    fn from(condition: Condition) -> Self {
        Self {
            kind: condition.type_,
            status: condition.status,
            reason: condition.reason,
            message: condition.message,
            since: condition.last_transition_time.0,
        }
    }
}
