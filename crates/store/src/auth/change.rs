//! Every change of users and roles: its rules, and what to journal for it. Pure; the sequencer calls
//! it and decides when the result is durable.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use etcd_api::authpb::Permission;
use journal::MetaChange;

use super::{
    Caller, Error, PasswordHash, State, meta,
    model::{ROOT, Role, User},
    permission,
};

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Enable,
    Disable,
    /// Without a password, the user can only be named by a client certificate.
    AddUser {
        name: String,
        password: Option<PasswordHash>,
    },
    DeleteUser {
        name: String,
    },
    /// Changes nothing but the revision if the user was added without a password.
    SetPassword {
        name: String,
        password: PasswordHash,
    },
    GrantRole {
        user: String,
        role: String,
    },
    RevokeRole {
        user: String,
        role: String,
    },
    AddRole {
        name: String,
    },
    /// Takes the role from every user who has it.
    DeleteRole {
        name: String,
    },
    GrantPermission {
        role: String,
        permission: Option<Permission>,
    },
    RevokePermission {
        role: String,
        key: Bytes,
        range_end: Bytes,
    },
}

// === impl State ===

impl State {
    /// Carries out `change` if `caller` is an administrator or auth is off, and returns what to
    /// journal, in one batch: nothing if all is as it should be already. On error the state is what
    /// it was.
    pub(crate) fn apply(
        &mut self,
        caller: &Caller,
        change: Change,
    ) -> Result<Vec<MetaChange>, Error> {
        self.access(caller).admin()?;
        match change {
            Change::Enable => self.enable(),
            Change::Disable => Ok(self.disable()),
            Change::AddUser { name, password } => self.add_user(&name, password),
            Change::DeleteUser { name } => self.delete_user(&name),
            Change::SetPassword { name, password } => self.change_password(&name, password),
            Change::GrantRole { user, role } => self.grant_role(&user, role),
            Change::RevokeRole { user, role } => self.revoke_role(&user, &role),
            Change::AddRole { name } => self.add_role(&name),
            Change::DeleteRole { name } => self.delete_role(&name),
            Change::GrantPermission { role, permission } => {
                self.grant_permission(&role, permission)
            }
            Change::RevokePermission { role, key, range_end } => {
                self.revoke_permission(&role, &key, &range_end)
            }
        }
    }

    /// Leaves the revision alone: the rights of nobody changed, they only begin to count.
    fn enable(&mut self) -> Result<Vec<MetaChange>, Error> {
        if self.is_enabled {
            return Ok(Vec::new());
        }
        let root = self.users.get(ROOT).ok_or(Error::RootUserMissing)?;
        if !root.is_root() {
            return Err(Error::RootRoleMissing);
        }
        self.is_enabled = true;
        self.enabled_since = self.revision;
        Ok(vec![meta::enabled(true)])
    }

    fn disable(&mut self) -> Vec<MetaChange> {
        if !self.is_enabled {
            return Vec::new();
        }
        self.is_enabled = false;
        vec![meta::enabled(false), self.next_revision()]
    }

    fn add_user(
        &mut self,
        name: &str,
        password: Option<PasswordHash>,
    ) -> Result<Vec<MetaChange>, Error> {
        if name.is_empty() {
            return Err(Error::UserNameEmpty);
        }
        if self.users.contains_key(name) {
            return Err(Error::UserExists);
        }
        let roles = BTreeSet::new();
        Ok(self.put_user(name, User { password, password_since: self.revision + 1, roles }))
    }

    fn delete_user(&mut self, name: &str) -> Result<Vec<MetaChange>, Error> {
        if self.is_enabled && name == ROOT {
            return Err(Error::InvalidManagement);
        }
        self.users.remove(name).ok_or(Error::UserNotFound)?;
        Ok(vec![meta::no_user(name), self.next_revision()])
    }

    fn change_password(
        &mut self,
        name: &str,
        password: PasswordHash,
    ) -> Result<Vec<MetaChange>, Error> {
        let mut user = self.user(name)?;
        user.password = user.password.map(|_old| password);
        user.password_since = self.revision + 1;
        Ok(self.put_user(name, user))
    }

