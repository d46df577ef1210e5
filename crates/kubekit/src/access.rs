//! Whether the API server lets us do what we have to. Asks beforehand, so that a missing right is
//! named at the start and not met in the middle of the work; never works around one.

use std::borrow::Cow;
use std::fmt;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::failure::Failure;

/// Questions under way at once.
const QUESTIONS_MAX: usize = 8;

/// One thing we have to be allowed to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub verb: &'static str,
    /// Empty for the core group.
    pub group: Cow<'static, str>,
    pub resource: Cow<'static, str>,
    /// Everywhere, if none is named.
    pub namespace: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot ask whether we may {need}")]
pub struct Error {
    pub need: Need,
    #[source]
    pub source: Failure,
}

/// Which of the needs are not granted, in their order.
pub async fn missing(client: &Client, needs: &[Need]) -> Result<Vec<Need>, Error> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let questions = needs.iter().cloned().map(|need| is_granted(reviews.clone(), need));
    let questions = stream::iter(questions.collect::<Vec<_>>());
    let answers: Vec<_> = questions.buffered(QUESTIONS_MAX).try_collect().await?;
    let refused = answers.into_iter().filter(|(_, is_granted)| !is_granted);
    Ok(refused.map(|(need, _)| need).collect())
}

async fn is_granted(
    reviews: Api<SelfSubjectAccessReview>,
    need: Need,
) -> Result<(Need, bool), Error> {
    match reviews.create(&PostParams::default(), &need.question()).await {
        Ok(review) => Ok((need, review.status.is_some_and(|status| status.allowed))),
        Err(error) => Err(Error { need, source: error.into() }),
    }
}

/// Names the missing rights in one line.
#[must_use]
pub fn describe(missing: &[Need]) -> String {
    let needs: Vec<_> = missing.iter().map(ToString::to_string).collect();
    format!("not allowed to {}", needs.join("; "))
}

// === impl Need ===

impl Need {
    /// One need per verb, throughout the cluster or in one namespace.
    pub fn each(
        verbs: &[&'static str],
        group: impl Into<Cow<'static, str>>,
        resource: impl Into<Cow<'static, str>>,
        namespace: Option<&str>,
    ) -> Vec<Self> {
        let (group, resource) = (group.into(), resource.into());
        let need = |verb| Self {
            verb,
            group: group.clone(),
            resource: resource.clone(),
            namespace: namespace.map(ToOwned::to_owned),
        };
        verbs.iter().copied().map(need).collect()
    }

    fn question(&self) -> SelfSubjectAccessReview {
        let attributes = ResourceAttributes {
            verb: Some(self.verb.to_owned()),
            group: Some(self.group.to_string()),
            resource: Some(self.resource.to_string()),
            namespace: self.namespace.clone(),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_named() {
        let mut needs = Need::each(&["get", "list"], "", "nodes", None);
        let namespace = Some("node-metadata-transactions");
        needs.extend(Need::each(&["create"], "coordination.k8s.io", "leases", namespace));
        assert_eq!(
            describe(&needs),
            "not allowed to get nodes; list nodes; \
             create leases.coordination.k8s.io in namespace node-metadata-transactions"
        );
    }
}
