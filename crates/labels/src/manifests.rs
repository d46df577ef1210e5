//! The Kubernetes objects the service runs under: namespaces, accounts, rights, admission policies
//! and Deployments. Only makes data; never talks to a cluster.
//!
//! The stores are namespaces of their own, apart from the one the pods run in: nobody but the two
//! accounts has any business there, and a policy says so.

pub(crate) mod access;
mod policies;
#[cfg(test)]
mod tests;
mod workloads;

use serde_json::{Value, json};

use crate::options::{self, Namespaces};

/// What a cluster may have otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The image whose entry point is `windlass`.
    pub image: String,
    /// Pods of each service.
    pub replicas: u32,
    /// Groups of people who may write to the stores, with the rights they have anyway.
    pub admin_groups: Vec<String>,
    /// Where the pods run and the accounts live.
    pub home: String,
    pub stores: Namespaces,
}

/// Why options were refused. Each names the flag, because that is what a person wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Stores(#[from] options::Error),
    #[error("--namespace and --{store}: both are `{name}`, but pods must stay out of the stores")]
    HomeIsStore { store: &'static str, name: String },
    #[error("--image is empty")]
    NoImage,
    #[error("--admin-group is empty")]
    NoGroup,
}

/// An account, and the service that logs in with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    Watcher,
    Processor,
}

/// All objects, in an order in which they can be created.
#[must_use]
pub fn objects(options: &Options) -> Vec<Value> {
    let mut objects = namespaces(options);
    objects.extend(Account::ALL.map(|account| service_account(options, account)));
    objects.extend(Account::ALL.iter().flat_map(|account| access::objects(options, *account)));
    objects.extend(policies::objects(options));
    objects.extend(Account::ALL.iter().flat_map(|account| workloads::objects(options, *account)));
    objects
}

// === impl Options ===

impl Options {
    pub fn validate(&self) -> Result<(), Error> {
        self.stores.validate()?;
        options::check_namespace("namespace", &self.home)?;
        let stores = [
            ("transaction-namespace", &self.stores.transactions),
            ("metadata-namespace", &self.stores.metadata),
            ("checkpoint-namespace", &self.stores.checkpoints),
        ];
        if let Some((store, _)) = stores.into_iter().find(|(_, name)| **name == self.home) {
            return Err(Error::HomeIsStore { store, name: self.home.clone() });
        }
        if self.image.is_empty() {
            return Err(Error::NoImage);
        }
        let is_empty = self.admin_groups.iter().any(String::is_empty);
        if is_empty { Err(Error::NoGroup) } else { Ok(()) }
    }
}

fn namespaces(options: &Options) -> Vec<Value> {
    let namespace = |name: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "windlass-labels"}},
        })
    };
    let mut home = namespace(&options.home);
    home["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = json!("restricted");
    std::iter::once(home).chain(stores(options).map(namespace)).collect()
}

fn stores(options: &Options) -> [&str; 3] {
    let Namespaces { transactions, metadata, checkpoints } = &options.stores;
    [transactions, metadata, checkpoints]
}

fn service_account(options: &Options, account: Account) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(account, Some(&options.home)),
        // A pod of ours asks for its token; one that merely names the account gets none.
        "automountServiceAccountToken": false,
    })
}

/// Every object made for one account is called like it.
fn metadata(account: Account, namespace: Option<&str>) -> Value {
    let mut metadata = json!({"name": account.name(), "labels": account.selector()});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

// === impl Account ===

impl Account {
    pub const ALL: [Self; 2] = [Self::Watcher, Self::Processor];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Watcher => "windlass-labels-watcher",
            Self::Processor => "windlass-labels-processor",
        }
    }

    /// As which the API server knows it.
    #[must_use]
    pub fn user(self, home: &str) -> String {
        format!("system:serviceaccount:{home}:{}", self.name())
    }

    const fn component(self) -> &'static str {
        match self {
            Self::Watcher => "watcher",
            Self::Processor => "processor",
        }
    }

    /// What its pods carry and its Deployment selects.
    fn selector(self) -> Value {
        json!({
            "app.kubernetes.io/name": "windlass-labels",
            "app.kubernetes.io/component": self.component(),
        })
    }
}
