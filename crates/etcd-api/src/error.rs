//! The errors an etcd server answers with: gRPC code and exact text. Clients compare both, so this
//! is the one place where etcd's strings stand. Owns the catalogue; never decides which error
//! applies, and knows no gRPC library.

use std::fmt;

/// The gRPC status codes the catalogue uses, by their numbers on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Code {
    Canceled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    OutOfRange = 11,
    Unimplemented = 12,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

/// Why a watch was cancelled, as its `cancel_reason` says. A watch whose start was compacted away
/// is cancelled without a reason: its `compact_revision` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelReason {
    DuplicateWatchId,
    EmptyRange,
    /// Only for a negative start revision.
    Compacted,
    PermissionDenied,
    InvalidAuthToken,
    AuthOldRevision,
    UserNameEmpty,
}

/// Defines `ApiError` from its table, so that a variant cannot lack a code or a message.
macro_rules! catalogue {
    ($($variant:ident => $code:ident, $message:literal;)+) => {
        /// One error of the API. `Display` is the exact message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ApiError {
            $(#[doc = concat!("`", $message, "`")] $variant,)+
        }

        impl ApiError {
            /// The whole catalogue.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            #[must_use]
            pub const fn code(self) -> Code {
                match self {
                    $(Self::$variant => Code::$code,)+
                }
            }

            #[must_use]
            pub const fn message(self) -> &'static str {
                match self {
                    $(Self::$variant => $message,)+
                }
            }
        }
    };
}

