//! From what a client sends to the [`Change`] it asks for.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use etcd_api::etcdserverpb::{
    AuthDisableRequest, AuthEnableRequest, AuthRoleAddRequest, AuthRoleDeleteRequest,
    AuthRoleGrantPermissionRequest, AuthRoleRevokePermissionRequest, AuthUserAddRequest,
    AuthUserChangePasswordRequest, AuthUserDeleteRequest, AuthUserGrantRoleRequest,
    AuthUserRevokeRoleRequest,
};

use super::{Change, Error, PasswordHash, Passwords};

// === impl Change ===

impl Change {
    /// Hashes the password, so check that the caller is an administrator first. A hash sent along is
    /// ignored.
    pub(crate) async fn add_user(
        request: AuthUserAddRequest,
        passwords: &Passwords,
    ) -> Result<Self, Error> {
        let password = match request.options {
            Some(options) if options.no_password => None,
            _ => Some(passwords.hash(request.password).await?),
        };
        Ok(Self::AddUser { name: request.name, password })
    }

    /// Hashes the password, so check that the caller is an administrator first. Without a password
    /// the hash sent along is taken; without either, nobody can log in with a password any more.
    pub(crate) async fn change_password(
        request: AuthUserChangePasswordRequest,
        passwords: &Passwords,
    ) -> Result<Self, Error> {
        let password = if request.password.is_empty() {
            let hash = STANDARD.decode(request.hashed_password);
            let hash = hash.map_err(|_not_base64| Error::NoPasswordUser)?;
            PasswordHash::from(Bytes::from(hash))
        } else {
            passwords.hash(request.password).await?
        };
        Ok(Self::SetPassword { name: request.name, password })
    }
}

impl From<AuthEnableRequest> for Change {
    fn from(_: AuthEnableRequest) -> Self {
        Self::Enable
    }
}

impl From<AuthDisableRequest> for Change {
    fn from(_: AuthDisableRequest) -> Self {
        Self::Disable
    }
}

impl From<AuthUserDeleteRequest> for Change {
    fn from(request: AuthUserDeleteRequest) -> Self {
        Self::DeleteUser { name: request.name }
    }
}

impl From<AuthUserGrantRoleRequest> for Change {
    fn from(request: AuthUserGrantRoleRequest) -> Self {
        Self::GrantRole { user: request.user, role: request.role }
    }
}

impl From<AuthUserRevokeRoleRequest> for Change {
    fn from(request: AuthUserRevokeRoleRequest) -> Self {
        Self::RevokeRole { user: request.name, role: request.role }
    }
}

impl From<AuthRoleAddRequest> for Change {
    fn from(request: AuthRoleAddRequest) -> Self {
        Self::AddRole { name: request.name }
    }
}

impl From<AuthRoleDeleteRequest> for Change {
    fn from(request: AuthRoleDeleteRequest) -> Self {
        Self::DeleteRole { name: request.role }
    }
}

impl From<AuthRoleGrantPermissionRequest> for Change {
    fn from(request: AuthRoleGrantPermissionRequest) -> Self {
        Self::GrantPermission { role: request.name, permission: request.perm }
    }
}

impl From<AuthRoleRevokePermissionRequest> for Change {
    fn from(request: AuthRoleRevokePermissionRequest) -> Self {
        Self::RevokePermission {
            role: request.role,
            key: request.key,
            range_end: request.range_end,
        }
    }
}
