//! Whom the administrator passes for.

use std::collections::HashMap;

use kube::config::AuthInfo;

/// What a token that was bound to a pod proves.
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";

/// A user, and the pod that its token was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persona {
    pub user: String,
    pub pod: Option<String>,
}

// === impl Persona ===

impl Persona {
    #[must_use]
    pub fn user(name: &str) -> Self {
        Self { user: name.to_owned(), pod: None }
    }

    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::user(&format!("system:serviceaccount:{namespace}:{name}"))
    }

    #[must_use]
    pub fn in_pod(self, name: &str) -> Self {
        Self { pod: Some(name.to_owned()), ..self }
    }

    pub(super) fn put_on(&self, info: &mut AuthInfo) {
        info.impersonate = Some(self.user.clone());
        info.impersonate_groups = Some(vec!["system:masters".to_owned()]);
        let pod = self.pod.iter().map(|pod| (POD_NAME.to_owned(), vec![pod.clone()]));
        info.impersonate_user_extra = Some(pod.collect::<HashMap<_, _>>());
    }
}
