//! Where it takes place: a namespace and a ring of their own on somebody's cluster.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::{
    core::v1::{Namespace, Secret},
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, PostParams},
    config::Kubeconfig,
    core::PartialObjectMeta,
};
use kubekit::{
    client::{self, Cluster},
    metrics::Requests,
};
use serde_json::{Value, json};
use sharding::{
    core::{names::Names, spec::Spec},
    kubernetes::{Ring, Rings},
    manifests,
};
use tokio::time::{Instant, sleep};

use super::{Options, accounts};

/// A fence is trusted half a minute after it was installed.
const FENCE_MAX: Duration = Duration::from_mins(3);
/// Slots are evened out by a few in ten minutes.
const BALANCED_MAX: Duration = Duration::from_mins(25);
const CLOSE_MAX: Duration = Duration::from_mins(30);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Requests of the load under way at once.
const INFLIGHT_MAX: usize = 64;

pub(super) struct Setting {
    pub(super) client: Client,
    /// Of the namespace, of the ring, and of whatever else there is only once in a cluster.
    pub(super) name: String,
    pub(super) scratch: PathBuf,
    kubeconfig: Kubeconfig,
    has_ring: bool,
}

// === impl Setting ===

impl Setting {
    pub(super) async fn open(options: &Options) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(&options.kubeconfig).context("read the file")?;
        let client = connect(&options.kubeconfig).await?;
        let name = format!("windlass-bench-{:08x}", uuid::Uuid::new_v4().as_fields().0);
        let scratch = options.scratch.clone();
        accounts::prepare_folder(&scratch)?;
        let setting = Self { client, name, scratch, kubeconfig, has_ring: false };
        let namespace = json!({
            "metadata": {"name": setting.name, "labels": {"windlass-bench": setting.name}},
        });
        let namespace: Namespace = serde_json::from_value(namespace)?;
        let namespaces: Api<Namespace> = Api::all(setting.client.clone());
        namespaces.create(&PostParams::default(), &namespace).await.context("make a namespace")?;
        setting.give_rights().await?;
        Ok(setting)
    }

    pub(super) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// The same, without what is in them.
    pub(super) fn metadata(&self) -> Api<PartialObjectMeta<Secret>> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    pub(super) fn names(&self) -> Result<Names> {
        Ok(self.spec()?.names(self.name.parse()?))
    }

    fn spec(&self) -> Result<Spec> {
        let spec = json!({
            "resources": [{"resource": "secrets"}],
            "namespaceSelector": {"matchLabels": {"windlass-bench": self.name}},
            "instances": {
                "identity": "Username",
                "usernamePrefix": format!("system:serviceaccount:{}:", self.name),
            },
        });
        serde_json::from_value(spec).context("write down a ring")
    }

    /// The credentials of an account, in a file.
    pub(super) async fn login(&self, namespace: &str, account: &str) -> Result<PathBuf> {
        accounts::login((&self.client, &self.kubeconfig), (namespace, account), &self.scratch).await
    }

    /// What the sharder logs in as.
    pub(super) async fn sharder_login(&self) -> Result<PathBuf> {
        let login = self.login(manifests::HOME, manifests::NAME).await;
        login.context("is there a sharder's account?")
    }

    /// What an instance logs in as; the fence knows it by that.
    pub(super) async fn instance_login(&self, id: &str) -> Result<PathBuf> {
        accounts::ensure(&self.client, &self.name, id).await?;
        self.login(&self.name, id).await
    }

    pub(super) async fn open_ring(&mut self) -> Result<()> {
        let spec = self.spec()?;
        let roles = manifests::ring_objects(self.names()?.ring(), &spec, manifests::HOME);
        let roles = roles.into_iter().filter(|object| object["kind"] == "ClusterRole");
        let api: Api<ClusterRole> = Api::all(self.client.clone());
        for role in roles {
            let role = serde_json::from_value(role).context("a role is written like that")?;
            api.create(&PostParams::default(), &role).await.context("make a role")?;
        }
        let ring = serde_json::to_value(Ring::new(&self.name, spec))?;
        let ring = serde_json::from_value(ring).context("a ring is an object")?;
        self.rings().create(&PostParams::default(), &ring).await.context("make a ring")?;
        self.has_ring = true;
        Ok(())
    }

    /// Waits until the sharder trusts the fence.
    pub(super) async fn wait_fenced(&self) -> Result<()> {
        self.wait_condition("Fenced", FENCE_MAX).await
    }

    /// Waits until the objects have been counted and slots evened out.
    pub(super) async fn wait_balanced(&self) -> Result<()> {
        self.wait_condition("Balanced", BALANCED_MAX).await
    }

    async fn wait_condition(&self, wanted: &str, max: Duration) -> Result<()> {
        let (rings, until) = (Rings::new(self.client.clone()), Instant::now() + max);
        loop {
            let ring = rings.get(&self.name).await?.context("the ring is gone")?;
            let conditions = ring.status.unwrap_or_default().conditions;
            if conditions.iter().any(|it| it.type_ == wanted && it.status == "True") {
                return Ok(());
            }
            ensure!(Instant::now() < until, "not {wanted} after {max:?}: {conditions:?}");
            sleep(LOOK_EVERY).await;
        }
    }

    /// Removes the objects, then the ring, for which a sharder has to run.
    pub(super) async fn close_ring(&mut self) -> Result<()> {
        self.remove_secrets().await?;
        let until = Instant::now() + CLOSE_MAX;
        self.rings().delete(&self.name, &DeleteParams::default()).await.context("delete a ring")?;
        while self.rings().get_opt(&self.name).await?.is_some() {
            ensure!(Instant::now() < until, "the ring is not let go");
            sleep(LOOK_EVERY).await;
        }
        self.has_ring = false;
        Ok(())
    }

    /// Removes everything else. A ring that a failed run has left stays: without a sharder nobody
    /// takes its labels off.
    pub(super) async fn remove(self) -> Result<()> {
        accounts::remove_folder(&self.scratch)?;
        if self.has_ring {
            bail!("ring and namespace {} are left; `kubectl delete` them", self.name);
        }
        self.remove_secrets().await?;
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        for role in [self.ring_role(), self.instance_role(), self.name.clone()] {
            gone(roles.delete(&role, &DeleteParams::default()).await.map(drop))?;
        }
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        for binding in [self.ring_role(), self.name.clone()] {
            gone(bindings.delete(&binding, &DeleteParams::default()).await.map(drop))?;
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        gone(namespaces.delete(&self.name, &DeleteParams::default()).await.map(drop))
    }

    async fn remove_secrets(&self) -> Result<()> {
        super::objects::remove_all(&self.secrets()).await
    }

    fn rings(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &ApiResource::erase::<Ring>(&()))
    }

    fn ring_role(&self) -> String {
        format!("windlass-sharder-ring-{}", self.name)
    }

    fn instance_role(&self) -> String {
        format!("windlass-ring-{}-instance", self.name)
    }

    /// The ring's to the sharder, which a cluster without controllers would not add up; and to the
    /// instances what their work takes.
    async fn give_rights(&self) -> Result<()> {
        let sharder = json!({
            "kind": "ServiceAccount", "name": manifests::NAME, "namespace": manifests::HOME,
        });
        let instances = json!({
            "kind": "Group", "apiGroup": "rbac.authorization.k8s.io",
            "name": format!("system:serviceaccounts:{}", self.name),
        });
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        let role = serde_json::from_value(self.work_role()).context("write down a role")?;
        roles.create(&PostParams::default(), &role).await.context("make a role")?;
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
        let pairs = [(self.ring_role(), sharder), (self.name.clone(), instances)];
        for (role, subject) in pairs {
            let binding = serde_json::from_value(binding(&role, &subject))?;
            bindings.create(&PostParams::default(), &binding).await.context("give a right")?;
        }
        Ok(())
    }

    fn work_role(&self) -> Value {
        json!({
            "metadata": {"name": self.name},
            "rules": [
                {"apiGroups": ["windlass.dev"], "resources": ["rings"], "verbs": ["get"]},
                {
                    "apiGroups": [""], "resources": ["secrets"],
                    "verbs": ["get", "list", "watch", "patch"],
                },
                {
                    "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                    "verbs": ["get", "create", "update", "patch"],
                },
            ],
        })
    }
}

fn binding(role: &str, subject: &Value) -> Value {
    json!({
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    })
}

pub(super) async fn connect(kubeconfig: &Path) -> Result<Client> {
    let options = client::Options {
        kubeconfig: Some(kubeconfig.to_owned()),
        inflight_max: INFLIGHT_MAX,
        ..client::Options::default()
    };
    Ok(Cluster::open(options, Requests::default()).await?.client()?)
}

/// What is not there need not be removed.
fn gone(deleted: kube::Result<()>) -> Result<()> {
    match deleted {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.context("remove what was made"),
    }
}
