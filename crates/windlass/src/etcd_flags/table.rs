//! The table itself.

use super::{Effect, Flag, Section, Shape};
use Shape::{Anything, Choice, Duration, List, Signed, Switch, Text, Unsigned, Urls};

pub(crate) const ONE_MEMBER: &str = "a store of one member has no peers";
const NO_ELECTION: &str = "a store of one member holds no elections";
const NO_RAFT_LOG: &str = "the journal trims itself; there are no Raft snapshots or WAL files";
const NO_BBOLT: &str = "there is no bbolt backend";
const NO_DISCOVERY: &str = "cluster discovery is not served";
const NO_TRACING: &str = "distributed tracing is not exported";
const SLOW_IN_METRICS: &str = "slow requests show in the metric grpc_server_handling_seconds";
const LONG_GONE: &str = "etcd itself has long ignored it";

const fn honoured(
    name: &'static str,
    shape: Shape,
    default: &'static str,
    help: &'static str,
) -> Flag {
    Flag { name, shape, default, effect: Effect::Honoured, help }
}

const fn without_effect(
    name: &'static str,
    shape: Shape,
    default: &'static str,
    help: &'static str,
) -> Flag {
    Flag { name, shape, default, effect: Effect::None, help }
}

const fn shared(
    name: &'static str,
    shape: Shape,
    default: &'static str,
    help: &'static str,
) -> Flag {
    Flag { name, shape, default, effect: Effect::Shared, help }
}

const fn default_only(
    name: &'static str,
    shape: Shape,
    default: &'static str,
    help: &'static str,
) -> Flag {
    Flag { name, shape, default, effect: Effect::DefaultOnly, help }
}

pub(crate) const SECTIONS: &[Section] = &[
    Section { title: "Member", flags: MEMBER },
    Section { title: "Limits", flags: LIMITS },
    Section { title: "Cluster", flags: CLUSTER },
    Section { title: "Compaction", flags: COMPACTION },
    Section { title: "TLS", flags: TLS },
    Section { title: "Authentication", flags: AUTHENTICATION },
    Section { title: "Logs and metrics", flags: LOGS_AND_METRICS },
    Section { title: "Discovery", flags: DISCOVERY },
    Section { title: "Unsafe", flags: UNSAFE },
    Section { title: "Ignored", flags: IGNORED },
];

#[rustfmt::skip]
const MEMBER: &[Flag] = &[
    honoured("name", Text, "default", "name of this member, as the member list shows it"),
    honoured("data-dir", Text, "", "folder of the data; `<name>.etcd` if empty"),
    honoured("config-file", Text, "", "YAML file with these names; flags and ETCD_* variables are then ignored, as in etcd"),
    honoured("version", Switch, "false", "print the version and exit"),
    honoured("listen-client-urls", Urls, "http://localhost:2379", "where clients are served; http, https, unix or unixs"),
    honoured("listen-client-http-urls", Urls, "", "serve HTTP here only, and gRPC alone at --listen-client-urls"),
    honoured("enable-grpc-gateway", Switch, "true", "serve the API as JSON too, under /v3/"),
    honoured("cache-bytes", Unsigned, "268435456", "memory for key-values kept ready for reading (not an etcd flag)"),
    honoured("journal", Text, "", "where the data is, if not in --data-dir: ignite://HOST:PORT[,HOST:PORT…][?rest=HOST:PORT,…&schema=NAME&ca=FILE] (not an etcd flag)"),
    honoured("allow-unsafe", Switch, "false", "serve from a --journal whose settings could lose acknowledged writes (not an etcd flag)"),
    shared("listen-peer-urls", Urls, "http://localhost:2380", "where the other members of a shared --journal are served; beyond this machine only by https"),
    without_effect("wal-dir", Text, "", "there is no separate log: all data lies in --data-dir"),
    without_effect("snapshot-count", Unsigned, "10000", NO_RAFT_LOG),
    without_effect("snapshot-catchup-entries", Unsigned, "5000", NO_RAFT_LOG),
    without_effect("max-snapshots", Unsigned, "5", NO_RAFT_LOG),
    without_effect("max-wals", Unsigned, "5", NO_RAFT_LOG),
    without_effect("heartbeat-interval", Unsigned, "100", NO_ELECTION),
    without_effect("election-timeout", Unsigned, "1000", NO_ELECTION),
    without_effect("initial-election-tick-advance", Switch, "true", NO_ELECTION),
    without_effect("pre-vote", Switch, "true", NO_ELECTION),
    without_effect("raft-read-timeout", Duration, "5s", ONE_MEMBER),
    without_effect("raft-write-timeout", Duration, "5s", ONE_MEMBER),
    without_effect("memory-mlock", Switch, "false", "memory is not pinned"),
    without_effect("backend-bbolt-freelist-type", Choice(&["", "array", "map"]), "", NO_BBOLT),
    without_effect("backend-batch-interval", Duration, "0s", NO_BBOLT),
    without_effect("backend-batch-limit", Signed, "0", NO_BBOLT),
    without_effect("bootstrap-defrag-threshold-megabytes", Unsigned, "0", NO_BBOLT),
    without_effect("socket-reuse-port", Switch, "false", "a port in use is always refused"),
    without_effect("socket-reuse-address", Switch, "false", "it is always on"),
    without_effect("feature-gates", List, "", "etcd's feature gates speak of etcd's own parts"),
];

