//! Tells in a metric how long the node's certificate is still good, so that it is renewed in time.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::time::MissedTickBehavior;
use x509_parser::parse_x509_certificate;

use crate::clock::Clock;
use crate::core::time::until;
use crate::metrics::Metrics;

/// Certificates are renewed every few weeks.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// Looks at the file again and again, for it may be replaced.
pub(super) async fn tell(certificate: &Path, clock: Clock, metrics: &Metrics) -> Infallible {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        match good_until(certificate) {
            Some(end) => metrics.set_cert_expiry(until(clock.wall(), end)),
            None => tracing::warn!(path = %certificate.display(), "no certificate can be read"),
        }
    }
}

fn good_until(certificate: &Path) -> Option<Timestamp> {
    let der = CertificateDer::from_pem_file(certificate).ok()?;
    let (_, parsed) = parse_x509_certificate(&der).ok()?;
    Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()
}