    fn grant_role(&mut self, name: &str, role: String) -> Result<Vec<MetaChange>, Error> {
        let mut user = self.user(name)?;
        if role != ROOT && !self.roles.contains_key(&role) {
            return Err(Error::RoleNotFound);
        }
        if !user.roles.insert(role) {
            return Ok(Vec::new());
        }
        Ok(self.put_user(name, user))
    }

    fn revoke_role(&mut self, name: &str, role: &str) -> Result<Vec<MetaChange>, Error> {
        if self.is_enabled && name == ROOT && role == ROOT {
            return Err(Error::InvalidManagement);
        }
        let mut user = self.user(name)?;
        if !user.roles.remove(role) {
            return Err(Error::RoleNotGranted);
        }
        Ok(self.put_user(name, user))
    }

    fn add_role(&mut self, name: &str) -> Result<Vec<MetaChange>, Error> {
        if name.is_empty() {
            return Err(Error::RoleNameEmpty);
        }
        if self.roles.contains_key(name) {
            return Err(Error::RoleExists);
        }
        Ok(self.put_role(name, Role::default()))
    }

    fn delete_role(&mut self, name: &str) -> Result<Vec<MetaChange>, Error> {
        if self.is_enabled && name == ROOT {
            return Err(Error::InvalidManagement);
        }
        self.roles.remove(name).ok_or(Error::RoleNotFound)?;
        let mut meta = vec![meta::no_role(name)];
        for (holder, user) in self.users.iter_mut().filter(|(_, user)| user.roles.contains(name)) {
            Arc::make_mut(user).roles.remove(name);
            meta.push(meta::user(holder, user));
        }
        meta.push(self.next_revision());
        Ok(meta)
    }

    fn grant_permission(
        &mut self,
        name: &str,
        given: Option<Permission>,
    ) -> Result<Vec<MetaChange>, Error> {
        let given = given.ok_or(Error::PermissionNotGiven)?;
        if !permission::is_grantable(&given.key, &given.range_end) {
            return Err(Error::InvalidManagement);
        }
        let role = self.roles.get(name).ok_or(Error::RoleNotFound)?;
        let permissions = with_permission(role.permissions().to_vec(), given);
        Ok(self.put_role(name, Role::new(permissions)))
    }

    fn revoke_permission(
        &mut self,
        name: &str,
        key: &[u8],
        range_end: &[u8],
    ) -> Result<Vec<MetaChange>, Error> {
        let role = self.roles.get(name).ok_or(Error::RoleNotFound)?;
        let mut permissions = role.permissions().to_vec();
        permissions.retain(|held| held.key != key || held.range_end != range_end);
        if permissions.len() == role.permissions().len() {
            return Err(Error::PermissionNotGranted);
        }
        Ok(self.put_role(name, Role::new(permissions)))
    }

    fn user(&self, name: &str) -> Result<User, Error> {
        self.users.get(name).map(|user| User::clone(user)).ok_or(Error::UserNotFound)
    }

    fn put_user(&mut self, name: &str, user: User) -> Vec<MetaChange> {
        let meta = vec![meta::user(name, &user), self.next_revision()];
        self.users.insert(name.to_owned(), Arc::new(user));
        meta
    }

    fn put_role(&mut self, name: &str, role: Role) -> Vec<MetaChange> {
        let meta = vec![meta::role(name, &role), self.next_revision()];
        self.roles.insert(name.to_owned(), Arc::new(role));
        meta
    }

    fn next_revision(&mut self) -> MetaChange {
        self.revision += 1;
        meta::revision(self.revision)
    }
}

/// `held` with `given` added in order of key, or replacing the one for the same range.
///
/// The trap is etcd's and clients can see it: only the first permission of a key is looked at for
/// replacement. A second range from the same key, granted again, is there twice, and both count
/// until revoked.
fn with_permission(mut held: Vec<Permission>, given: Permission) -> Vec<Permission> {
    let first = held.partition_point(|other| other.key < given.key);
    match held.get_mut(first) {
        Some(other) if other.key == given.key && other.range_end == given.range_end => {
            other.perm_type = given.perm_type;
        }
        _ => {
            let after = held.partition_point(|other| other.key <= given.key);
            held.insert(after, given);
        }
    }
    held
}
