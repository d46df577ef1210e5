//! Generates the wire types, their gRPC stubs and their JSON form from `proto/`.
//! Needs no `protoc`: the files are compiled by protox.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

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
    generate_plain_key_values()?;
    open_enums()
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

/// Makes the JSON form read and write enums through `open_enum`: pbjson knows only those that refuse
/// what they do not know. The tests of the JSON form hold that its code still looks as expected.
fn open_enums() -> Result {
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no folder for output")?);
    for package in JSON_PACKAGES.iter().chain(&[".mvccpb"]) {
        let path = folder.join(format!("{}.serde.rs", package.trim_start_matches('.')));
        rewrite_lines(&path, with_open_enum)?;
    }
    Ok(())
}

fn rewrite_lines(path: &Path, rewrite: fn(&str) -> Option<String>) -> Result {
    let text = fs::read_to_string(path)?;
    let lines = text.lines().map(|line| rewrite(line).unwrap_or_else(|| line.to_owned()) + "\n");
    Ok(fs::write(path, lines.collect::<String>())?)
}

/// The line with an open enum, if it is one of those that read or write an enum.
fn with_open_enum(line: &str) -> Option<String> {
    const OPEN: &str = "crate::open_enum::Open";
    if let Some((before, name, after)) =
        around(line, "next_value::<Vec<", ">>()?.into_iter().map(|x| x as i32)")
    {
        let read = format!("next_value::<Vec<{OPEN}<{name}>>>()?");
        return Some(format!("{before}{read}.into_iter().filter_map(|x| x.number){after}"));
    }
    if let Some((before, name, after)) = around(line, "next_value::<", ">()? as i32") {
        let read = format!("next_value::<{OPEN}<{name}>>()?.number.unwrap_or_default()");
        return Some(format!("{before}{read}{after}"));
    }
    if let Some((before, name, field)) = around(line, "let v = ", "::try_from(self.") {
        let field = field.strip_suffix(')')?;
        return Some(format!("{before}let v = {OPEN}::<{name}>::from(self.{field});"));
    }
    let converted = line.trim_start().strip_suffix("::try_from(v)");
    if let Some(name) = converted.filter(|name| *name != "i32") {
        return Some(format!("Ok::<_, S::Error>({OPEN}::<{name}>::from(v))"));
    }
    // The second half of the two lines above.
    let refusal = ".map_err(|_| serde::ser::Error::custom(format!(\"Invalid variant {}\",";
    line.trim_start().starts_with(refusal).then(String::new)
}

/// What stands before, between and behind two pieces of a line.
fn around<'a>(line: &'a str, start: &str, end: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (before, rest) = line.split_once(start)?;
    let (between, after) = rest.split_once(end)?;
    Some((before, between, after))
}
