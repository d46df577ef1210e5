//! Ports of the node itself that pods take.

use k8s_openapi::api::core::v1::{Container, PodSpec};

use crate::requests::is_sidecar;
use crate::words::{Symbol, Words};

const EVERY_ADDRESS: &str = "0.0.0.0";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostPort {
    pub(crate) number: i32,
    protocol: Symbol,
    /// Absent: every address.
    address: Option<Symbol>,
}

// === impl HostPort ===

impl HostPort {
    pub(crate) fn of(words: &mut Words, spec: &PodSpec) -> Vec<Self> {
        let sidecars = spec.init_containers.iter().flatten().filter(|each| is_sidecar(each));
        let mut ports: Vec<_> = spec
            .containers
            .iter()
            .chain(sidecars)
            .flat_map(|each| Self::of_one(words, each))
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    fn of_one(words: &mut Words, container: &Container) -> Vec<Self> {
        let ports = container.ports.iter().flatten();
        let ports = ports.filter_map(|port| Some((port, port.host_port.filter(|port| *port > 0)?)));
        let port = ports.map(|(port, number)| {
            let address = port.host_ip.as_deref();
            let address = address.filter(|text| !text.is_empty() && *text != EVERY_ADDRESS);
            let protocol = port.protocol.as_deref().filter(|text| !text.is_empty());
            Self {
                number,
                protocol: words.intern(protocol.unwrap_or("TCP")),
                address: address.map(|text| words.intern(text)),
            }
        });
        port.collect()
    }

    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        let is_same_address = match (self.address, other.address) {
            (Some(own), Some(others)) => own == others,
            _ => true,
        };
        is_same_address && self.number == other.number && self.protocol == other.protocol
    }
}
