//! Calls by method, outcome and time, and bytes on the wire. The methods are known, so the labels are
//! bounded: a call of anything else is not counted.

use std::{collections::HashMap, fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::Counter},
};
use tokio::time::Instant;
use tonic::Code;

use Kind::{Bidi, ServerStream, Unary};

use super::latency::Latency;

/// How Go names the codes, by number.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

/// Everything that is served.
const SERVICES: &[(&str, &[(&str, Kind)])] = &[
    (
        "etcdserverpb.KV",
        &[
            ("Range", Unary),
            ("RangeStream", ServerStream),
            ("Put", Unary),
            ("DeleteRange", Unary),
            ("Txn", Unary),
            ("Compact", Unary),
        ],
    ),
    ("etcdserverpb.Watch", &[("Watch", Bidi)]),
    (
        "etcdserverpb.Lease",
        &[
            ("LeaseGrant", Unary),
            ("LeaseRevoke", Unary),
            ("LeaseKeepAlive", Bidi),
            ("LeaseTimeToLive", Unary),
            ("LeaseLeases", Unary),
        ],
    ),
    (
        "etcdserverpb.Cluster",
        &[
            ("MemberAdd", Unary),
            ("MemberRemove", Unary),
            ("MemberUpdate", Unary),
            ("MemberList", Unary),
            ("MemberPromote", Unary),
        ],
    ),
    (
        "etcdserverpb.Maintenance",
        &[
            ("Alarm", Unary),
            ("Status", Unary),
            ("Defragment", Unary),
            ("Hash", Unary),
            ("HashKV", Unary),
            ("Snapshot", ServerStream),
            ("MoveLeader", Unary),
            ("Downgrade", Unary),
        ],
    ),
    (
        "etcdserverpb.Auth",
        &[
            ("AuthEnable", Unary),
            ("AuthDisable", Unary),
            ("AuthStatus", Unary),
            ("Authenticate", Unary),
            ("UserAdd", Unary),
            ("UserGet", Unary),
            ("UserList", Unary),
            ("UserDelete", Unary),
            ("UserChangePassword", Unary),
            ("UserGrantRole", Unary),
            ("UserRevokeRole", Unary),
            ("RoleAdd", Unary),
            ("RoleGet", Unary),
            ("RoleList", Unary),
            ("RoleDelete", Unary),
            ("RoleGrantPermission", Unary),
            ("RoleRevokePermission", Unary),
        ],
    ),
    ("v3lockpb.Lock", &[("Lock", Unary), ("Unlock", Unary)]),
    (
        "v3electionpb.Election",
        &[
            ("Campaign", Unary),
            ("Proclaim", Unary),
            ("Leader", Unary),
            ("Observe", ServerStream),
            ("Resign", Unary),
        ],
    ),
    ("grpc.health.v1.Health", &[("Check", Unary), ("List", Unary), ("Watch", ServerStream)]),
];

/// Counts calls and bytes. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrpcMetrics {
    methods: Arc<Methods>,
    pub(crate) received_bytes: Counter,
    pub(crate) sent_bytes: Counter,
}

#[derive(Debug)]
struct Methods {
    all: Vec<Method>,
    by_path: HashMap<String, usize>,
}

#[derive(Debug)]
struct Method {
    service: &'static str,
    name: &'static str,
    kind: Kind,
    started: Counter,
    handled: [Counter; CODES.len()],
    took: Latency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unary,
    ServerStream,
    Bidi,
}

/// A call under way. One that is dropped without having ended was canceled by its caller.
pub(crate) struct Call {
    methods: Arc<Methods>,
    method: usize,
    started: Instant,
    is_ended: bool,
}

// === impl GrpcMetrics ===

impl GrpcMetrics {
    /// Counts the start of a call of `/<service>/<method>`.
    pub(crate) fn started(&self, path: &str) -> Option<Call> {
        let method = *self.methods.by_path.get(path)?;
        self.methods.all[method].started.inc();
        let started = Instant::now();
        Some(Call { methods: self.methods.clone(), method, started, is_ended: false })
    }

    fn calls(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Calls begun";
        let mut family =
            encoder.encode_descriptor("grpc_server_started", help, None, MetricType::Counter)?;
        for method in &self.methods.all {
            method.started.encode(family.encode_family(&method.labels())?)?;
        }
        let help = "Calls ended, by outcome";
        let mut family =
            encoder.encode_descriptor("grpc_server_handled", help, None, MetricType::Counter)?;
        for method in &self.methods.all {
            for (code, handled) in CODES.iter().zip(&method.handled) {
                let [name, service, kind] = method.labels();
                let labels = [("grpc_code", *code), name, service, kind];
                handled.encode(family.encode_family(&labels)?)?;
            }
        }
        let (name, help) = ("grpc_server_handling_seconds", "Time from a call's begin to its end");
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for method in &self.methods.all {
            method.took.encode(family.encode_family(&method.labels())?)?;
        }
        Ok(())
    }
}

impl Collector for GrpcMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.calls(&mut encoder)?;
        for (name, help, bytes) in [
            ("etcd_network_client_grpc_received_bytes", "Bytes from clients", &self.received_bytes),
            ("etcd_network_client_grpc_sent_bytes", "Bytes to clients", &self.sent_bytes),
        ] {
            bytes.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
        }
        Ok(())
    }
}

// === impl Methods ===

impl Default for Methods {
    fn default() -> Self {
        let named = SERVICES.iter().flat_map(|(service, methods)| {
            methods.iter().map(|(name, kind)| (*service, *name, *kind))
        });
        let all: Vec<Method> = named
            .map(|(service, name, kind)| Method {
                service,
                name,
                kind,
                started: Counter::default(),
                handled: Default::default(),
                took: Latency::default(),
            })
            .collect();
        let path = |method: &Method| format!("/{}/{}", method.service, method.name);
        let by_path = all.iter().enumerate().map(|(id, method)| (path(method), id)).collect();
        Self { all, by_path }
    }
}

// === impl Method ===

impl Method {
    fn labels(&self) -> [(&'static str, &'static str); 3] {
        let kind = match self.kind {
            Unary => "unary",
            ServerStream => "server_stream",
            Bidi => "bidi_stream",
        };
        [("grpc_method", self.name), ("grpc_service", self.service), ("grpc_type", kind)]
    }
}

// === impl Call ===

impl Call {
    /// Whether the outcome is known only when the answer's stream has ended.
    pub(crate) fn is_stream(&self) -> bool {
        self.methods.all[self.method].kind != Unary
    }

    pub(crate) fn ended(mut self, code: Code) {
        self.count(code);
    }

    fn count(&mut self, code: Code) {
        self.is_ended = true;
        let method = &self.methods.all[self.method];
        // Codes have the numbers of their places in the table.
        method.handled[code as usize].inc();
        method.took.observe(self.started.elapsed());
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_ended {
            self.count(Code::Cancelled);
        }
    }
}
