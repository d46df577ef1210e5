//! A CA, what it signed, and clients that show it.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use etcd_api::etcdserverpb::RangeRequest;
use etcd_api::etcdserverpb::kv_client::KvClient;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationList,
    CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod, KeyPair, RevokedCertParams,
    SerialNumber, date_time_ymd,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ALL_VERSIONS, ClientConfig, RootCertStore, SupportedProtocolVersion};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::client::Connections;
use super::server::{Server, options, tcp};
use crate::options::Tls;

/// A CA and what it signed, in a folder.
pub(super) struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// What a certificate says.
pub(super) struct Subject<'a> {
    pub(super) common_name: &'a str,
    pub(super) hosts: &'a [&'a str],
    pub(super) serial: u64,
}

/// How a client connects.
pub(super) struct Client {
    pub(super) roots: RootCertStore,
    /// Without its ending.
    pub(super) certificate: Option<PathBuf>,
    pub(super) protocol: &'static str,
    pub(super) versions: Vec<&'static SupportedProtocolVersion>,
}

// === impl Authority ===

impl Authority {
    pub(super) fn new() -> Self {
        Self::named("test CA")
    }

    pub(super) fn named(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes `<name>.pem` and `<name>.key`.
    pub(super) fn sign(&self, name: &str, common_name: &str) {
        self.sign_for(name, &Subject { common_name, hosts: &["localhost"], serial: 1 });
    }

    pub(super) fn sign_for(&self, name: &str, subject: &Subject<'_>) {
        let hosts: Vec<String> = subject.hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, subject.common_name);
        params.serial_number = Some(SerialNumber::from(subject.serial));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// A list that revokes these serial numbers.
    pub(super) fn revoke(&self, serials: &[u64]) -> CertificateRevocationList {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2026, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2026, 1, 1),
            next_update: date_time_ymd(2026, 1, 2),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap()
    }

    pub(super) fn server(&self) -> Tls {
        self.sign("server", "server");
        Tls::new(self.path("server.pem"), self.path("server.key"))
    }

    pub(super) fn demanding_server(&self) -> Tls {
        let trusted_ca_file = Some(self.path("ca.pem"));
        Tls { trusted_ca_file, requires_client_cert: true, ..self.server() }
    }

    /// A client that trusts the CA, and shows a certificate if one is named.
    pub(super) fn client(&self, certificate: Option<&str>) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.path("ca.pem")).unwrap()).unwrap();
        Client { certificate: certificate.map(|name| self.path(name)), ..Client::trusting(roots) }
    }

    /// Connects, with a certificate if one is named.
    pub(super) async fn connect(
        &self,
        address: SocketAddr,
        certificate: Option<&str>,
        protocol: &'static str,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        Client { protocol, ..self.client(certificate) }.connect(address).await
    }
}

// === impl Client ===

impl Client {
    pub(super) fn trusting(roots: RootCertStore) -> Self {
        Self { roots, certificate: None, protocol: "h2", versions: ALL_VERSIONS.to_vec() }
    }

    pub(super) async fn connect(
        self,
        address: SocketAddr,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        shake_hands(&self.connector(), address).await
    }

    /// Connects as often as wanted, resuming sessions where the server lets it.
    pub(super) fn connector(self) -> TlsConnector {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(self.roots);
        let mut config = match self.certificate {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let chain =
                    vec![CertificateDer::from_pem_file(path.with_extension("pem")).unwrap()];
                let key = PrivateKeyDer::from_pem_file(path.with_extension("key")).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![self.protocol.as_bytes().to_vec()];
        TlsConnector::from(Arc::new(config))
    }
}

pub(super) async fn shake_hands(
    connector: &TlsConnector,
    address: SocketAddr,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    connector.connect(name, stream).await
}

pub(super) async fn start(tls: Tls) -> Server {
    Server::start(&options(vec![tcp(Some(tls))])).await
}

/// Whether the server takes the client. With TLS 1.3 it says so only after the client is done.
pub(super) async fn is_accepted(stream: std::io::Result<TlsStream<TcpStream>>) -> bool {
    let Ok(stream) = stream else { return false };
    let mut connections = Connections::default();
    let mut kv = KvClient::new(connections.open(stream).await);
    kv.range(RangeRequest { key: "a".into(), ..Default::default() }).await.is_ok()
}
