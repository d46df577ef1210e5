//! The volumes that pods claim, as far as they decide where a pod can run.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as core;

use crate::placement::{VolumePlace, Zone, terms};
use crate::words::Words;

/// Set once a claim and its volume know of each other.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// What was read of claims and volumes.
#[derive(Clone, Debug, Default)]
pub struct Volumes {
    /// By namespace and name.
    claims: BTreeMap<(String, String), Claim>,
    volumes: BTreeMap<String, Volume>,
    /// Drivers of which a node takes only so many volumes.
    limited_drivers: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Claim {
    /// Absent: not bound yet.
    volume: Option<String>,
    is_for_one_pod: bool,
}

#[derive(Clone, Debug)]
struct Volume {
    labels: BTreeMap<String, String>,
    affinity: Option<core::NodeSelector>,
    driver: Option<String>,
}

// === impl Volumes ===

impl Volumes {
    pub fn add_claim(&mut self, claim: &core::PersistentVolumeClaim) {
        let annotations = claim.metadata.annotations.iter().flatten();
        let is_bound = annotations.into_iter().any(|(key, _)| key == BIND_COMPLETED);
        let spec = claim.spec.as_ref();
        let volume = spec.and_then(|spec| spec.volume_name.clone());
        let mut modes = spec.and_then(|spec| spec.access_modes.as_ref()).into_iter().flatten();
        let is_for_one_pod = modes.any(|mode| mode == "ReadWriteOncePod");
        let volume = volume.filter(|name| is_bound && !name.is_empty());
        let namespace = claim.metadata.namespace.clone().unwrap_or_default();
        let name = claim.metadata.name.clone().unwrap_or_default();
        self.claims.insert((namespace, name), Claim { volume, is_for_one_pod });
    }

    pub fn add_volume(&mut self, volume: &core::PersistentVolume) {
        let spec = volume.spec.as_ref();
        let affinity = spec.and_then(|spec| spec.node_affinity.as_ref());
        let driver = spec.and_then(|spec| spec.csi.as_ref()).map(|csi| csi.driver.clone());
        let kept = Volume {
            labels: volume.metadata.labels.clone().unwrap_or_default(),
            affinity: affinity.and_then(|affinity| affinity.required.clone()),
            driver,
        };
        self.volumes.insert(volume.metadata.name.clone().unwrap_or_default(), kept);
    }

    /// Names a driver for which some node publishes a limit.
    pub fn limit_driver(&mut self, driver: &str) {
        self.limited_drivers.insert(driver.to_owned());
    }

    /// Where a pod's volumes can be reached from, and what about them cannot be told.
    pub(crate) fn places(
        &self,
        words: &mut Words,
        pod: &core::Pod,
    ) -> (Vec<VolumePlace>, Vec<String>) {
        let mut places = Vec::new();
        let mut unsupported = Vec::new();
        let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
        for volume in volumes.into_iter().flatten() {
            match self.place(words, pod, volume) {
                Ok(place) => places.extend(place),
                Err(name) => unsupported.push(name),
            }
        }
        (places, unsupported)
    }

    fn place(
        &self,
        words: &mut Words,
        pod: &core::Pod,
        volume: &core::Volume,
    ) -> Result<Option<VolumePlace>, String> {
        let name = &volume.name;
        if is_exclusive_disk(volume) {
            return Err(format!("disk of volume {name}"));
        }
        if let Some(csi) = &volume.csi {
            self.check_driver(&csi.driver)?;
        }
        let Some(claim) = claim_name(pod, volume) else { return Ok(None) };
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let found = self.claims.get(&(namespace, claim.clone()));
        let found = found.ok_or_else(|| format!("missing volume claim {claim}"))?;
        if found.is_for_one_pod {
            return Err(format!("ReadWriteOncePod claim {claim}"));
        }
        let bound = found.volume.as_ref().ok_or_else(|| format!("unbound volume claim {claim}"))?;
        let bound = self.volumes.get(bound).ok_or_else(|| format!("missing volume {bound}"))?;
        if let Some(driver) = &bound.driver {
            self.check_driver(driver)?;
        }
        let affinity = bound.affinity.as_ref().map(|affinity| terms(words, affinity));
        Ok(Some(VolumePlace { affinity, zones: Zone::of(words, &bound.labels) }))
    }

    fn check_driver(&self, driver: &str) -> Result<(), String> {
        if self.limited_drivers.contains(driver) {
            return Err(format!("volume limit of driver {driver}"));
        }
        Ok(())
    }
}

fn claim_name(pod: &core::Pod, volume: &core::Volume) -> Option<String> {
    if let Some(claim) = &volume.persistent_volume_claim {
        return Some(claim.claim_name.clone());
    }
    let pod = pod.metadata.name.as_deref().unwrap_or_default();
    volume.ephemeral.as_ref().map(|_| format!("{pod}-{}", volume.name))
}

/// Disks written into the pod itself, of which the scheduler knows that a node mounts them once.
fn is_exclusive_disk(volume: &core::Volume) -> bool {
    volume.gce_persistent_disk.is_some()
        || volume.aws_elastic_block_store.is_some()
        || volume.iscsi.is_some()
        || volume.rbd.is_some()
}
