//! What can be asked of a store. Only data; a step prints as the request it is.

use etcd_api::etcdserverpb as pb;
use etcd_api::{v3electionpb as election, v3lockpb as lock};

/// Leases that the server named are called by when they came: this, and further down.
pub const CHOSEN_LEASE: i64 = -1_000_000;

/// One request, or one act of the client.
#[derive(Clone, Debug)]
pub enum Step {
    Range(pb::RangeRequest),
    RangeStream(pb::RangeRequest),
    Put(pb::PutRequest),
    Delete(pb::DeleteRangeRequest),
    Txn(pb::TxnRequest),
    Compact(pb::CompactionRequest),

    Grant(pb::LeaseGrantRequest),
    Revoke(pb::LeaseRevokeRequest),
    KeepAlive(pb::LeaseKeepAliveRequest),
    TimeToLive(pb::LeaseTimeToLiveRequest),
    Leases,

    Watch(Stream, pb::WatchCreateRequest),
    /// Of a watch on [`Stream::Main`].
    Unwatch(pb::WatchCancelRequest),
    /// Wait until every watch has caught up, and compare what they saw.
    Settle,

    Status,
    Hash,
    HashKv(pb::HashKvRequest),
    Alarm(pb::AlarmRequest),
    Defragment,
    Snapshot,
    MoveLeader(pb::MoveLeaderRequest),
    Downgrade(pb::DowngradeRequest),

    MemberList(pb::MemberListRequest),
    MemberAdd(pb::MemberAddRequest),
    MemberRemove(pb::MemberRemoveRequest),
    MemberUpdate(pb::MemberUpdateRequest),
    MemberPromote(pb::MemberPromoteRequest),

    Lock(lock::LockRequest),
    Unlock(lock::UnlockRequest),
    Campaign(election::CampaignRequest),
    Proclaim(election::ProclaimRequest),
    Leader(election::LeaderRequest),
    /// The first answer of the stream.
    Observe(election::LeaderRequest),
    Resign(election::ResignRequest),

    Auth(AuthStep),
}

/// Which of a side's two watch streams. etcd tells whether all watches of a stream have caught up
/// only where none waits for a future revision and none was cancelled by a compaction, so those
/// have a stream of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Main,
    Stray,
}

/// Users, roles, and who is speaking.
#[derive(Clone, Debug)]
pub enum AuthStep {
    Enable,
    Disable,
    Status,
    /// From here on requests carry this user's token, if there is one.
    LogIn(pb::AuthenticateRequest),
    /// From here on requests carry no token.
    LogOut,
    /// From here on requests carry a token nobody gave out.
    Forge,
    UserAdd(pb::AuthUserAddRequest),
    UserGet(pb::AuthUserGetRequest),
    UserList,
    UserDelete(pb::AuthUserDeleteRequest),
    UserChangePassword(pb::AuthUserChangePasswordRequest),
    UserGrantRole(pb::AuthUserGrantRoleRequest),
    UserRevokeRole(pb::AuthUserRevokeRoleRequest),
    RoleAdd(pb::AuthRoleAddRequest),
    RoleGet(pb::AuthRoleGetRequest),
    RoleList,
    RoleDelete(pb::AuthRoleDeleteRequest),
    RoleGrantPermission(pb::AuthRoleGrantPermissionRequest),
    RoleRevokePermission(pb::AuthRoleRevokePermissionRequest),
}

// === impl Step ===

impl Step {
    /// The kind of step, for counting.
    #[must_use]
    pub fn kind(&self) -> String {
        let text = match self {
            Self::Auth(step) => format!("{step:?}"),
            step => format!("{step:?}"),
        };
        text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
    }
}
