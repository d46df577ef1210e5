//! Generates the wire types and their gRPC stubs from `proto/`. Needs no `protoc`: the files are
//! compiled by protox.

use std::error::Error;

const PROTO_ROOT: &str = "proto";

const FILES: [&str; 2] = ["externalgrpc/provider.proto", "kubernetes/node.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO_ROOT}");
    let descriptors = protox::compile(FILES, [PROTO_ROOT])?;
    // Ordered maps: equal messages are equal bytes.
    tonic_prost_build::configure().bytes(".").btree_map(".").compile_fds(descriptors)?;
    Ok(())
}
