//! Maintenance, members, locks and elections.

use bytes::Bytes;
use etcd_api::etcdserverpb as pb;
use etcd_api::{v3electionpb as election, v3lockpb as lock};
use pb::alarm_request::AlarmAction;

use super::super::step::Step;
use super::Generator;

const NAMES: [&str; 3] = ["lock/a", "lock/b", "lead"];

/// A member that does not exist.
const UNKNOWN_MEMBER: u64 = 4711;

/// Who holds a lock, or leads.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    name: &'static str,
    pub(super) lease: i64,
    is_leader: bool,
}

// === impl Holder ===

impl Holder {
    /// The key by which it is held: name and lease, in etcd's layout.
    fn key(&self) -> Bytes {
        Bytes::from(format!("{}/{:x}", self.name, self.lease))
    }

    fn leader_key(&self, revision: i64) -> election::LeaderKey {
        election::LeaderKey {
            name: Bytes::from_static(self.name.as_bytes()),
            key: self.key(),
            rev: revision,
            lease: self.lease,
        }
    }
}

// === impl Generator ===

impl Generator {
    pub(super) fn maintenance_step(&mut self) -> Step {
        match self.below(16) {
            0 => Step::Status,
            1 => Step::Hash,
            2..8 => {
                let revision = if self.one_in(2) { 0 } else { self.any_revision() };
                Step::HashKv(pb::HashKvRequest { revision })
            }
            8 => Step::Defragment,
            9 => Step::Snapshot,
            10 => Step::MoveLeader(pb::MoveLeaderRequest { target_id: UNKNOWN_MEMBER }),
            11 => {
                // One more than there are.
                let action = self.below(4) as i32;
                // Only versions that etcd refuses, so that no downgrade begins.
                let version = self.pick(&["", "nonsense", "3.8.0", "3.1.0"]).to_owned();
                Step::Downgrade(pb::DowngradeRequest { action, version })
            }
            12 => self.no_space_step(),
            _ => Step::Alarm(pb::AlarmRequest::default()),
        }
    }

    /// Raises the alarm, tries what it forbids and what it does not, and clears it.
    fn no_space_step(&mut self) -> Step {
        let alarm = |action: AlarmAction| {
            Step::Alarm(pb::AlarmRequest {
                action: action as i32,
                member_id: 0,
                alarm: pb::AlarmType::Nospace as i32,
            })
        };
        for _ in 0..4 {
            let step = self.kv_step();
            self.planned.push_back(step);
        }
        self.planned.push_back(alarm(AlarmAction::Get));
        self.planned.push_back(alarm(AlarmAction::Deactivate));
        alarm(AlarmAction::Activate)
    }

    /// Nothing that would succeed: a second member that never starts takes the majority away.
    pub(super) fn cluster_step(&mut self) -> Step {
        let bad_urls = vec!["127.0.0.1:1".to_owned()];
        match self.below(6) {
            0 => Step::MemberAdd(pb::MemberAddRequest { peer_ur_ls: bad_urls, is_learner: true }),
            1 => Step::MemberRemove(pb::MemberRemoveRequest { id: UNKNOWN_MEMBER }),
            2 => Step::MemberUpdate(pb::MemberUpdateRequest {
                id: UNKNOWN_MEMBER,
                peer_ur_ls: vec!["http://127.0.0.1:1".to_owned()],
            }),
            3 => Step::MemberPromote(pb::MemberPromoteRequest { id: UNKNOWN_MEMBER }),
            _ => Step::MemberList(pb::MemberListRequest { linearizable: self.one_in(2) }),
        }
    }

    /// A lock or an election, only ever claimed when free.
    pub(super) fn claim_step(&mut self) -> Step {
        let name = self.pick(&NAMES);
        match self.holders.iter().position(|holder| holder.name == name) {
            Some(at) => self.held_step(at),
            None if self.leases.is_empty() || self.one_in(4) => {
                Step::Leader(election::LeaderRequest { name: Bytes::from_static(name.as_bytes()) })
            }
            None => self.take_step(name),
        }
    }

    fn take_step(&mut self, name: &'static str) -> Step {
        let leases = self.leases.clone();
        let lease = self.pick(&leases);
        let is_leader = name == "lead";
        self.holders.push(Holder { name, lease, is_leader });
        let name = Bytes::from_static(name.as_bytes());
        if is_leader {
            // At once: where nobody leads any more, observing waits for ever.
            let observe = Step::Observe(election::LeaderRequest { name: name.clone() });
            self.planned.push_back(observe);
            Step::Campaign(election::CampaignRequest { name, lease, value: self.value_of_leader() })
        } else {
            Step::Lock(lock::LockRequest { name, lease })
        }
    }

    fn value_of_leader(&mut self) -> Bytes {
        Bytes::from(format!("leader {}", self.below(10)))
    }

    fn held_step(&mut self, at: usize) -> Step {
        let holder = self.holders[at].clone();
        if !holder.is_leader {
            self.holders.remove(at);
            return Step::Unlock(lock::UnlockRequest { key: holder.key() });
        }
        let name = Bytes::from_static(holder.name.as_bytes());
        // The true creation revision is not known here; a wrong one must be refused alike.
        let leader = Some(holder.leader_key(self.world.revision));
        match self.below(4) {
            0 => Step::Leader(election::LeaderRequest { name }),
            1 => Step::Resign(election::ResignRequest { leader }),
            2 => Step::Proclaim(election::ProclaimRequest { leader: None, value: Bytes::new() }),
            _ => {
                let value = self.value_of_leader();
                Step::Proclaim(election::ProclaimRequest { leader, value })
            }
        }
    }
}
