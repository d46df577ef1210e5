//! Health, version and metrics, in etcd's words. Owns how they are asked for and how they read;
//! whether the store is well is known to its [`Probes`].

use std::fmt::Write;

use etcd_api::etcdserverpb::AlarmType;
use etcd_api::version;
use futures::future::BoxFuture;
use http::header::{ACCEPT, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tonic::body::Body;

use crate::metrics::classic;

use super::pages::{error_text, full, json, text};

const OPEN_METRICS: &str = "application/openmetrics-text";
const OPEN_METRICS_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const METRICS_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// What the store tells about itself.
pub trait Probes: Send + Sync + 'static {
    /// Alarms that are raised now.
    fn alarms(&self) -> Vec<AlarmType>;

    /// Whether there is a member that orders writes.
    fn has_leader(&self) -> bool;

    /// Whether this member only follows.
    fn is_learner(&self) -> bool;

    fn is_auth_enabled(&self) -> bool;

    /// Reads at most one key as root, and tells why that failed.
    fn read(&self, read: Read) -> BoxFuture<'_, Result<(), tonic::Status>>;
}

/// How strictly a probe reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// What this member knows.
    Serializable,
    /// What all members agree on.
    Linearizable,
}

/// What is asked about health.
pub(super) enum Question {
    /// `/health`: one word about everything.
    Overall,
    /// `/livez`, `/readyz`: their checks, but for those the query excludes.
    All(&'static [Check]),
    /// `/livez/<check>`, `/readyz/<check>`.
    One(Check),
}

/// One named condition of being alive or ready.
#[derive(Clone, Copy)]
pub(super) enum Check {
    DataCorruption,
    Read(Read),
    NonLearner,
}

const LIVE: &[Check] = &[Check::Read(Read::Serializable)];
const READY: &[Check] = &[
    Check::DataCorruption,
    Check::Read(Read::Serializable),
    Check::Read(Read::Linearizable),
    Check::NonLearner,
];

pub(super) fn version() -> Response<Body> {
    let (server, cluster, storage) = (version::SERVER, version::CLUSTER, version::STORAGE);
    let versions =
        format!(r#"{{"etcdserver":"{server}","etcdcluster":"{cluster}","storage":"{storage}"}}"#);
    json(StatusCode::OK, versions.into())
}

pub(super) fn metrics(registry: &Registry, headers: &HeaderMap) -> Response<Body> {
    let mut rendered = String::new();
    encode(&mut rendered, registry).expect("writing to a string cannot fail");
    let wants_open = (headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()))
        .is_some_and(|accept| accept.contains(OPEN_METRICS));
    if wants_open {
        return full(StatusCode::OK, OPEN_METRICS_TYPE, rendered.into());
    }
    full(StatusCode::OK, METRICS_TYPE, classic::from_open_metrics(&rendered).into())
}

// === impl Question ===

impl Question {
    /// What a path asks, if it asks for health.
    pub(super) fn of(path: &str) -> Option<Self> {
        if path == "/health" {
            return Some(Self::Overall);
        }
        let (checks, rest) = match (path.strip_prefix("/livez"), path.strip_prefix("/readyz")) {
            (Some(rest), _) => (LIVE, rest),
            (_, Some(rest)) => (READY, rest),
            (None, None) => return None,
        };
        if rest.is_empty() {
            return Some(Self::All(checks));
        }
        let name = rest.strip_prefix('/')?;
        checks.iter().find(|check| check.name() == name).map(|check| Self::One(*check))
    }

    pub(super) async fn answer(self, probes: &dyn Probes, query: &str) -> Response<Body> {
        match self {
            Self::Overall => overall(probes, query).await,
            Self::One(check) => verdict(probes, &[check], query).await,
            Self::All(checks) => {
                let excluded: Vec<_> = values(query, "exclude").collect();
                let wanted = checks.iter().filter(|check| !excluded.contains(&check.name()));
                verdict(probes, &wanted.copied().collect::<Vec<_>>(), query).await
            }
        }
    }
}

async fn overall(probes: &dyn Probes, query: &str) -> Response<Body> {
    match illness(probes, query).await {
        None => text(StatusCode::OK, r#"{"health":"true","reason":""}"#),
        Some(reason) => {
            tracing::warn!(reason, "serving /health false");
            let reason = serde_json::Value::String(reason);
            let words = format!(r#"{{"health":"false","reason":{reason}}}"#);
            error_text(StatusCode::SERVICE_UNAVAILABLE, &words)
        }
    }
}

async fn illness(probes: &dyn Probes, query: &str) -> Option<String> {
    let is_excluded =
        |alarm: &AlarmType| values(query, "exclude").any(|v| v == alarm.as_str_name());
    if let Some(alarm) = probes.alarms().into_iter().find(|alarm| !is_excluded(alarm)) {
        return Some(format!("ALARM {}", alarm.as_str_name()));
    }
    let is_local = values(query, "serializable").next() == Some("true");
    if !is_local && !probes.has_leader() {
        return Some("RAFT NO LEADER".to_owned());
    }
    let read = if is_local { Read::Serializable } else { Read::Linearizable };
    let failed = probes.read(read).await.err()?;
    Some(format!("RANGE ERROR:{}", failed.message()))
}

async fn verdict(probes: &dyn Probes, checks: &[Check], query: &str) -> Response<Body> {
    let mut report = String::new();
    let mut is_well = true;
    for check in checks {
        let name = check.name();
        let line = match check.run(probes).await {
            Ok(()) => writeln!(report, "[+]{name} ok"),
            Err(reason) => {
                is_well = false;
                writeln!(report, "[-]{name} failed: {reason}")
            }
        };
        line.expect("writing to a string cannot fail");
    }
    if !is_well {
        tracing::warn!(report, "health check failed");
        return error_text(StatusCode::SERVICE_UNAVAILABLE, &report);
    }
    let is_verbose = values(query, "verbose").next().is_some();
    let mut response =
        text(StatusCode::OK, if is_verbose { report } else { String::new() } + "ok\n");
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// All values a query gives for a name; a name without `=` has the empty value. Nothing we know has
/// characters that need escaping.
fn values<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(move |(key, _)| *key == name)
        .map(|(_, value)| value)
}

// === impl Check ===

impl Check {
    fn name(self) -> &'static str {
        match self {
            Self::DataCorruption => "data_corruption",
            Self::Read(Read::Serializable) => "serializable_read",
            Self::Read(Read::Linearizable) => "linearizable_read",
            Self::NonLearner => "non_learner",
        }
    }

    async fn run(self, probes: &dyn Probes) -> Result<(), String> {
        match self {
            Self::DataCorruption if probes.alarms().contains(&AlarmType::Corrupt) => {
                Err("alarm activated: CORRUPT".to_owned())
            }
            Self::NonLearner if probes.is_learner() => Err("not supported for learner".to_owned()),
            Self::DataCorruption | Self::NonLearner => Ok(()),
            Self::Read(read) => {
                probes.read(read).await.map_err(|failed| failed.message().to_owned())
            }
        }
    }
}
