//! The code generated from `proto/`, and the only exceptions from the lints that it needs.

#![expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    reason = "prost, tonic and pbjson write code without regard to our lints"
)]

#[expect(unreachable_pub, reason = "generated items are always `pub`")]
pub(crate) mod mvccpb {
    //! Key-values and events as plain structs, for their JSON form only.
    include!(concat!(env!("OUT_DIR"), "/mvccpb.rs"));
    include!(concat!(env!("OUT_DIR"), "/mvccpb.serde.rs"));
}

pub mod authpb {
    //! Users, roles and permissions.
    include!(concat!(env!("OUT_DIR"), "/authpb.rs"));
    include!(concat!(env!("OUT_DIR"), "/authpb.serde.rs"));
}

pub mod etcdserverpb {
    //! The KV, Watch, Lease, Cluster, Maintenance and Auth services.
    include!(concat!(env!("OUT_DIR"), "/etcdserverpb.rs"));
    include!(concat!(env!("OUT_DIR"), "/etcdserverpb.serde.rs"));
}

pub mod v3lockpb {
    //! The Lock service.
    include!(concat!(env!("OUT_DIR"), "/v3lockpb.rs"));
    include!(concat!(env!("OUT_DIR"), "/v3lockpb.serde.rs"));
}

pub mod v3electionpb {
    //! The Election service.
    include!(concat!(env!("OUT_DIR"), "/v3electionpb.rs"));
    include!(concat!(env!("OUT_DIR"), "/v3electionpb.serde.rs"));
}

pub mod health {
    //! The Health service of `grpc.health.v1`.
    include!(concat!(env!("OUT_DIR"), "/grpc.health.v1.rs"));
}