catalogue! {
    // Reads and writes.
    EmptyKey => InvalidArgument, "etcdserver: key is not provided";
    KeyNotFound => InvalidArgument, "etcdserver: key not found";
    ValueProvided => InvalidArgument, "etcdserver: value is provided";
    LeaseProvided => InvalidArgument, "etcdserver: lease is provided";
    TooManyOps => InvalidArgument, "etcdserver: too many operations in txn request";
    DuplicateKey => InvalidArgument, "etcdserver: duplicate key given in txn request";
    InvalidSortOption => InvalidArgument, "etcdserver: invalid sort option";
    Compacted => OutOfRange, "etcdserver: mvcc: required revision has been compacted";
    FutureRevision => OutOfRange, "etcdserver: mvcc: required revision is a future revision";
    NoSpace => ResourceExhausted, "etcdserver: mvcc: database space exceeded";
    RequestTooLarge => InvalidArgument, "etcdserver: request is too large";
    TooManyRequests => ResourceExhausted, "etcdserver: too many requests";

    // Range streams.
    RangeStreamSorted => Unimplemented, "RangeStream does not support custom sort orders";
    RangeStreamFiltered => Unimplemented, "RangeStream does not support revision filters";

    // Leases and watches.
    LeaseNotFound => NotFound, "etcdserver: requested lease not found";
    LeaseExists => FailedPrecondition, "etcdserver: lease already exists";
    LeaseTtlTooLarge => OutOfRange, "etcdserver: too large lease TTL";
    WatchCanceled => Canceled, "etcdserver: watch canceled";

    // Locks and elections. etcd gives these no code of their own.
    SessionExpired => Unknown, "mutex: session is expired";
    ElectionNotLeader => Unknown, "election: not leader";
    ElectionNoLeader => Unknown, "election: no leader";
    ElectionLeaderKeyMissing => Unknown, "\"leader\" field must be provided";

    // Members.
    MemberExists => FailedPrecondition, "etcdserver: member ID already exist";
    PeerUrlExists => FailedPrecondition, "etcdserver: Peer URLs already exists";
    // etcd sends this one without its code.
    MemberNotEnoughStarted => Unknown, "etcdserver: re-configuration failed due to not enough started members";
    MemberBadUrls => InvalidArgument, "etcdserver: given member URLs are invalid";
    MemberNotFound => NotFound, "etcdserver: member not found";
    MemberNotLearner => FailedPrecondition, "etcdserver: can only promote a learner member";
    LearnerNotReady => FailedPrecondition, "etcdserver: can only promote a learner member which is in sync with leader";
    TooManyLearners => FailedPrecondition, "etcdserver: too many learner members in cluster";
    ClusterIdMismatch => FailedPrecondition, "etcdserver: cluster ID mismatch";
    NotSupportedForLearner => FailedPrecondition, "etcdserver: rpc not supported for learner";
    BadLeaderTransferee => FailedPrecondition, "etcdserver: bad leader transferee";

    // Users, roles and tokens.
    RootUserMissing => FailedPrecondition, "etcdserver: root user does not exist";
    RootRoleMissing => FailedPrecondition, "etcdserver: root user does not have root role";
    UserExists => FailedPrecondition, "etcdserver: user name already exists";
    UserNameEmpty => InvalidArgument, "etcdserver: user name is empty";
    UserNotFound => FailedPrecondition, "etcdserver: user name not found";
    RoleExists => FailedPrecondition, "etcdserver: role name already exists";
    RoleNotFound => FailedPrecondition, "etcdserver: role name not found";
    RoleNameEmpty => InvalidArgument, "etcdserver: role name is empty";
    AuthFailed => InvalidArgument, "etcdserver: authentication failed, invalid user ID or password";
    PermissionNotGiven => InvalidArgument, "etcdserver: permission not given";
    PermissionDenied => PermissionDenied, "etcdserver: permission denied";
    RoleNotGranted => FailedPrecondition, "etcdserver: role is not granted to the user";
    PermissionNotGranted => FailedPrecondition, "etcdserver: permission is not granted to the role";
    AuthNotEnabled => FailedPrecondition, "etcdserver: authentication is not enabled";
    InvalidAuthToken => Unauthenticated, "etcdserver: invalid auth token";
    InvalidAuthMgmt => InvalidArgument, "etcdserver: invalid auth management";
    AuthOldRevision => InvalidArgument, "etcdserver: revision of auth store is old";
    PasswordForNoPasswordUser => Unknown, "auth: authentication failed, password was given for no password user";
    TokenKeyVerifyOnly => Unknown, "auth: token signing attempted with verify-only key";
    PasswordTooLong => Unknown, "bcrypt: password length exceeds 72 bytes";

    // The state of the server.
    NoLeader => Unavailable, "etcdserver: no leader";
    NotLeader => FailedPrecondition, "etcdserver: not leader";
    LeaderChanged => Unavailable, "etcdserver: leader changed";
    NotCapable => FailedPrecondition, "etcdserver: not capable";
    InvalidClientApiVersion => InvalidArgument, "etcdserver: invalid client api version";
    Stopped => Unavailable, "etcdserver: server stopped";
    Timeout => Unavailable, "etcdserver: request timed out";
    TimeoutDueToLeaderFail => Unavailable, "etcdserver: request timed out, possibly due to previous leader failure";
    TimeoutDueToConnectionLost => Unavailable, "etcdserver: request timed out, possibly due to connection lost";
    TimeoutWaitAppliedIndex => Unavailable, "etcdserver: request timed out, waiting for the applied index took too long";
    Unhealthy => Unavailable, "etcdserver: unhealthy cluster";
    Corrupt => DataLoss, "etcdserver: corrupt cluster";
    Canceled => Canceled, "etcdserver: request canceled";
    DeadlineExceeded => DeadlineExceeded, "etcdserver: context deadline exceeded";
    TimeoutLeaderTransfer => Unknown, "etcdserver: request timed out, leader transfer took too long";
    HealthServiceUnknown => NotFound, "unknown service";

    // Downgrades.
    WrongDowngradeVersionFormat => InvalidArgument, "etcdserver: wrong downgrade target version format";
    InvalidDowngradeTargetVersion => InvalidArgument, "etcdserver: invalid downgrade target version";
    ClusterVersionUnavailable => FailedPrecondition, "etcdserver: cluster version not found during downgrade";
    DowngradeInProgress => FailedPrecondition, "etcdserver: cluster has a downgrade job in progress";
    NoInflightDowngrade => FailedPrecondition, "etcdserver: no inflight downgrade job";
    // An action that etcd does not know; it gives this one no code of its own.
    UnknownMethod => Unknown, "etcdserver: unknown method";
}

// === impl Code ===

impl Code {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }
}

// === impl ApiError ===

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for ApiError {}

// === impl CancelReason ===

impl CancelReason {
    /// The auth reasons carry the frame in which Go prints a gRPC status; the others do not.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::DuplicateWatchId => "mvcc: duplicate watch ID provided on the WatchStream",
            Self::EmptyRange => "mvcc: watcher range is empty",
            Self::Compacted => ApiError::Compacted.message(),
            Self::PermissionDenied => {
                "rpc error: code = PermissionDenied desc = etcdserver: permission denied"
            }
            Self::InvalidAuthToken => {
                "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token"
            }
            Self::AuthOldRevision => {
                "rpc error: code = InvalidArgument desc = etcdserver: revision of auth store is old"
            }
            Self::UserNameEmpty => {
                "rpc error: code = InvalidArgument desc = etcdserver: user name is empty"
            }
        }
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}
