//! Which path calls which method: etcd 3.7's table, old names included.

use etcd_api::etcdserverpb as pb;
use etcd_api::{v3electionpb as election, v3lockpb as lock};

use super::{Exchange, answer_stream, both_streams, unary};

pub(super) struct Route {
    path: &'static str,
    pub(super) method: &'static str,
    pub(super) exchange: Exchange,
}

pub(super) fn find(path: &str) -> Option<&'static Route> {
    ROUTES.iter().find(|route| route.path == path)
}

const fn route(path: &'static str, method: &'static str, exchange: Exchange) -> Route {
    Route { path, method, exchange }
}

#[rustfmt::skip]
const ROUTES: &[Route] = &[
    route("/v3/kv/range", "/etcdserverpb.KV/Range", unary::<pb::RangeRequest, pb::RangeResponse>),
    route("/v3/kv/put", "/etcdserverpb.KV/Put", unary::<pb::PutRequest, pb::PutResponse>),
    route("/v3/kv/deleterange", "/etcdserverpb.KV/DeleteRange", unary::<pb::DeleteRangeRequest, pb::DeleteRangeResponse>),
    route("/v3/kv/txn", "/etcdserverpb.KV/Txn", unary::<pb::TxnRequest, pb::TxnResponse>),
    route("/v3/kv/compaction", "/etcdserverpb.KV/Compact", unary::<pb::CompactionRequest, pb::CompactionResponse>),

    route("/v3/watch", "/etcdserverpb.Watch/Watch", both_streams::<pb::WatchRequest, pb::WatchResponse>),

    route("/v3/lease/grant", "/etcdserverpb.Lease/LeaseGrant", unary::<pb::LeaseGrantRequest, pb::LeaseGrantResponse>),
    route("/v3/lease/revoke", "/etcdserverpb.Lease/LeaseRevoke", unary::<pb::LeaseRevokeRequest, pb::LeaseRevokeResponse>),
    route("/v3/kv/lease/revoke", "/etcdserverpb.Lease/LeaseRevoke", unary::<pb::LeaseRevokeRequest, pb::LeaseRevokeResponse>),
    route("/v3/lease/keepalive", "/etcdserverpb.Lease/LeaseKeepAlive", both_streams::<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse>),
    route("/v3/lease/timetolive", "/etcdserverpb.Lease/LeaseTimeToLive", unary::<pb::LeaseTimeToLiveRequest, pb::LeaseTimeToLiveResponse>),
    route("/v3/kv/lease/timetolive", "/etcdserverpb.Lease/LeaseTimeToLive", unary::<pb::LeaseTimeToLiveRequest, pb::LeaseTimeToLiveResponse>),
    route("/v3/lease/leases", "/etcdserverpb.Lease/LeaseLeases", unary::<pb::LeaseLeasesRequest, pb::LeaseLeasesResponse>),
    route("/v3/kv/lease/leases", "/etcdserverpb.Lease/LeaseLeases", unary::<pb::LeaseLeasesRequest, pb::LeaseLeasesResponse>),

    route("/v3/cluster/member/add", "/etcdserverpb.Cluster/MemberAdd", unary::<pb::MemberAddRequest, pb::MemberAddResponse>),
    route("/v3/cluster/member/remove", "/etcdserverpb.Cluster/MemberRemove", unary::<pb::MemberRemoveRequest, pb::MemberRemoveResponse>),
    route("/v3/cluster/member/update", "/etcdserverpb.Cluster/MemberUpdate", unary::<pb::MemberUpdateRequest, pb::MemberUpdateResponse>),
    route("/v3/cluster/member/list", "/etcdserverpb.Cluster/MemberList", unary::<pb::MemberListRequest, pb::MemberListResponse>),
    route("/v3/cluster/member/promote", "/etcdserverpb.Cluster/MemberPromote", unary::<pb::MemberPromoteRequest, pb::MemberPromoteResponse>),

    route("/v3/maintenance/alarm", "/etcdserverpb.Maintenance/Alarm", unary::<pb::AlarmRequest, pb::AlarmResponse>),
    route("/v3/maintenance/status", "/etcdserverpb.Maintenance/Status", unary::<pb::StatusRequest, pb::StatusResponse>),
    route("/v3/maintenance/defragment", "/etcdserverpb.Maintenance/Defragment", unary::<pb::DefragmentRequest, pb::DefragmentResponse>),
    route("/v3/maintenance/hash", "/etcdserverpb.Maintenance/Hash", unary::<pb::HashRequest, pb::HashResponse>),
    route("/v3/maintenance/hashkv", "/etcdserverpb.Maintenance/HashKV", unary::<pb::HashKvRequest, pb::HashKvResponse>),
    route("/v3/maintenance/snapshot", "/etcdserverpb.Maintenance/Snapshot", answer_stream::<pb::SnapshotRequest, pb::SnapshotResponse>),
    route("/v3/maintenance/transfer-leadership", "/etcdserverpb.Maintenance/MoveLeader", unary::<pb::MoveLeaderRequest, pb::MoveLeaderResponse>),
    route("/v3/maintenance/downgrade", "/etcdserverpb.Maintenance/Downgrade", unary::<pb::DowngradeRequest, pb::DowngradeResponse>),

    route("/v3/auth/enable", "/etcdserverpb.Auth/AuthEnable", unary::<pb::AuthEnableRequest, pb::AuthEnableResponse>),
    route("/v3/auth/disable", "/etcdserverpb.Auth/AuthDisable", unary::<pb::AuthDisableRequest, pb::AuthDisableResponse>),
    route("/v3/auth/status", "/etcdserverpb.Auth/AuthStatus", unary::<pb::AuthStatusRequest, pb::AuthStatusResponse>),
    route("/v3/auth/authenticate", "/etcdserverpb.Auth/Authenticate", unary::<pb::AuthenticateRequest, pb::AuthenticateResponse>),
    route("/v3/auth/user/add", "/etcdserverpb.Auth/UserAdd", unary::<pb::AuthUserAddRequest, pb::AuthUserAddResponse>),
    route("/v3/auth/user/get", "/etcdserverpb.Auth/UserGet", unary::<pb::AuthUserGetRequest, pb::AuthUserGetResponse>),
    route("/v3/auth/user/list", "/etcdserverpb.Auth/UserList", unary::<pb::AuthUserListRequest, pb::AuthUserListResponse>),
    route("/v3/auth/user/delete", "/etcdserverpb.Auth/UserDelete", unary::<pb::AuthUserDeleteRequest, pb::AuthUserDeleteResponse>),
    route("/v3/auth/user/changepw", "/etcdserverpb.Auth/UserChangePassword", unary::<pb::AuthUserChangePasswordRequest, pb::AuthUserChangePasswordResponse>),
    route("/v3/auth/user/grant", "/etcdserverpb.Auth/UserGrantRole", unary::<pb::AuthUserGrantRoleRequest, pb::AuthUserGrantRoleResponse>),
    route("/v3/auth/user/revoke", "/etcdserverpb.Auth/UserRevokeRole", unary::<pb::AuthUserRevokeRoleRequest, pb::AuthUserRevokeRoleResponse>),
    route("/v3/auth/role/add", "/etcdserverpb.Auth/RoleAdd", unary::<pb::AuthRoleAddRequest, pb::AuthRoleAddResponse>),
    route("/v3/auth/role/get", "/etcdserverpb.Auth/RoleGet", unary::<pb::AuthRoleGetRequest, pb::AuthRoleGetResponse>),
    route("/v3/auth/role/list", "/etcdserverpb.Auth/RoleList", unary::<pb::AuthRoleListRequest, pb::AuthRoleListResponse>),
    route("/v3/auth/role/delete", "/etcdserverpb.Auth/RoleDelete", unary::<pb::AuthRoleDeleteRequest, pb::AuthRoleDeleteResponse>),
    route("/v3/auth/role/grant", "/etcdserverpb.Auth/RoleGrantPermission", unary::<pb::AuthRoleGrantPermissionRequest, pb::AuthRoleGrantPermissionResponse>),
    route("/v3/auth/role/revoke", "/etcdserverpb.Auth/RoleRevokePermission", unary::<pb::AuthRoleRevokePermissionRequest, pb::AuthRoleRevokePermissionResponse>),

    route("/v3/lock/lock", "/v3lockpb.Lock/Lock", unary::<lock::LockRequest, lock::LockResponse>),
    route("/v3/lock/unlock", "/v3lockpb.Lock/Unlock", unary::<lock::UnlockRequest, lock::UnlockResponse>),

    route("/v3/election/campaign", "/v3electionpb.Election/Campaign", unary::<election::CampaignRequest, election::CampaignResponse>),
    route("/v3/election/proclaim", "/v3electionpb.Election/Proclaim", unary::<election::ProclaimRequest, election::ProclaimResponse>),
    route("/v3/election/leader", "/v3electionpb.Election/Leader", unary::<election::LeaderRequest, election::LeaderResponse>),
    route("/v3/election/observe", "/v3electionpb.Election/Observe", answer_stream::<election::LeaderRequest, election::LeaderResponse>),
    route("/v3/election/resign", "/v3electionpb.Election/Resign", unary::<election::ResignRequest, election::ResignResponse>),
];
