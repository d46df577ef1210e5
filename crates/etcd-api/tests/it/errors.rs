//! The catalogue, word for word: clients compare codes and messages.

use std::fmt::Write as _;

use etcd_api::{ApiError, CancelReason};

/// `number name: message`, one line per entry.
const CATALOGUE: &str = r#"
3 EmptyKey: etcdserver: key is not provided
3 KeyNotFound: etcdserver: key not found
3 ValueProvided: etcdserver: value is provided
3 LeaseProvided: etcdserver: lease is provided
3 TooManyOps: etcdserver: too many operations in txn request
3 DuplicateKey: etcdserver: duplicate key given in txn request
3 InvalidSortOption: etcdserver: invalid sort option
11 Compacted: etcdserver: mvcc: required revision has been compacted
11 FutureRevision: etcdserver: mvcc: required revision is a future revision
8 NoSpace: etcdserver: mvcc: database space exceeded
3 RequestTooLarge: etcdserver: request is too large
8 TooManyRequests: etcdserver: too many requests
12 RangeStreamSorted: RangeStream does not support custom sort orders
12 RangeStreamFiltered: RangeStream does not support revision filters
5 LeaseNotFound: etcdserver: requested lease not found
9 LeaseExists: etcdserver: lease already exists
11 LeaseTtlTooLarge: etcdserver: too large lease TTL
1 WatchCanceled: etcdserver: watch canceled
2 SessionExpired: mutex: session is expired
2 ElectionNotLeader: election: not leader
2 ElectionNoLeader: election: no leader
2 ElectionLeaderKeyMissing: "leader" field must be provided
9 MemberExists: etcdserver: member ID already exist
9 PeerUrlExists: etcdserver: Peer URLs already exists
2 MemberNotEnoughStarted: etcdserver: re-configuration failed due to not enough started members
3 MemberBadUrls: etcdserver: given member URLs are invalid
5 MemberNotFound: etcdserver: member not found
9 MemberNotLearner: etcdserver: can only promote a learner member
9 LearnerNotReady: etcdserver: can only promote a learner member which is in sync with leader
9 TooManyLearners: etcdserver: too many learner members in cluster
9 ClusterIdMismatch: etcdserver: cluster ID mismatch
9 NotSupportedForLearner: etcdserver: rpc not supported for learner
9 BadLeaderTransferee: etcdserver: bad leader transferee
9 RootUserMissing: etcdserver: root user does not exist
9 RootRoleMissing: etcdserver: root user does not have root role
9 UserExists: etcdserver: user name already exists
3 UserNameEmpty: etcdserver: user name is empty
9 UserNotFound: etcdserver: user name not found
9 RoleExists: etcdserver: role name already exists
9 RoleNotFound: etcdserver: role name not found
3 RoleNameEmpty: etcdserver: role name is empty
3 AuthFailed: etcdserver: authentication failed, invalid user ID or password
3 PermissionNotGiven: etcdserver: permission not given
7 PermissionDenied: etcdserver: permission denied
9 RoleNotGranted: etcdserver: role is not granted to the user
9 PermissionNotGranted: etcdserver: permission is not granted to the role
9 AuthNotEnabled: etcdserver: authentication is not enabled
16 InvalidAuthToken: etcdserver: invalid auth token
3 InvalidAuthMgmt: etcdserver: invalid auth management
3 AuthOldRevision: etcdserver: revision of auth store is old
2 PasswordForNoPasswordUser: auth: authentication failed, password was given for no password user
2 TokenKeyVerifyOnly: auth: token signing attempted with verify-only key
2 PasswordTooLong: bcrypt: password length exceeds 72 bytes
14 NoLeader: etcdserver: no leader
9 NotLeader: etcdserver: not leader
14 LeaderChanged: etcdserver: leader changed
9 NotCapable: etcdserver: not capable
3 InvalidClientApiVersion: etcdserver: invalid client api version
14 Stopped: etcdserver: server stopped
14 Timeout: etcdserver: request timed out
14 TimeoutDueToLeaderFail: etcdserver: request timed out, possibly due to previous leader failure
14 TimeoutDueToConnectionLost: etcdserver: request timed out, possibly due to connection lost
14 TimeoutWaitAppliedIndex: etcdserver: request timed out, waiting for the applied index took too long
14 Unhealthy: etcdserver: unhealthy cluster
15 Corrupt: etcdserver: corrupt cluster
1 Canceled: etcdserver: request canceled
4 DeadlineExceeded: etcdserver: context deadline exceeded
2 TimeoutLeaderTransfer: etcdserver: request timed out, leader transfer took too long
5 HealthServiceUnknown: unknown service
3 WrongDowngradeVersionFormat: etcdserver: wrong downgrade target version format
3 InvalidDowngradeTargetVersion: etcdserver: invalid downgrade target version
9 ClusterVersionUnavailable: etcdserver: cluster version not found during downgrade
9 DowngradeInProgress: etcdserver: cluster has a downgrade job in progress
9 NoInflightDowngrade: etcdserver: no inflight downgrade job
2 UnknownMethod: etcdserver: unknown method
"#;

#[test]
fn catalogue() {
    let mut actual = String::from("\n");
    for error in ApiError::ALL {
        writeln!(actual, "{} {error:?}: {error}", error.code().number())
            .expect("a string takes any text");
    }
    assert_eq!(actual, CATALOGUE);
}

#[test]
fn cancel_reasons() {
    let expected = [
        (CancelReason::DuplicateWatchId, "mvcc: duplicate watch ID provided on the WatchStream"),
        (CancelReason::EmptyRange, "mvcc: watcher range is empty"),
        (CancelReason::Compacted, "etcdserver: mvcc: required revision has been compacted"),
        (
            CancelReason::PermissionDenied,
            "rpc error: code = PermissionDenied desc = etcdserver: permission denied",
        ),
        (
            CancelReason::InvalidAuthToken,
            "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token",
        ),
        (
            CancelReason::AuthOldRevision,
            "rpc error: code = InvalidArgument desc = etcdserver: revision of auth store is old",
        ),
        (
            CancelReason::UserNameEmpty,
            "rpc error: code = InvalidArgument desc = etcdserver: user name is empty",
        ),
    ];
    for (reason, message) in expected {
        assert_eq!(reason.to_string(), message);
    }
}
