//! The store that is imported, asked through etcd's API. Changes nothing there.

use etcd_api::{
    authpb,
    etcdserverpb::{
        AuthRoleGetRequest, AuthRoleListRequest, AuthStatusRequest, AuthUserGetRequest,
        AuthUserListRequest, LeaseLeasesRequest, LeaseTimeToLiveRequest, RangeRequest, RequestOp,
        TxnRequest, TxnResponse, auth_client::AuthClient, kv_client::KvClient,
        lease_client::LeaseClient, request_op, response_op,
    },
    mvccpb::KeyValue,
};
use store::import::{Auth, Lease, hash_password};
use tonic::transport::Channel;

use super::Error;
use crate::{
    cli::ImportArgs,
    client::{self, Session},
    report::{Exit, Failure},
};

/// Keys in one answer, without their values.
const PAGE_KEYS: i64 = 10_000;

/// Values asked for at once: below etcd's bound of 128 operations, and an answer of at most 64 of the
/// largest values there are, 96 MiB.
const CHUNK_KEYS: usize = 64;

/// Bytes of keys in one question, well below etcd's bound of 1.5 MiB on requests.
const CHUNK_KEY_BYTES: usize = 512 * 1024;

/// From the first key on, and as far as there are keys.
const EVERY_KEY: &[u8] = b"\0";

/// A store, as it was at one revision.
pub(super) struct Source {
    kv: KvClient<Channel>,
    lease: LeaseClient<Channel>,
    auth: AuthClient<Channel>,
    session: Session,
    revision: i64,
}

// === impl Source ===

impl Source {
    /// Connects to the first endpoint that can be connected to, logs in, and settles the revision.
    pub(super) async fn connect(arguments: &ImportArgs) -> Result<Self, Failure> {
        let channel = connect(arguments).await?;
        let session = Session::begin(channel.clone(), &arguments.login).await?;
        let mut source = Self {
            kv: KvClient::new(channel.clone()).max_decoding_message_size(usize::MAX),
            lease: LeaseClient::new(channel.clone()).max_decoding_message_size(usize::MAX),
            auth: AuthClient::new(channel),
            session,
            revision: 0,
        };
        let any = RangeRequest { limit: 1, keys_only: true, ..everything() };
        let answer = source.kv.range(source.session.request(any)).await;
        let header = answer.map_err(|refusal| source.session.refused(refusal))?.into_inner().header;
        source.revision = header.ok_or(Error::Incomplete { what: "its header" })?.revision;
        Ok(source)
    }

    pub(super) fn revision(&self) -> i64 {
        self.revision
    }

    /// All keys, without their values, in order of the revision that changed them.
    pub(super) async fn keys(&mut self) -> Result<Vec<KeyValue>, Failure> {
        let mut keys: Vec<KeyValue> = Vec::new();
        let mut page = RangeRequest {
            limit: PAGE_KEYS,
            keys_only: true,
            revision: self.revision,
            ..everything()
        };
        loop {
            let request = self.session.request(page.clone());
            let answer = self.kv.range(request).await.map_err(client::refused)?.into_inner();
            keys.extend(answer.kvs);
            match keys.last() {
                Some(last) if answer.more => page.key = [last.key(), b"\0"].concat().into(),
                _ => break,
            }
        }
        keys.sort_unstable_by(|one, next| {
            (one.mod_revision(), one.key()).cmp(&(next.mod_revision(), next.key()))
        });
        Ok(keys)
    }

    /// The same key-values with their values.
    pub(super) async fn values(&mut self, keys: &[KeyValue]) -> Result<Vec<KeyValue>, Failure> {
        let get = |kv: &KeyValue| {
            let range =
                RangeRequest { key: kv.key_bytes(), revision: self.revision, ..Default::default() };
            RequestOp { request: Some(request_op::Request::RequestRange(range)) }
        };
        let success = keys.iter().map(get).collect();
        let request = self.session.request(TxnRequest { success, ..Default::default() });
        let answer = self.kv.txn(request).await.map_err(client::refused)?.into_inner();
        let found = found(answer);
        let is_same = found.len() == keys.len()
            && found.iter().zip(keys).all(|(found, asked)| is_same_version(found, asked));
        match is_same {
            true => Ok(found),
            false => Err(Error::Changed { revision: self.revision }.into()),
        }
    }

    /// The leases there are now. One that ends between the two questions is not among them.
    pub(super) async fn leases(&mut self) -> Result<Vec<Lease>, Failure> {
        let request = self.session.request(LeaseLeasesRequest {});
        let ids = self.lease.lease_leases(request).await.map_err(client::refused)?.into_inner();
        let mut leases = Vec::with_capacity(ids.leases.len());
        for status in ids.leases {
            let request =
                self.session.request(LeaseTimeToLiveRequest { id: status.id, keys: false });
            let answer = self.lease.lease_time_to_live(request).await.map_err(client::refused)?;
            let ttl_s = answer.into_inner().granted_ttl;
            if ttl_s > 0 {
                leases.push(Lease { id: status.id, ttl_s });
            }
        }
        Ok(leases)
    }

