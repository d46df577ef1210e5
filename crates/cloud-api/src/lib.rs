//! What the autoscaler and a provider of machines must agree on: the wire types of the external gRPC
//! provider protocol of Kubernetes' Cluster Autoscaler. There is no logic here and no connection.
//!
//! | module | owns |
//! |---|---|
//! | [`externalgrpc`] | the service `CloudProvider` and its messages |
//! | [`kubernetes`] | the part of a Node that a template needs |
//! | [`error_class`], [`fake_node`] | numbers and words that stand in no `.proto` file |
//!
//! The protocol has two generations. Up to 1.34.1 messages embedded Kubernetes' own types; from 1.35
//! they carry bytes and well-known types under new numbers, and 1.34.2 knows both. Here every message
//! has the fields of both, so that either can be written and read:
//!
//! ```
//! use cloud_api::externalgrpc::{LegacyDuration, NodeGroupAutoscalingOptions};
//! use cloud_api::well_known;
//! use prost::Message;
//!
//! let options = NodeGroupAutoscalingOptions {
//!     legacy_scale_down_unneeded: Some(LegacyDuration { nanos: 1 }),
//!     scale_down_unneeded: Some(well_known::Duration { seconds: 0, nanos: 1 }),
//!     ..Default::default()
//! };
//! assert_eq!(options.encode_to_vec(), [0x1a, 2, 0x08, 1, 0x42, 2, 0x10, 1]);
//! ```

mod generated;

pub use generated::{externalgrpc, kubernetes};
/// Times and time spans as protobuf has them.
pub use prost_types as well_known;

pub mod error_class {
    //! Why an instance could not be created, as a number.

    /// Stockout or quota: another group may do better.
    pub const OUT_OF_RESOURCES: i32 = 1;
    pub const OTHER: i32 = 99;
}

pub mod fake_node {
    //! How an instance without a Node is told from a Node, where the protocol knows only Nodes.

    /// The annotation that only such Nodes have.
    pub const REASON: &str = "k8s.io/cluster-autoscaler/fake-node-reason";
    /// It has not registered.
    pub const UNREGISTERED: &str = "unregistered";
    /// It could not be created.
    pub const CREATE_ERROR: &str = "create-error";
}

#[cfg(test)]
mod tests;
