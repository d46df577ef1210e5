//! The fence on a real API server: every writer, every operation, every change of labels, on the
//! object and on what lies below it. The rules as a function say what is expected.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::sharding::{Persona, World};
use e2e::wait::{Level, wait_for};
use futures::{StreamExt, stream};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::discovery::ApiResource;
use kube::{Client, core::GroupVersionKind};
use serde_json::{Value, json};
use sharding::core::fence::{self, Labels, Operation, Options, Part, Write, Writer, admit};
use sharding::core::names::Names;
use sharding::core::spec::Spec;

use crate::stage::{Stage, cases};

cases! {
    beside: [
        fence_refuses_what_its_rules_refuse_by_the_pod_of_a_token,
        fence_refuses_what_its_rules_refuse_by_user_name,
    ],
    alone: [],
}

/// A policy works some seconds after it was created.
const IN_FORCE_WAIT: Duration = Duration::from_secs(60);

/// Requests in flight; the server allows some hundred.
const WIDTH: usize = 16;

/// As many as a reader can use.
const MISTAKES_SHOWN: usize = 10;

const SHARDER: &str = "system:serviceaccount:windlass-system:windlass-sharder";
const PREFIX: &str = "site:";
const SHARDS: [Option<&str>; 3] = [None, Some("a-0"), Some("b-0")];
const DRAINS: [Option<&str>; 3] = [None, Some("1700000000"), Some("1800000000")];
const WRITERS: [Writer<'static>; 5] = [
    Writer::Instance(Some("a-0")),
    Writer::Instance(Some("b-0")),
    Writer::Instance(None),
    Writer::Sharder,
    Writer::Other,
];

/// A fence that is in force, over Deployments that own ReplicaSets: both have a status and a scale.
struct Fenced {
    namespace: String,
    names: Names,
    /// In the order of [`WRITERS`].
    clients: Vec<Client>,
}

/// One request.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    write: Write<'static>,
    /// Whether it goes to the object's status, where the server keeps the labels as they are.
    is_status: bool,
}

async fn fence_refuses_what_its_rules_refuse_by_the_pod_of_a_token(stage: &Stage) -> Result<()> {
    let persona = |writer: Writer<'_>| match writer {
        Writer::Instance(Some(id)) => Persona::service_account("shop", "sites").in_pod(id),
        Writer::Instance(None) => Persona::service_account("shop", "sites"),
        Writer::Sharder => Persona::user(SHARDER),
        Writer::Other => Persona::user("somebody"),
    };
    let instances = json!({"serviceAccounts": ["shop/sites"]});
    check(&stage.world, "by-pod", &instances, persona).await
}

async fn fence_refuses_what_its_rules_refuse_by_user_name(stage: &Stage) -> Result<()> {
    let persona = |writer: Writer<'_>| match writer {
        Writer::Instance(id) => Persona::user(&format!("{PREFIX}{}", id.unwrap_or_default())),
        Writer::Sharder => Persona::user(SHARDER),
        Writer::Other => Persona::user("somebody"),
    };
    let instances = json!({"identity": "Username", "usernamePrefix": PREFIX});
    check(&stage.world, "by-name", &instances, persona).await
}

async fn check(
    world: &World,
    ring: &str,
    instances: &Value,
    persona: impl Fn(Writer<'_>) -> Persona,
) -> Result<()> {
    let mut clients = Vec::new();
    for writer in WRITERS {
        clients.push(world.client_as(&persona(writer)).await?);
    }
    let fenced = Fenced::raise(world, ring, instances, clients).await?;
    let attempts = stream::iter(attempts()).map(async |attempt| fenced.judge(&attempt).await);
    let verdicts: Vec<Result<()>> = attempts.buffer_unordered(WIDTH).collect().await;
    let mistakes = verdicts.into_iter().filter_map(Result::err);
    let mistakes: Vec<String> = mistakes.map(|mistake| format!("{mistake:#}")).collect();
    let shown = &mistakes[..mistakes.len().min(MISTAKES_SHOWN)];
    ensure!(mistakes.is_empty(), "{} mistakes, such as\n{}", mistakes.len(), shown.join("\n"));
    fenced.tear_down(world).await
}

fn all_labels() -> Vec<Labels<'static>> {
    let all = SHARDS.map(|shard| DRAINS.map(|drain| Labels { shard, drain }));
    all.into_iter().flatten().collect()
}

