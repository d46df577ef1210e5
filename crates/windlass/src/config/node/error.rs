//! What can be wrong with a node's configuration, and the one hint that ends it on the screen.

use std::{io, net::SocketAddr, path::PathBuf};

use tasks::{core::lease::TtlError, service::BoundsError};

use crate::report::{Exit, Failure};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot read configuration file {}", path.display())]
    ReadFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}:{line}: unknown key `{key}`", path.display())]
    UnknownKey { path: PathBuf, line: usize, key: String, suggestion: Option<&'static str> },
    #[error("{}:{line}: {message}", path.display())]
    ParseFile { path: PathBuf, line: usize, message: String },
    #[error("{}: `{key}` is `{value}`, which means nothing", path.display())]
    BadValue { path: PathBuf, key: &'static str, value: String, expected: String },
    #[error("--cacert, --cert and --key must be given together")]
    HalfIdentity,
    #[error("--{flag} {address} is reached from other machines and needs certificates")]
    NeedsTls { flag: &'static str, address: SocketAddr },
    #[error("--{flag} {address} would be served without certificates")]
    Unencrypted { flag: &'static str, address: SocketAddr },
    #[error("--insecure cannot serve --{flag} {address}, which is reached from other machines")]
    InsecurePublic { flag: &'static str, address: SocketAddr },
    #[error("--store {endpoint} is not an endpoint")]
    StoreEndpoint {
        endpoint: String,
        #[source]
        source: tonic::codegen::http::uri::InvalidUri,
    },
    #[error("--store {endpoint} is on another machine and would be spoken to unencrypted")]
    StoreUnencrypted { endpoint: String },
    #[error("--store {endpoint} needs certificates")]
    StoreNeedsCertificates { endpoint: String },
    #[error("--insecure and certificates exclude each other")]
    InsecureWithIdentity,
    #[error("--listen {address} is no address that others could connect to")]
    NoAdvertise { address: SocketAddr },
    #[error("no folder for sockets is known")]
    NoRuntimeDir,
    #[error("no folder for data is known")]
    NoDataDir,
    #[error("--runtime native needs root")]
    NotRoot,
    #[error(
        "without root, tasks would run as plain processes, and other machines could start them"
    )]
    PublicProcess,
    #[error("--rootfs: `{text}` is not a folder, nor a folder with a name")]
    Rootfs { text: String },
    #[error("--rootfs: there is no folder {}", path.display())]
    NoRootfs { path: PathBuf },
    #[error("--rootfs: plain processes see the files of this machine, and no others")]
    RootfsOfProcess,
    #[error("--rootfs: `{name}` is given twice")]
    RootfsTwice { name: String },
    #[error("--host-view: `{}` is not the path of a folder from the root on", path.display())]
    HostView { path: PathBuf },
    #[error("--lease-ttl")]
    LeaseTtl(#[source] TtlError),
    #[error("a bound is wrong")]
    Bounds(#[source] BoundsError),
}

// === impl Error ===

impl Error {
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::ReadFile { .. } => "check the path after --config, and who may read it".into(),
            Self::UnknownKey { suggestion: Some(key), .. } => format!("did you mean `{key}`?"),
            Self::BadValue { expected, .. } => expected.clone(),
            other => other.constant_hint().into(),
        }
    }

    fn constant_hint(&self) -> &'static str {
        match self {
            Self::HalfIdentity => "`windlass ca issue` makes the files",
            Self::NeedsTls { .. } => {
                "give --cacert, --cert and --key; `windlass ca` makes the files"
            }
            Self::Unencrypted { .. } => {
                "give --cacert, --cert and --key, or --insecure to let every user of this machine in"
            }
            Self::InsecurePublic { .. } => {
                "leave --insecure out, and give --cacert, --cert and --key"
            }
            Self::StoreEndpoint { .. } => "write `https://10.0.0.4:2379`",
            Self::StoreUnencrypted { .. } => {
                "write `https://`, and give --cacert, --cert and --key; `windlass ca` makes the files"
            }
            Self::StoreNeedsCertificates { .. } => {
                "give --cacert, --cert and --key; `windlass ca` makes the files"
            }
            Self::InsecureWithIdentity => "leave one of them out",
            Self::NoAdvertise { .. } => "name the node as others reach it with --advertise",
            Self::NoRuntimeDir => "name a socket with --socket, or set XDG_RUNTIME_DIR",
            Self::NoDataDir => "name a folder with --data-dir",
            Self::NotRoot => "use sudo, or --runtime process",
            Self::PublicProcess => "use sudo, or say --runtime process if that is what you want",
            Self::NoRootfs { .. } => "name a folder with the files that tasks are to see",
            Self::RootfsOfProcess => "leave it out, or use sudo for containers",
            Self::Rootfs { .. } | Self::RootfsTwice { .. } => {
                "write `--rootfs busybox=/srv/busybox`"
            }
            Self::HostView { .. } => "write `--host-view /usr,/etc`",
            _ => "`windlass node --help` lists every flag; the keys of a file have the same names",
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let hint = error.hint();
        Self::new(Exit::Usage, error).with_hint(hint)
    }
}
