//! Why auth refuses, and what a client is told of it.

use etcd_api::{ApiError, CancelReason};

/// Why a request or a change was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no user root")]
    RootUserMissing,
    #[error("the user root does not have the role root")]
    RootRoleMissing,
    #[error("the user exists already")]
    UserExists,
    #[error("a user needs a name")]
    UserNameEmpty,
    #[error("the user does not exist")]
    UserNotFound,
    #[error("the role exists already")]
    RoleExists,
    #[error("a role needs a name")]
    RoleNameEmpty,
    #[error("the role does not exist")]
    RoleNotFound,
    #[error("the user does not have the role")]
    RoleNotGranted,
    #[error("the request carries no permission")]
    PermissionNotGiven,
    #[error("the role does not have the permission")]
    PermissionNotGranted,
    /// Also a permission for a range that holds no key.
    #[error("the change would lock out the administrator or make no sense")]
    InvalidManagement,

    #[error("auth is enabled and the request names no user")]
    NoCaller,
    #[error("the user may not do this")]
    PermissionDenied,
    #[error("users or roles changed since the token was issued or the check was made")]
    OldRevision,

    #[error("auth is not enabled")]
    NotEnabled,
    #[error("the user is unknown or the password is wrong")]
    WrongPassword,
    /// Also a given hash that is not base64.
    #[error("the user has no password")]
    NoPasswordUser,
    #[error("the password is longer than bcrypt can hash")]
    PasswordTooLong,
    #[error("too many passwords are waiting to be hashed")]
    TooManyPasswords,
    #[error("the token is malformed, unknown or expired")]
    InvalidToken,
    #[error("tokens cannot be signed without the private key")]
    VerifyOnly,
    #[error("the store is shutting down")]
    Stopped,
}

// === impl Error ===

impl Error {
    /// etcd's error for the same refusal.
    pub(crate) const fn api_error(self) -> ApiError {
        match self {
            Self::RootUserMissing => ApiError::RootUserMissing,
            Self::RootRoleMissing => ApiError::RootRoleMissing,
            Self::UserExists => ApiError::UserExists,
            Self::UserNameEmpty | Self::NoCaller => ApiError::UserNameEmpty,
            Self::UserNotFound => ApiError::UserNotFound,
            Self::RoleExists => ApiError::RoleExists,
            Self::RoleNameEmpty => ApiError::RoleNameEmpty,
            Self::RoleNotFound => ApiError::RoleNotFound,
            Self::RoleNotGranted => ApiError::RoleNotGranted,
            Self::PermissionNotGiven => ApiError::PermissionNotGiven,
            Self::PermissionNotGranted => ApiError::PermissionNotGranted,
            Self::InvalidManagement => ApiError::InvalidAuthMgmt,
            Self::PermissionDenied => ApiError::PermissionDenied,
            Self::OldRevision => ApiError::AuthOldRevision,
            Self::NotEnabled => ApiError::AuthNotEnabled,
            Self::WrongPassword => ApiError::AuthFailed,
            Self::NoPasswordUser => ApiError::PasswordForNoPasswordUser,
            Self::PasswordTooLong => ApiError::PasswordTooLong,
            Self::TooManyPasswords => ApiError::TooManyRequests,
            Self::InvalidToken => ApiError::InvalidAuthToken,
            Self::VerifyOnly => ApiError::TokenKeyVerifyOnly,
            Self::Stopped => ApiError::Stopped,
        }
    }

    /// Why a watch that was refused is cancelled.
    pub(crate) const fn cancel_reason(self) -> CancelReason {
        match self {
            Self::InvalidToken => CancelReason::InvalidAuthToken,
            Self::OldRevision => CancelReason::AuthOldRevision,
            Self::NoCaller => CancelReason::UserNameEmpty,
            _ => CancelReason::PermissionDenied,
        }
    }
}