#[rustfmt::skip]
const LIMITS: &[Flag] = &[
    honoured("quota-backend-bytes", Signed, "0", "bytes of data above which writes are refused; 0 means 2 GiB, negative means no limit"),
    honoured("max-txn-ops", Unsigned, "128", "operations in one transaction"),
    honoured("max-request-bytes", Unsigned, "1572864", "bytes in one request"),
    honoured("max-concurrent-streams", Unsigned, "4294967295", "streams in one client connection"),
    honoured("watch-progress-notify-interval", Duration, "10m", "how often an idle watch that asked for it hears of progress"),
    without_effect("grpc-keepalive-min-time", Duration, "5s", "clients may ping as often as they like"),
    without_effect("grpc-keepalive-interval", Duration, "2h", "the system's TCP keep-alive finds dead connections"),
    without_effect("grpc-keepalive-timeout", Duration, "20s", "the system's TCP keep-alive finds dead connections"),
];

#[rustfmt::skip]
const CLUSTER: &[Flag] = &[
    honoured("advertise-client-urls", Urls, "http://localhost:2379", "what the member list tells clients to connect to"),
    honoured("initial-advertise-peer-urls", Urls, "http://localhost:2380", "what the member list names as peer address; the other members of a shared --journal connect there"),
    honoured("initial-cluster", Text, "", "`<name>=<peer url>` of this member; several are refused without a shared --journal, whose members find each other"),
    without_effect("initial-cluster-state", Choice(&["new", "existing"]), "new", ONE_MEMBER),
    without_effect("initial-cluster-token", Text, "etcd-cluster", ONE_MEMBER),
    without_effect("strict-reconfig-check", Switch, "true", ONE_MEMBER),
    without_effect("max-learners", Signed, "1", ONE_MEMBER),
    without_effect("corrupt-check-time", Duration, "0s", ONE_MEMBER),
    without_effect("compact-hash-check-time", Duration, "1m", ONE_MEMBER),
    without_effect("downgrade-check-time", Duration, "5s", ONE_MEMBER),
    without_effect("v2-deprecation", Choice(&["not-yet", "write-only", "write-only-skip-check", "write-only-drop-data", "gone"]), "write-only-drop-data", "there is no v2 store"),
];

