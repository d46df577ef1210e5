//! The code generated from `proto/`, and the only exceptions from the lints that it needs.

#![expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    reason = "prost and tonic write code without regard to our lints"
)]

pub mod externalgrpc {
    //! The provider's service and its messages, both generations in one.
    include!(concat!(env!("OUT_DIR"), "/clusterautoscaler.cloudprovider.v1.externalgrpc.rs"));
}

pub mod kubernetes {
    //! What a template says of a Node.
    include!(concat!(env!("OUT_DIR"), "/kubernetes.rs"));
}
