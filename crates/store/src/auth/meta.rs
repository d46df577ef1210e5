//! How users and roles lie in the journal's meta table.
//!
//! | key | value |
//! |---|---|
//! | `auth/enabled` | `1` or `0` |
//! | `auth/revision` | eight bytes, big endian |
//! | `auth/user/NAME` | `authpb.User` |
//! | `auth/role/NAME` | `authpb.Role` |

use std::sync::Arc;

use bytes::Bytes;
use etcd_api::authpb;
use journal::MetaChange;
use prost::Message;

use super::{
    PasswordHash, State,
    model::{Role, User},
};

const ENABLED_KEY: &[u8] = b"auth/enabled";
const REVISION_KEY: &[u8] = b"auth/revision";
const USER_PREFIX: &[u8] = b"auth/user/";
const ROLE_PREFIX: &[u8] = b"auth/role/";

const ENABLED: &[u8] = b"1";
const DISABLED: &[u8] = b"0";

/// Why kept users and roles cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("unknown meta entry `{0}`")]
    UnknownKey(String),
    #[error("meta entry `{0}` has an impossible value")]
    BadValue(String),
    #[error("meta entry `{key}` cannot be decoded")]
    Decode {
        key: String,
        #[source]
        source: prost::DecodeError,
    },
}

// === impl State ===

impl State {
    /// Reads back what was journaled, given the entries whose keys begin with `auth/`.
    pub(crate) fn load<'a>(
        entries: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Self, LoadError> {
        let mut state = Self::default();
        for (key, value) in entries {
            state.load_entry(key, value)?;
        }
        Ok(state)
    }

    fn load_entry(&mut self, key: &[u8], value: &[u8]) -> Result<(), LoadError> {
        if key == ENABLED_KEY {
            self.is_enabled = match value {
                ENABLED => true,
                DISABLED => false,
                _ => return Err(LoadError::BadValue(lossy(key))),
            };
        } else if key == REVISION_KEY {
            let bytes = value.try_into().ok();
            let bytes = bytes.ok_or_else(|| LoadError::BadValue(lossy(key)))?;
            self.revision = u64::from_be_bytes(bytes);
        } else if let Some(name) = key.strip_prefix(USER_PREFIX) {
            let stored: authpb::User = decode(key, value)?;
            let name = checked_name(key, name, &stored.name)?;
            self.users.insert(name, Arc::new(load_user(stored)));
        } else if let Some(name) = key.strip_prefix(ROLE_PREFIX) {
            let stored: authpb::Role = decode(key, value)?;
            let name = checked_name(key, name, &stored.name)?;
            self.roles.insert(name, Arc::new(Role::new(stored.key_permission)));
        } else {
            return Err(LoadError::UnknownKey(lossy(key)));
        }
        Ok(())
    }
}

pub(crate) fn enabled(is_enabled: bool) -> MetaChange {
    let value = if is_enabled { ENABLED } else { DISABLED };
    set(Bytes::from_static(ENABLED_KEY), Bytes::from_static(value))
}

pub(crate) fn revision(revision: u64) -> MetaChange {
    set(Bytes::from_static(REVISION_KEY), Bytes::copy_from_slice(&revision.to_be_bytes()))
}

pub(super) fn user(name: &str, user: &User) -> MetaChange {
    let stored = authpb::User {
        name: Bytes::copy_from_slice(name.as_bytes()),
        password: user.password.as_ref().map(PasswordHash::to_bytes).unwrap_or_default(),
        roles: user.roles.iter().cloned().collect(),
        options: Some(authpb::UserAddOptions { no_password: user.password.is_none() }),
    };
    stored_user(&stored)
}

pub(crate) fn stored_user(user: &authpb::User) -> MetaChange {
    set(entry_key(USER_PREFIX, &user.name), user.encode_to_vec().into())
}

pub(super) fn no_user(name: &str) -> MetaChange {
    MetaChange { key: entry_key(USER_PREFIX, name.as_bytes()), value: None }
}

pub(super) fn role(name: &str, role: &Role) -> MetaChange {
    let stored = authpb::Role {
        name: Bytes::copy_from_slice(name.as_bytes()),
        key_permission: role.permissions().to_vec(),
    };
    stored_role(&stored)
}

pub(crate) fn stored_role(role: &authpb::Role) -> MetaChange {
    set(entry_key(ROLE_PREFIX, &role.name), role.encode_to_vec().into())
}

pub(super) fn no_role(name: &str) -> MetaChange {
    MetaChange { key: entry_key(ROLE_PREFIX, name.as_bytes()), value: None }
}

fn set(key: Bytes, value: Bytes) -> MetaChange {
    MetaChange { key, value: Some(value) }
}

fn entry_key(prefix: &[u8], name: &[u8]) -> Bytes {
    [prefix, name].concat().into()
}

fn load_user(stored: authpb::User) -> User {
    let no_password = stored.options.is_some_and(|options| options.no_password);
    User {
        password: (!no_password).then(|| PasswordHash::from(stored.password)),
        password_since: 0,
        roles: stored.roles.into_iter().collect(),
    }
}

fn decode<M: Message + Default>(key: &[u8], value: &[u8]) -> Result<M, LoadError> {
    M::decode(value).map_err(|source| LoadError::Decode { key: lossy(key), source })
}

/// An entry names its user or role twice; if the two differ it was not written by us.
fn checked_name(key: &[u8], in_key: &[u8], in_value: &[u8]) -> Result<String, LoadError> {
    let name = std::str::from_utf8(in_key).ok().filter(|_| in_key == in_value);
    name.map(str::to_owned).ok_or_else(|| LoadError::BadValue(lossy(key)))
}

fn lossy(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}