#[rustfmt::skip]
const COMPACTION: &[Flag] = &[
    honoured("auto-compaction-mode", Choice(&["periodic", "revision"]), "periodic", "whether --auto-compaction-retention counts time or revisions"),
    honoured("auto-compaction-retention", Text, "0", "history to keep: a duration (`30m`; a bare number means hours) or a number of revisions; 0 keeps all"),
    without_effect("compaction-batch-limit", Signed, "0", "compaction never holds up writes"),
    without_effect("compaction-sleep-interval", Duration, "0s", "compaction never holds up writes"),
];

#[rustfmt::skip]
const TLS: &[Flag] = &[
    honoured("cert-file", Text, "", "PEM file of the certificate shown to clients"),
    honoured("key-file", Text, "", "PEM file of its key"),
    honoured("trusted-ca-file", Text, "", "PEM file of the authorities that sign client certificates; clients must then show one"),
    honoured("client-cert-auth", Switch, "false", "require a client certificate"),
    honoured("client-cert-allowed-cn", List, "", "common names of which a client certificate must carry one (in etcd only in the configuration file)"),
    honoured("client-cert-allowed-hostname", List, "", "host names or addresses of which a client certificate must be valid for one"),
    honoured("client-crl-file", Text, "", "DER or PEM file of revoked client certificates; read again when it changes"),
    honoured("auto-tls", Switch, "false", "make a self-signed certificate in the data folder"),
    honoured("self-signed-cert-validity", Unsigned, "1", "years a certificate made by --auto-tls is valid"),
    honoured("cipher-suites", List, "", "cipher suites of TLS 1.2 to offer; all sound ones if empty"),
    honoured("tls-min-version", Choice(&["", "TLS1.2", "TLS1.3"]), "TLS1.2", "lowest version of TLS to speak"),
    honoured("tls-max-version", Choice(&["", "TLS1.2", "TLS1.3"]), "", "highest version of TLS to speak; TLS1.3 if empty"),
    honoured("cors", List, "*", "origins whose pages a browser lets read answers"),
    honoured("host-whitelist", List, "*", "host names by which HTTP requests may address the store without TLS"),
    without_effect("client-cert-file", Text, "", "the store opens no connection to itself"),
    without_effect("client-key-file", Text, "", "the store opens no connection to itself"),
    shared("peer-cert-file", Text, "", "PEM file of the certificate that members of a shared --journal show each other"),
    shared("peer-key-file", Text, "", "PEM file of its key"),
    without_effect("peer-client-cert-auth", Switch, "false", ONE_MEMBER),
    without_effect("peer-client-cert-file", Text, "", ONE_MEMBER),
    without_effect("peer-client-key-file", Text, "", ONE_MEMBER),
    shared("peer-trusted-ca-file", Text, "", "PEM file of the authorities that sign members' certificates; members must show one"),
    without_effect("peer-cert-allowed-cn", List, "", ONE_MEMBER),
    without_effect("peer-cert-allowed-hostname", List, "", ONE_MEMBER),
    without_effect("peer-auto-tls", Switch, "false", ONE_MEMBER),
    without_effect("peer-crl-file", Text, "", ONE_MEMBER),
    without_effect("peer-skip-client-san-verification", Switch, "false", ONE_MEMBER),
];

#[rustfmt::skip]
const AUTHENTICATION: &[Flag] = &[
    honoured("auth-token", Text, "simple", "`simple`, or `jwt,sign-method=…,pub-key=…,priv-key=…,ttl=…`"),
    honoured("auth-token-ttl", Unsigned, "300", "seconds a simple token lives without use"),
    honoured("bcrypt-cost", Unsigned, "10", "work factor of password hashes, 4 to 31"),
];

