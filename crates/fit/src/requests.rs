//! What a pod asks for as a whole: the most that its containers need at one time.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};

use crate::amounts::{self, CPU, HUGE_PAGES, MEMORY, Resources};
use crate::quantity::Error;

/// Whose numbers are used for a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// As it is written: for a pod that is to be placed.
    Spec,
    /// As it is written or as the kubelet grants it, whichever is more: for a pod that has a place and
    /// may be in the middle of a resize.
    Granted,
}

/// The requests of containers while they are resized.
struct Granted<'a> {
    statuses: HashMap<&'a str, &'a ContainerStatus>,
    /// The kubelet will never grant what is written.
    is_infeasible: bool,
}

/// max(containers + sidecars, each step of initialisation) or what the pod as a whole says, plus
/// overhead.
pub(crate) fn of(pod: &Pod, basis: Basis) -> Result<Resources, Error> {
    let Some(spec) = &pod.spec else { return Ok(Resources::new()) };
    let granted = (basis == Basis::Granted).then(|| Granted::new(pod));
    let request = |container: &Container, may_resize: bool| {
        let own = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let own = amounts::parse(own)?;
        match &granted {
            Some(granted) if may_resize => granted.request(container, own),
            _ => Ok(own),
        }
    };
    let mut total = Resources::new();
    for container in &spec.containers {
        amounts::add(&mut total, &request(container, true)?);
    }
    let mut sidecars = Resources::new();
    let mut steps = Resources::new();
    for container in spec.init_containers.iter().flatten() {
        let is_sidecar = is_sidecar(container);
        let mut step = request(container, is_sidecar)?;
        if is_sidecar {
            amounts::add(&mut total, &step);
        }
        // A step of initialisation runs beside the sidecars that were started before it.
        amounts::add(&mut step, &sidecars);
        if is_sidecar {
            sidecars.clone_from(&step);
        }
        amounts::raise(&mut steps, &step);
    }
    amounts::raise(&mut total, &steps);
    let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    total.extend(amounts::parse(whole)?.into_iter().filter(|(name, _)| is_of_whole_pod(name)));
    amounts::add(&mut total, &amounts::parse(spec.overhead.as_ref())?);
    Ok(total)
}

/// Runs beside the other containers for as long as the pod lives.
pub(crate) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn is_of_whole_pod(name: &str) -> bool {
    name == CPU || name == MEMORY || name.starts_with(HUGE_PAGES)
}

// === impl Granted ===

impl<'a> Granted<'a> {
    fn new(pod: &'a Pod) -> Self {
        let status = pod.status.as_ref();
        let init = status.and_then(|status| status.init_container_statuses.as_ref());
        let main = status.and_then(|status| status.container_statuses.as_ref());
        let statuses = main.into_iter().chain(init).flatten();
        let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let mut resizes = conditions.filter(|each| each.type_ == "PodResizePending");
        Self {
            statuses: statuses.map(|status| (status.name.as_str(), status)).collect(),
            is_infeasible: resizes.any(|each| each.reason.as_deref() == Some("Infeasible")),
        }
    }

    fn request(&self, container: &Container, own: Resources) -> Result<Resources, Error> {
        let status = self.statuses.get(container.name.as_str());
        let Some((status, actual)) =
            status.and_then(|status| Some((status, status.resources.as_ref()?)))
        else {
            return Ok(own);
        };
        let mut most = if self.is_infeasible { Resources::new() } else { own };
        amounts::raise(&mut most, &amounts::parse(actual.requests.as_ref())?);
        amounts::raise(&mut most, &amounts::parse(status.allocated_resources.as_ref())?);
        Ok(most)
    }
}