    /// Users and roles. The only password that is known is the one that was given.
    pub(super) async fn auth(&mut self) -> Result<Auth, Failure> {
        let request = self.session.request(AuthStatusRequest {});
        let status = self.auth.auth_status(request).await.map_err(client::refused)?.into_inner();
        let (users, roles) = (self.users().await?, self.roles().await?);
        let revision = status.auth_revision;
        Ok(Auth { is_enabled: status.enabled, revision, users, roles })
    }

    async fn users(&mut self) -> Result<Vec<authpb::User>, Failure> {
        let request = self.session.request(AuthUserListRequest {});
        let names = self.auth.user_list(request).await.map_err(client::refused)?.into_inner();
        let mut users = Vec::with_capacity(names.users.len());
        for name in names.users {
            let request = self.session.request(AuthUserGetRequest { name: name.clone() });
            let user = self.auth.user_get(request).await.map_err(client::refused)?.into_inner();
            let login = self.session.login().filter(|login| login.name == name);
            let password = match login {
                Some(login) => {
                    hash_password(login.password.reveal().to_owned()).await.map_err(refused_here)?
                }
                None => Default::default(),
            };
            users.push(authpb::User {
                name: name.into(),
                password,
                roles: user.roles,
                options: Some(authpb::UserAddOptions { no_password: false }),
            });
        }
        Ok(users)
    }

    async fn roles(&mut self) -> Result<Vec<authpb::Role>, Failure> {
        let request = self.session.request(AuthRoleListRequest {});
        let names = self.auth.role_list(request).await.map_err(client::refused)?.into_inner();
        let mut roles = Vec::with_capacity(names.roles.len());
        for role in names.roles {
            let request = self.session.request(AuthRoleGetRequest { role: role.clone() });
            let answer = self.auth.role_get(request).await.map_err(client::refused)?.into_inner();
            roles.push(authpb::Role { name: role.into(), key_permission: answer.perm });
        }
        Ok(roles)
    }
}

/// Cuts what is to be asked for into questions that etcd accepts.
pub(super) fn chunks(keys: &[KeyValue]) -> impl Iterator<Item = &[KeyValue]> {
    let mut rest = keys;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |kv: &&KeyValue| {
            bytes += kv.key().len();
            bytes <= CHUNK_KEY_BYTES
        };
        let length = rest.iter().take(CHUNK_KEYS).take_while(fits).count();
        let (chunk, next) = rest.split_at(length.max(1).min(rest.len()));
        rest = next;
        (!chunk.is_empty()).then_some(chunk)
    })
}

async fn connect(arguments: &ImportArgs) -> Result<Channel, client::Error> {
    let (last, others) = arguments.from.split_last().expect("--from is required");
    for endpoint in others {
        match client::connect(endpoint, &arguments.tls).await {
            Err(client::Error::Connect { .. }) => {}
            connected => return connected,
        }
    }
    client::connect(last, &arguments.tls).await
}

fn everything() -> RangeRequest {
    RangeRequest { key: EVERY_KEY.into(), range_end: EVERY_KEY.into(), ..Default::default() }
}

/// etcd 3.7 leaves the lease out when it is asked for keys alone.
fn is_same_version(found: &KeyValue, asked: &KeyValue) -> bool {
    found.key() == asked.key()
        && found.create_revision() == asked.create_revision()
        && found.mod_revision() == asked.mod_revision()
        && found.version() == asked.version()
}

fn found(answer: TxnResponse) -> Vec<KeyValue> {
    let ranges = answer.responses.into_iter().filter_map(|op| match op.response? {
        response_op::Response::ResponseRange(range) => Some(range.kvs),
        _ => None,
    });
    ranges.flatten().collect()
}

fn refused_here(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    let error = anyhow::Error::new(error).context("the password cannot be kept");
    Failure::new(Exit::No, error).with_hint("log in as a user with a shorter password")
}

#[cfg(test)]
mod tests {
    use etcd_api::mvccpb::KeyValueParts;

    use super::*;

    fn check(key_lengths: impl IntoIterator<Item = usize>, expected: &[usize]) {
        let kv = |length| {
            KeyValue::new(&KeyValueParts { key: &vec![b'k'; length], ..Default::default() })
        };
        let keys: Vec<KeyValue> = key_lengths.into_iter().map(kv).collect();
        assert_eq!(chunks(&keys).map(<[_]>::len).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn questions_are_bounded_in_keys_and_bytes() {
        check([], &[]);
        check([1; CHUNK_KEYS * 2 + 3], &[CHUNK_KEYS, CHUNK_KEYS, 3]);
        check([CHUNK_KEY_BYTES / 2; 5], &[2, 2, 1]);
        check([CHUNK_KEY_BYTES + 1, 1, 1], &[1, 2]);
    }
}
