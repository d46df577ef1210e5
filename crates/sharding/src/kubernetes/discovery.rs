//! Which resource is which kind, by the word of the API server.

use kube::Client;
use kube::core::discovery::ApiResource;
use kube::discovery::{self, Scope};
use kube::error::DiscoveryError;

use super::{Error, Meaning, Request, Verb};
use crate::core::object::GroupKind;
use crate::core::spec::GroupResource;

/// A resource that the server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub resource: GroupResource,
    pub kind: GroupKind,
    pub is_namespaced: bool,
    pub(crate) api: ApiResource,
}

/// Nothing if the server has no such resource, as before its definition is applied.
pub async fn discover(client: &Client, resource: &GroupResource) -> Result<Option<Served>, Error> {
    let about = resource.to_string();
    let request = Request::read(Verb::Discover, &about);
    let asked = async {
        match discovery::group(client, &resource.group).await {
            Err(kube::Error::Discovery(
                DiscoveryError::MissingApiGroup(_) | DiscoveryError::EmptyApiGroup(_),
            )) => Ok(None),
            group => group.map(Some),
        }
    };
    let group = match request.answer(asked).await {
        Ok(Some(group)) => group,
        Ok(None) => return Ok(None),
        // A version that went while it was asked about.
        Err(error) if error.meaning() == Meaning::Gone => return Ok(None),
        Err(error) => return Err(error),
    };
    // A resource may be served in another version than the one its group prefers.
    let mut all = group.recommended_resources();
    all.extend(group.resources_by_stability());
    let found = all.into_iter().find(|(api, _)| api.plural == resource.resource);
    Ok(found.map(|(api, capabilities)| Served {
        resource: resource.clone(),
        kind: GroupKind::new(&api.group, &api.kind),
        is_namespaced: capabilities.scope == Scope::Namespaced,
        api,
    }))
}

// === impl Served ===

impl Served {
    /// `apps/v1`, as Events and owner references write it.
    #[must_use]
    pub fn api_version(&self) -> &str {
        &self.api.api_version
    }
}
