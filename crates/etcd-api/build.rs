//! Generates the wire types, their gRPC stubs and their JSON form from `proto/`.
//! Needs no `protoc`: the files are compiled by protox.

use std::error::Error;

use prost::Message;

type Result = std::result::Result<(), Box<dyn Error>>;

const PROTO_ROOT: &str = "proto";

const KEY_VALUES: &str = "mvccpb/kv.proto";

const SERVICES: [&str; 5] = [
    "authpb/auth.proto",
    "etcdserverpb/rpc.proto",
    "v3lockpb/v3lock.proto",
    "v3electionpb/v3election.proto",
    "grpc/health/v1/health.proto",
];

/// What the JSON gateway serves.
const JSON_PACKAGES: [&str; 4] = [".authpb", ".etcdserverpb", ".v3lockpb", ".v3electionpb"];

fn main() -> Result {
    println!("cargo::rerun-if-changed={PROTO_ROOT}");
    generate_services()?;
    generate_plain_key_values()
}

/// Everything but `mvccpb`, whose messages are the hand-written ones.
fn generate_services() -> Result {
    let hand_written = (".mvccpb", "crate::mvccpb");
    let descriptors = protox::compile(SERVICES, [PROTO_ROOT])?;
    json(&descriptors.encode_to_vec())?
        .extern_path(hand_written.0, hand_written.1)
        .build(&JSON_PACKAGES)?;
    tonic_prost_build::configure()
        .bytes(".")
        .extern_path(hand_written.0, hand_written.1)
        .compile_fds(descriptors)?;
    Ok(())
}

/// `mvccpb` as prost would have it, from which the hand-written types take their JSON form.
fn generate_plain_key_values() -> Result {
    let descriptors = protox::compile([KEY_VALUES], [PROTO_ROOT])?;
    json(&descriptors.encode_to_vec())?.build(&[".mvccpb"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}

/// The settings of etcd's gateway: proto field names, and what is not known is skipped.
fn json(descriptors: &[u8]) -> std::io::Result<pbjson_build::Builder> {
    let mut builder = pbjson_build::Builder::new();
    builder.register_descriptors(descriptors)?.preserve_proto_field_names().ignore_unknown_fields();
    Ok(builder)
}
