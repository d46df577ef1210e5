//! Generates the messages and the gRPC stubs from `proto/`. Needs no `protoc`: protox compiles the
//! files.

use std::error::Error;

const PROTO_ROOT: &str = "proto";

const FILES: [&str; 2] = ["windlass/task/v1/task.proto", "windlass/task/v1/tasks.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO_ROOT}");
    let descriptors = protox::compile(FILES, [PROTO_ROOT])?;
    // Ordered maps, so that equal specs have equal bytes and therefore equal hashes.
    tonic_prost_build::configure()
        .bytes(".")
        .btree_map(".")
        .boxed(".windlass.task.v1.WatchResponse.event.changed")
        .compile_fds(descriptors)?;
    Ok(())
}
