//! From settings to the options of a store: what `store serve` is to do, checked as a whole.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use store::{Address, Limits, Listener, Options, Tls};

use super::{
    Error, Origin, Settings, access, auth_token, compaction,
    journal::Journal,
    layers::Layered,
    peers::Peers,
    tls::{ClientTls, SelfSigned},
    urls::{self, Url},
};
use crate::logging;

const QUOTA_BYTES_DEFAULT: u64 = 2 * 1024 * 1024 * 1024;

const WATCH_PROGRESS_INTERVAL_DEFAULT: Duration = Duration::from_secs(10 * 60);

/// bcrypt's own bounds. etcd falls back to its default outside of them.
const BCRYPT_COSTS: std::ops::RangeInclusive<u64> = 4..=31;
const BCRYPT_COST_DEFAULT: u32 = 10;

/// Above this etcd warns, since clients have limits of their own.
const REQUEST_BYTES_RECOMMENDED_MAX: usize = 10 * 1024 * 1024;

/// Everything `store serve` needs to know.
#[derive(Debug)]
pub(crate) struct Serve {
    pub(crate) journal: Journal,
    pub(crate) options: Options,
    pub(crate) log: logging::Options,
    /// To be made before the store starts.
    pub(crate) self_signed: Option<SelfSigned>,
    /// Said once logging works.
    pub(crate) warnings: Vec<String>,
}

// === impl Serve ===

impl Serve {
    pub(crate) fn of(layered: Layered) -> Result<Self, Error> {
        let Layered { settings, mut warnings } = layered;
        check_advertised(&settings)?;
        let name = settings.text("name").to_owned();
        let data_dir = data_dir(&settings, &name);
        let journal = Journal::of(&settings, &data_dir)?;
        check_members(&settings, &journal)?;
        let peers = match &journal {
            Journal::Folder(_) => Peers::default(),
            Journal::Shared { .. } => Peers::of(&settings)?,
        };
        let listening = Listening::of(&settings, &data_dir, &mut warnings)?;
        let options = Options {
            name,
            client_listeners: listening.clients,
            http_listeners: listening.http,
            metrics_listeners: listening.metrics,
            http_access: access::of(&settings)?,
            serves_json: settings.is_on("enable-grpc-gateway")?,
            advertise_client_urls: urls::to_advertise(&settings, "advertise-client-urls")?,
            advertise_peer_urls: urls::to_advertise(&settings, "initial-advertise-peer-urls")?,
            limits: limits(&settings, &mut warnings)?,
            auto_compaction: compaction::of(&settings)?,
            watch_progress_interval: watch_progress_interval(&settings)?,
            auth_token: auth_token::of(&settings)?,
            bcrypt_cost: bcrypt_cost(&settings, &mut warnings)?,
            cache_bytes: settings.unsigned("cache-bytes")?,
            peer_listeners: peers.listeners,
            peer_tls: peers.tls,
            notices: Vec::new(),
        };
        let log = logging::Options::of(&settings)?;
        Ok(Self { journal, options, log, self_signed: listening.self_signed, warnings })
    }
}

/// As in etcd, the default folder lies in the current one and bears the member's name.
fn data_dir(settings: &Settings, name: &str) -> PathBuf {
    settings.given("data-dir").map_or_else(|| format!("{name}.etcd").into(), PathBuf::from)
}

/// Refuses what etcd refuses too.
fn check_advertised(settings: &Settings) -> Result<(), Error> {
    // A file need not repeat itself: that is how etcd has it.
    let is_listening_chosen = settings.is_set("listen-client-urls")
        && !matches!(settings.origin("listen-client-urls"), Origin::File { .. });
    if is_listening_chosen && !settings.is_set("advertise-client-urls") {
        return Err(Error::Contradiction {
            problem: "--listen-client-urls is set, so --advertise-client-urls must be too".into(),
            hint: "advertise the URLs under which clients reach this machine",
        });
    }
    urls::of_flag(settings, "listen-peer-urls").map(drop)
}