#[rustfmt::skip]
const LOGS_AND_METRICS: &[Flag] = &[
    honoured("log-level", Choice(&["debug", "info", "warn", "error", "dpanic", "panic", "fatal"]), "info", "debug, info, warn or error"),
    honoured("log-format", Choice(&["json", "console"]), "json", "json or console"),
    honoured("log-outputs", List, "default", "`stderr`, `stdout` or files; `default` is stderr"),
    honoured("listen-metrics-urls", Urls, "", "serve /metrics and /health here too"),
    without_effect("logger", Choice(&["zap"]), "zap", "there is one logger, which writes as etcd's does"),
    without_effect("enable-log-rotation", Switch, "false", "leave rotation to logrotate or the journal"),
    without_effect("log-rotation-config-json", Text, r#"{"maxsize": 100, "maxage": 0, "maxbackups": 0, "localtime": false, "compress": false}"#, "leave rotation to logrotate or the journal"),
    without_effect("metrics", Choice(&["basic", "extensive"]), "basic", "all metrics are always exported"),
    without_effect("enable-pprof", Switch, "false", "there is no Go runtime to profile"),
    without_effect("warning-apply-duration", Duration, "100ms", SLOW_IN_METRICS),
    without_effect("warning-unary-request-duration", Duration, "300ms", SLOW_IN_METRICS),
    without_effect("enable-distributed-tracing", Switch, "false", NO_TRACING),
    without_effect("distributed-tracing-address", Text, "localhost:4317", NO_TRACING),
    without_effect("distributed-tracing-service-name", Text, "etcd", NO_TRACING),
    without_effect("distributed-tracing-instance-id", Text, "", NO_TRACING),
    without_effect("distributed-tracing-sampling-rate", Signed, "0", NO_TRACING),
];

#[rustfmt::skip]
const DISCOVERY: &[Flag] = &[
    default_only("discovery-token", Text, "", NO_DISCOVERY),
    default_only("discovery-endpoints", List, "", NO_DISCOVERY),
    default_only("discovery-srv", Text, "", NO_DISCOVERY),
    default_only("discovery-srv-name", Text, "", NO_DISCOVERY),
    without_effect("discovery-dial-timeout", Duration, "2s", NO_DISCOVERY),
    without_effect("discovery-request-timeout", Duration, "5s", NO_DISCOVERY),
    without_effect("discovery-keepalive-time", Duration, "2s", NO_DISCOVERY),
    without_effect("discovery-keepalive-timeout", Duration, "6s", NO_DISCOVERY),
    without_effect("discovery-insecure-transport", Switch, "true", NO_DISCOVERY),
    without_effect("discovery-insecure-skip-tls-verify", Switch, "false", NO_DISCOVERY),
    without_effect("discovery-cert", Text, "", NO_DISCOVERY),
    without_effect("discovery-key", Text, "", NO_DISCOVERY),
    without_effect("discovery-cacert", Text, "", NO_DISCOVERY),
    without_effect("discovery-user", Text, "", NO_DISCOVERY),
    without_effect("discovery-password", Text, "", NO_DISCOVERY),
    without_effect("discovery-fallback", Choice(&["exit"]), "exit", NO_DISCOVERY),
];

#[rustfmt::skip]
const UNSAFE: &[Flag] = &[
    without_effect("unsafe-no-fsync", Switch, "false", "every write is synced"),
    without_effect("force-new-cluster", Switch, "false", ONE_MEMBER),
];

#[rustfmt::skip]
const IGNORED: &[Flag] = &[
    without_effect("cluster-active-size", Anything, "", LONG_GONE),
    without_effect("cluster-remove-delay", Anything, "", LONG_GONE),
    without_effect("cluster-sync-interval", Anything, "", LONG_GONE),
    without_effect("config", Anything, "", LONG_GONE),
    without_effect("force", Anything, "", LONG_GONE),
    without_effect("max-result-buffer", Anything, "", LONG_GONE),
    without_effect("max-retry-attempts", Anything, "", LONG_GONE),
    without_effect("peer-heartbeat-interval", Anything, "", LONG_GONE),
    without_effect("peer-election-timeout", Anything, "", LONG_GONE),
    without_effect("retry-interval", Anything, "", LONG_GONE),
    without_effect("snapshot", Anything, "", LONG_GONE),
    without_effect("v", Anything, "", LONG_GONE),
    without_effect("vv", Anything, "", LONG_GONE),
];