fn attempts() -> Vec<Attempt> {
    let mut all = Vec::new();
    for writer in WRITERS {
        for part in [Part::Main, Part::Controlled] {
            for labels in all_labels() {
                all.extend(attempts_at(writer, part, labels));
            }
        }
    }
    all
}

/// What one writer tries with an object of these labels.
fn attempts_at(
    writer: Writer<'static>,
    part: Part,
    labels: Labels<'static>,
) -> impl Iterator<Item = Attempt> {
    let none = Labels::default();
    let write = move |operation, before, after| Write {
        writer,
        operation,
        part,
        before,
        after,
        has_controller: true,
        is_scale: false,
    };
    let create = write(Operation::Create, none, labels);
    let whole =
        [create, Write { has_controller: false, ..create }, write(Operation::Delete, labels, none)];
    let updates =
        all_labels().into_iter().map(move |after| write(Operation::Update, labels, after));
    let update = write(Operation::Update, labels, labels);
    let scale = Write { is_scale: true, ..update };
    let all = whole.into_iter().chain(updates).chain([scale]);
    let status = Attempt { write: update, is_status: true };
    all.map(|write| Attempt { write, is_status: false }).chain([status])
}

// === impl Fenced ===

impl Fenced {
    /// Applies the policy, makes an object of each kind with each labels, and waits until the policy
    /// works.
    async fn raise(
        world: &World,
        ring: &str,
        instances: &Value,
        clients: Vec<Client>,
    ) -> Result<Self> {
        let spec: Spec = serde_json::from_value(json!({
            "resources": [{"group": "apps", "resource": "deployments", "controlled": [
                {"group": "apps", "resource": "replicasets"},
            ]}],
            "instances": instances,
        }))?;
        let names = spec.names(ring.parse()?);
        let namespace = format!("fence-{ring}");
        world.namespace(&namespace).await?;
        let sharders = [SHARDER.to_owned()];
        let objects = fence::objects(&Options { names: &names, spec: &spec, sharders: &sharders });
        world.server.kubectl().create(&objects).await?;
        let fenced = Self { namespace, names, clients };
        fenced.populate().await?;
        fenced.wait_in_force().await?;
        Ok(fenced)
    }

    async fn populate(&self) -> Result<()> {
        let client = self.client(Writer::Sharder);
        for part in [Part::Main, Part::Controlled] {
            let api = self.api(client, part);
            for labels in all_labels() {
                let bare = self.object(part, Labels::default(), &name(labels), true)?;
                api.create(&PostParams::default(), &bare).await.context("create an object")?;
                let patch = Patch::Merge(json!({"metadata": {"labels": self.labels(labels)}}));
                let params = PatchParams::default();
                api.patch(&name(labels), &params, &patch).await.context("label an object")?;
            }
        }
        Ok(())
    }

    async fn wait_in_force(&self) -> Result<()> {
        let before = Labels { shard: Some("a-0"), drain: None };
        let theft = Attempt {
            write: Write {
                writer: Writer::Other,
                operation: Operation::Update,
                part: Part::Main,
                before,
                after: Labels::default(),
                has_controller: true,
                is_scale: false,
            },
            is_status: false,
        };
        wait_for("the fence to be in force", IN_FORCE_WAIT, async || {
            Ok(match self.send(&theft).await {
                Err(kube::Error::Api(_)) => Level::Reached(()),
                other => Level::Below(format!("{other:?}")),
            })
        })
        .await
    }

    async fn tear_down(self, world: &World) -> Result<()> {
        let name = format!("windlass-fence-{}", self.names.ring());
        let kinds = "validatingadmissionpolicy,validatingadmissionpolicybinding";
        world.server.kubectl().run(&["delete", kinds, &name]).await?;
        Ok(())
    }

