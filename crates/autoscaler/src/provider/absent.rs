//! No provider at all: no groups, and nothing that could be changed. For those who only look.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use registry::{GroupId, Instance};

use super::{Error, GroupOptions, ListedGroup, Method, NodeRef, Provider, Template};

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Absent;

impl Provider for Absent {
    async fn refresh(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn groups(&self) -> Result<Vec<ListedGroup>, Error> {
        Ok(Vec::new())
    }

    async fn group_of(&self, _node: &NodeRef) -> Result<Option<GroupId>, Error> {
        Ok(None)
    }

    async fn target(&self, _group: &GroupId) -> Result<i64, Error> {
        Err(Error::Unsupported { method: Method::NodeGroupTargetSize })
    }

    async fn instances(&self, _group: &GroupId) -> Result<Vec<Instance>, Error> {
        Err(Error::Unsupported { method: Method::NodeGroupNodes })
    }

    async fn template(&self, _group: &GroupId) -> Result<Option<Template>, Error> {
        Ok(None)
    }

    async fn options(
        &self,
        _group: &GroupId,
        defaults: &GroupOptions,
    ) -> Result<GroupOptions, Error> {
        Ok(*defaults)
    }

    async fn gpu_label(&self) -> Result<String, Error> {
        Ok(String::new())
    }

    async fn gpu_types(&self) -> Result<BTreeSet<String>, Error> {
        Ok(BTreeSet::new())
    }

    async fn increase(&self, _group: &GroupId, _by: NonZeroU32) -> Result<(), Error> {
        Err(Error::Unsupported { method: Method::NodeGroupIncreaseSize })
    }

    async fn decrease(&self, _group: &GroupId, _by: NonZeroU32) -> Result<(), Error> {
        Err(Error::Unsupported { method: Method::NodeGroupDecreaseTargetSize })
    }

    async fn delete(&self, _group: &GroupId, _nodes: &[NodeRef]) -> Result<(), Error> {
        Err(Error::Unsupported { method: Method::NodeGroupDeleteNodes })
    }

    async fn cleanup(&self) -> Result<(), Error> {
        Ok(())
    }
}