/// Refuses clusters of several members, but where these find each other in the journal they share.
fn check_members(settings: &Settings, journal: &Journal) -> Result<(), Error> {
    if matches!(journal, Journal::Shared { .. }) {
        return Ok(());
    }
    let members: Vec<&str> = settings
        .list("initial-cluster")
        .into_iter()
        .map(|member| member.split_once('=').map_or(member, |(name, _)| name))
        .collect();
    let name = settings.text("name");
    if let Some(other) = members.iter().find(|member| **member != name) {
        return Err(Error::Contradiction {
            problem: format!("--initial-cluster names `{other}`, but --name is `{name}`"),
            hint: "a store has one member: leave --initial-cluster out, or name this member alone",
        });
    }
    Ok(())
}

fn limits(settings: &Settings, warnings: &mut Vec<String>) -> Result<Limits, Error> {
    let request_bytes_max = settings.bounded("max-request-bytes", "a number of bytes")?;
    if request_bytes_max > REQUEST_BYTES_RECOMMENDED_MAX {
        warnings.push(format!("--max-request-bytes is large: {request_bytes_max}"));
    }
    Ok(Limits {
        txn_ops_max: settings.bounded("max-txn-ops", "a number of operations")?,
        request_bytes_max,
        quota_bytes: match settings.signed("quota-backend-bytes")? {
            0 => QUOTA_BYTES_DEFAULT,
            quota => u64::try_from(quota).unwrap_or(0),
        },
        concurrent_streams_max: settings.bounded("max-concurrent-streams", "a 32-bit number")?,
    })
}

/// Zero means the default, as in etcd.
fn watch_progress_interval(settings: &Settings) -> Result<Duration, Error> {
    match settings.duration("watch-progress-notify-interval")? {
        Duration::ZERO => Ok(WATCH_PROGRESS_INTERVAL_DEFAULT),
        interval => Ok(interval),
    }
}

fn bcrypt_cost(settings: &Settings, warnings: &mut Vec<String>) -> Result<u32, Error> {
    let cost = settings.unsigned("bcrypt-cost")?;
    match u32::try_from(cost) {
        Ok(valid) if BCRYPT_COSTS.contains(&cost) => Ok(valid),
        _ => {
            warnings.push(format!("--bcrypt-cost {cost} is invalid; using {BCRYPT_COST_DEFAULT}"));
            Ok(BCRYPT_COST_DEFAULT)
        }
    }
}

/// All places to listen, with their certificates.
struct Listening {
    clients: Vec<Listener>,
    http: Vec<Listener>,
    metrics: Vec<Listener>,
    self_signed: Option<SelfSigned>,
}

// === impl Listening ===

impl Listening {
    fn of(settings: &Settings, data_dir: &Path, warnings: &mut Vec<String>) -> Result<Self, Error> {
        let clients = urls::to_bind(settings, "listen-client-urls")?;
        let http = urls::to_bind(settings, "listen-client-http-urls")?;
        let metrics = urls::to_bind(settings, "listen-metrics-urls")?;
        let client_urls: Vec<Url> =
            clients.iter().chain(&http).map(|(url, _)| url.clone()).collect();
        let client_tls = ClientTls::of(settings, data_dir, &client_urls)?;
        let mut listeners = |places: Vec<(Url, Address)>| {
            places
                .into_iter()
                .map(|(url, address)| listener(&url, address, client_tls.tls.as_ref(), warnings))
                .collect::<Result<Vec<_>, Error>>()
        };
        let listening = Self {
            clients: listeners(clients)?,
            http: listeners(http)?,
            metrics: listeners(metrics)?,
            self_signed: client_tls.self_signed,
        };
        warnings.extend(client_tls.warnings);
        Ok(listening)
    }
}

/// The scheme decides whether certificates are used, as in etcd.
fn listener(
    url: &Url,
    address: Address,
    tls: Option<&Tls>,
    warnings: &mut Vec<String>,
) -> Result<Listener, Error> {
    match (url.is_secure(), tls) {
        (true, None) => Err(Error::Contradiction {
            problem: format!("{url} needs a certificate"),
            hint: "give --cert-file and --key-file, or --auto-tls",
        }),
        (true, Some(tls)) => Ok(Listener { address, tls: Some(tls.clone()) }),
        (false, tls) => {
            if tls.is_some() {
                warnings.push(format!("{url} is served in plain text: certificates need https"));
            }
            Ok(Listener { address, tls: None })
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