    /// Tries it without consequences, and compares with what the rules say.
    async fn judge(&self, attempt: &Attempt) -> Result<()> {
        let expected = admit(&attempt.write);
        match (self.send(attempt).await, expected) {
            (Ok(()), Ok(())) => Ok(()),
            (Ok(()), Err(refusal)) => bail!("{attempt:?} passed; expected: {refusal}"),
            (Err(kube::Error::Api(status)), Err(refusal))
                if status.code == 403 && status.message.contains(&refusal.to_string()) =>
            {
                Ok(())
            }
            (Err(error), expected) => bail!("{attempt:?}: {error}; expected: {expected:?}"),
        }
    }

    async fn send(&self, attempt: &Attempt) -> kube::Result<()> {
        let Attempt { write, is_status } = attempt;
        let api = self.api(self.client(write.writer), write.part);
        let name = name(write.before);
        match write.operation {
            Operation::Create => {
                let object = self.object(write.part, write.after, "new", write.has_controller);
                let object = object.map_err(kube::Error::SerdeError)?;
                api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await?;
            }
            Operation::Delete => {
                api.delete(&name, &DeleteParams::default().dry_run()).await?;
            }
            Operation::Update => self.update(&api, &name, write, *is_status).await?,
        }
        Ok(())
    }

    async fn update(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        write: &Write<'_>,
        is_status: bool,
    ) -> kube::Result<()> {
        let params = PatchParams { dry_run: true, ..PatchParams::default() };
        if is_status {
            let patch = json!({"status": {"observedGeneration": 7}});
            api.patch_status(name, &params, &Patch::Merge(patch)).await?;
        } else if write.is_scale {
            let patch = json!({"spec": {"replicas": 7}});
            api.patch_scale(name, &params, &Patch::Merge(patch)).await?;
        } else {
            let patch = json!({"metadata": {
                "labels": self.labels(write.after), "annotations": {"tried": "yes"},
            }});
            api.patch(name, &params, &Patch::Merge(patch)).await?;
        }
        Ok(())
    }

    fn client(&self, writer: Writer<'_>) -> &Client {
        let at = WRITERS.iter().position(|each| *each == writer);
        &self.clients[at.expect("all writers have a client")]
    }

    fn api(&self, client: &Client, part: Part) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", kind(part)));
        Api::namespaced_with(client.clone(), &self.namespace, &kind)
    }

    /// Both, whether there or not: a merge patch takes away what is null.
    fn labels(&self, labels: Labels<'_>) -> Value {
        json!({self.names.shard_label(): labels.shard, self.names.drain_label(): labels.drain})
    }

    fn object(
        &self,
        part: Part,
        labels: Labels<'_>,
        name: &str,
        has_controller: bool,
    ) -> serde_json::Result<DynamicObject> {
        let mut own = serde_json::Map::new();
        own.extend(labels.shard.map(|shard| (self.names.shard_label(), json!(shard))));
        own.extend(labels.drain.map(|drain| (self.names.drain_label(), json!(drain))));
        let owner = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "home", "uid": "1", "controller": true,
        }]);
        let pod = json!({"app": "site"});
        serde_json::from_value(json!({
            "apiVersion": "apps/v1",
            "kind": kind(part),
            "metadata": {
                "name": name,
                "labels": own,
                "ownerReferences": if has_controller { owner } else { json!([]) },
            },
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": pod},
                "template": {
                    "metadata": {"labels": pod},
                    "spec": {"containers": [{"name": "site", "image": "site"}]},
                },
            },
        }))
    }
}

fn kind(part: Part) -> &'static str {
    match part {
        Part::Main => "Deployment",
        Part::Controlled => "ReplicaSet",
    }
}

/// The object that has these labels.
fn name(labels: Labels<'_>) -> String {
    format!("of-{}-{}", labels.shard.unwrap_or("nobody"), labels.drain.unwrap_or("stays"))
}
