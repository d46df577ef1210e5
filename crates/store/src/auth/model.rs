//! The users and roles as data, and what can be asked of them. Changing them is [`super::change`]'s.
//!
//! ```text
//! users   root  → password hash, roles {root}
//!         alice → password hash, roles {app, audit}
//! roles   app   → READWRITE [/app/, /app0)
//!         audit → READ /app/log
//! ```
//!
//! The role `root` opens everything, whatever permissions it was given, and may be held without
//! existing as a role.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use etcd_api::authpb::{Permission, permission::Type};

use super::{
    Access, Caller, Error, PasswordHash,
    permission::{Grants, Right, covers},
};

/// The administrator: both the user without whom auth cannot be enabled, and the role.
pub(super) const ROOT: &str = "root";

/// The revision of a store whose users and roles were never touched.
pub(super) const FIRST_REVISION: u64 = 1;

/// Everything about auth that survives a restart.
///
/// Users and roles are shared with the snapshots published before, so a clone copies two maps of
/// pointers.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(super) is_enabled: bool,
    /// The revision at which auth was last enabled by this process; 0 if it was found enabled.
    pub(super) enabled_since: u64,
    /// Counts changes; no relation to the revision of keys.
    pub(super) revision: u64,
    pub(super) users: BTreeMap<String, Arc<User>>,
    pub(super) roles: BTreeMap<String, Arc<Role>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    /// A user without one can only be named by a client certificate.
    pub(super) password: Option<PasswordHash>,
    /// The revision at which this process last set the password; 0 if it was found.
    pub(super) password_since: u64,
    pub(super) roles: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Role {
    /// In order of key.
    permissions: Vec<Permission>,
    /// The same, merged for checking.
    grants: Grants,
}

// === impl State ===

impl Default for State {
    fn default() -> Self {
        Self {
            is_enabled: false,
            enabled_since: 0,
            revision: FIRST_REVISION,
            users: BTreeMap::new(),
            roles: BTreeMap::new(),
        }
    }
}

impl State {
    /// The same, read back after `before` was: what was set between the two is set since now, so that
    /// tokens from before end with the password.
    pub(crate) fn following(mut self, before: &Self) -> Self {
        let revision = self.revision;
        for (name, user) in &mut self.users {
            let since = match before.users.get(name) {
                Some(known) if known.password == user.password => known.password_since,
                _ => revision,
            };
            if since != user.password_since {
                Arc::make_mut(user).password_since = since;
            }
        }
        let is_enabled_anew = self.is_enabled && !before.is_enabled;
        self.enabled_since = if is_enabled_anew { revision } else { before.enabled_since };
        self
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// What `caller` may do. Costs nothing while auth is off.
    pub(crate) fn access<'a>(&'a self, caller: &'a Caller) -> Access<'a> {
        Access::new(self, caller)
    }

    /// The roles of a user, in order.
    pub(crate) fn user_roles(&self, name: &str) -> Result<Vec<String>, Error> {
        let user = self.users.get(name).ok_or(Error::UserNotFound)?;
        Ok(user.roles.iter().cloned().collect())
    }

    /// All users, in order.
    pub(crate) fn user_names(&self) -> Vec<String> {
        self.users.keys().cloned().collect()
    }

    /// The permissions of a role, in order of key.
    pub(crate) fn role_permissions(&self, name: &str) -> Result<Vec<Permission>, Error> {
        let role = self.roles.get(name).ok_or(Error::RoleNotFound)?;
        Ok(if name == ROOT { vec![everything()] } else { role.permissions.clone() })
    }

    /// All roles, in order.
    pub(crate) fn role_names(&self) -> Vec<String> {
        self.roles.keys().cloned().collect()
    }

    /// The hash against which a login of `name` is to be verified.
    pub(super) fn password_of(&self, name: &str) -> Result<&PasswordHash, Error> {
        if !self.is_enabled {
            return Err(Error::NotEnabled);
        }
        let user = self.users.get(name).ok_or(Error::WrongPassword)?;
        user.password.as_ref().ok_or(Error::NoPasswordUser)
    }

    /// Whether a login of `name` that was made at `revision` still holds: it ends with the password
    /// by which it was made, with the user, and with auth itself.
    pub(super) fn honours_login(&self, name: &str, revision: u64) -> bool {
        let is_held = |user: &Arc<User>| user.password_since <= revision;
        self.enabled_since <= revision && self.users.get(name).is_some_and(is_held)
    }

    /// Whether the roles of `user` together open all that is wanted.
    pub(super) fn permits(&self, user: &User, right: Right, key: &[u8], range_end: &[u8]) -> bool {
        let roles = user.roles.iter().filter_map(|name| self.roles.get(name));
        covers(roles.map(|role| role.grants.of(right)), key, range_end)
    }
}

// === impl User ===

impl User {
    pub(super) fn is_root(&self) -> bool {
        self.roles.contains(ROOT)
    }
}

// === impl Role ===

impl Role {
    pub(super) fn new(permissions: Vec<Permission>) -> Self {
        let grants = Grants::new(&permissions);
        Self { permissions, grants }
    }

    pub(super) fn permissions(&self) -> &[Permission] {
        &self.permissions
    }
}

/// What the role root is said to permit.
fn everything() -> Permission {
    Permission {
        perm_type: Type::Readwrite.into(),
        key: Bytes::new(),
        range_end: Bytes::from_static(b"\0"),
    }
}
