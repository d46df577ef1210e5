use expect_test::{Expect, expect};

use super::*;
use crate::{
    cli::etcd_args::{self, Request},
    config::layers::Layers,
};

/// The settings a command line gives, without environment or file.
pub(crate) fn settings(line: &str) -> Settings {
    layered(line, &[], "").unwrap().settings
}

fn layered(line: &str, environment: &[(&str, &str)], file: &str) -> Result<Layered, Error> {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let Request::Serve(flags) = etcd_args::parse(&arguments)? else {
        panic!("{line} does not ask to serve");
    };
    let environment =
        environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let read_file = |path: &Path| match path.to_str() {
        Some("etcd.yaml") => Ok(file.to_owned()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    Layers { flags, environment, read_file: &read_file }.resolve()
}

fn render(serve: &Serve) -> String {
    let options = &serve.options;
    let mut text = format!("{} in {}\n", options.name, serve.journal);
    for listener in &options.client_listeners {
        let tls = if listener.tls.is_some() { " with TLS" } else { "" };
        text += &format!("clients at {:?}{tls}\n", listener.address);
    }
    for warning in &serve.warnings {
        text += &format!("warning: {warning}\n");
    }
    text
}

fn check_layers(line: &str, environment: &[(&str, &str)], file: &str, expected: Expect) {
    let actual = match layered(line, environment, file).and_then(Serve::of) {
        Ok(serve) => render(&serve),
        Err(error) => format!("error: {error}\nhint: {}\n", error.hint()),
    };
    expected.assert_eq(&actual);
}

fn check(line: &str, expected: Expect) {
    check_layers(line, &[], "", expected);
}

#[test]
fn nothing_given_means_etcds_defaults() {
    check(
        "",
        expect![[r#"
            default in default.etcd
            clients at Tcp(127.0.0.1:2379)
        "#]],
    );
}

#[test]
fn flag_beats_variable_beats_default() {
    check_layers(
        "",
        &[("ETCD_NAME", "env")],
        "",
        expect![[r#"
            env in env.etcd
            clients at Tcp(127.0.0.1:2379)
        "#]],
    );
    check_layers(
        "--name flag",
        &[("ETCD_NAME", "env")],
        "",
        expect![[r#"
            flag in flag.etcd
            clients at Tcp(127.0.0.1:2379)
            warning: ETCD_NAME is overridden by --name
        "#]],
    );
    check_layers(
        "",
        &[("ETCD_NAME", ""), ("NAME", "x"), ("ETCDCTL_API", "3")],
        "",
        expect![[r#"
            default in default.etcd
            clients at Tcp(127.0.0.1:2379)
        "#]],
    );
    check_layers(
        "",
        &[("ETCD_PORT", "tcp://10.0.0.1")],
        "",
        expect![[r#"
            default in default.etcd
            clients at Tcp(127.0.0.1:2379)
            warning: unknown environment variable ETCD_PORT
        "#]],
    );
    check_layers(
        "",
        &[("ETCD_MAX_TXN_OPS", "many")],
        "",
        expect![[r#"
            error: ETCD_MAX_TXN_OPS: invalid value `many`
            hint: give a whole number
        "#]],
    );
}

#[test]
fn a_file_stands_alone() {
    let environment = [("ETCD_DATA_DIR", "env")];
    check_layers(
        "--config-file etcd.yaml --name flag",
        &environment,
        "name: file\n",
        expect![[r#"
            file in file.etcd
            clients at Tcp(127.0.0.1:2379)
            warning: ignored because of --config-file: --name, ETCD_DATA_DIR
        "#]],
    );
    check_layers(
        "",
        &[("ETCD_CONFIG_FILE", "etcd.yaml")],
        "name: file\n",
        expect![[r#"
            file in file.etcd
            clients at Tcp(127.0.0.1:2379)
        "#]],
    );
    check_layers(
        "--config-file etcd.yaml",
        &[],
        "listen-client-urls: http://127.0.0.1:4379\n",
        expect![[r#"
            default in default.etcd
            clients at Tcp(127.0.0.1:4379)
        "#]],
    );
    check_layers(
        "--config-file missing.yaml",
        &[],
        "",
        expect![[r#"
            error: cannot read configuration file missing.yaml
            hint: check the path after --config-file, and who may read it
        "#]],
    );
}

#[test]
fn listening_needs_advertising() {
    check(
        "--listen-client-urls http://0.0.0.0:2379",
        expect![[r#"
            error: --listen-client-urls is set, so --advertise-client-urls must be too
            hint: advertise the URLs under which clients reach this machine
        "#]],
    );
    check(
        "--listen-client-urls http://0.0.0.0:2379,unix:///tmp/w.sock --advertise-client-urls http://10.0.0.1:2379",
        expect![[r#"
            default in default.etcd
            clients at Tcp(0.0.0.0:2379)
            clients at Unix("/tmp/w.sock")
        "#]],
    );
    check(
        "--advertise-client-urls http://:2379",
        expect![[r#"
            error: --advertise-client-urls: `http://:2379`: the host is missing
            hint: write `http://127.0.0.1:2379` or `unix:///run/windlass.sock`
        "#]],
    );
    check(
        "--listen-client-urls localhost:2379 --advertise-client-urls http://a:1",
        expect![[r#"
            error: --listen-client-urls: `localhost:2379`: the scheme is missing
            hint: write `http://127.0.0.1:2379` or `unix:///run/windlass.sock`
        "#]],
    );
}

#[test]
fn one_member_is_served() {
    check(
        "--name a --initial-cluster a=http://localhost:2380",
        expect![[r#"
            a in a.etcd
            clients at Tcp(127.0.0.1:2379)
        "#]],
    );
    check(
        "--name a --initial-cluster a=http://h1:2380,b=http://h2:2380",
        expect![[r#"
            error: --initial-cluster names `b`, but --name is `a`
            hint: a store has one member: leave --initial-cluster out, or name this member alone
        "#]],
    );
    // Members of a shared journal find each other there.
    check(
        "--journal ignite://h:1 --name a --initial-cluster a=http://h1:2380,b=http://h2:2380",
        expect![[r#"
            a in ignite://h:1
            clients at Tcp(127.0.0.1:2379)
        "#]],
    );
    check(
        "--discovery-srv example.com",
        expect![[r#"
            error: --discovery-srv cannot be `example.com`: cluster discovery is not served
            hint: leave the setting out
        "#]],
    );
}

#[test]
fn https_needs_certificates() {
    let https =
        "--listen-client-urls https://127.0.0.1:2379 --advertise-client-urls https://a:2379";
    check(
        https,
        expect![[r#"
            error: https://127.0.0.1:2379 needs a certificate
            hint: give --cert-file and --key-file, or --auto-tls
        "#]],
    );
    check(
        &format!("{https} --cert-file a.crt"),
        expect![[r#"
            error: --cert-file and --key-file must be given together
            hint: give both, or neither
        "#]],
    );
    check(
        &format!("{https} --cert-file a.crt --key-file a.key"),
        expect![[r#"
            default in default.etcd
            clients at Tcp(127.0.0.1:2379) with TLS
        "#]],
    );
    check(
        &format!("{https} --auto-tls"),
        expect![[r#"
            default in default.etcd
            clients at Tcp(127.0.0.1:2379) with TLS
        "#]],
    );
    check(
        &format!("{https} --auto-tls --client-cert-auth"),
        expect![[r#"
            error: client certificates cannot be checked without --trusted-ca-file
            hint: name the PEM file of the authority that signs client certificates
        "#]],
    );
    check(
        "--cert-file a.crt --key-file a.key",
        expect![[r#"
            default in default.etcd
            clients at Tcp(127.0.0.1:2379)
            warning: http://localhost:2379 is served in plain text: certificates need https
        "#]],
    );
}

#[test]
fn what_has_no_meaning_here_is_warned_about() {
    check(
        "--snapshot-count 5000 --unsafe-no-fsync --v=9",
        expect![[r#"
            default in default.etcd
            clients at Tcp(127.0.0.1:2379)
            warning: --snapshot-count has no effect: the journal trims itself; there are no Raft snapshots or WAL files
            warning: --unsafe-no-fsync has no effect: every write is synced
            warning: --v has no effect: etcd itself has long ignored it
        "#]],
    );
    check(
        "--snapshot-count lots",
        expect![[r#"
            error: --snapshot-count: invalid value `lots`
            hint: give a whole number
        "#]],
    );
}

#[test]
fn what_would_silently_be_missing_is_refused() {
    check(
        "--discovery-srv=",
        expect![[r#"
            default in default.etcd
            clients at Tcp(127.0.0.1:2379)
        "#]],
    );
    check(
        "--discovery-srv example.com",
        expect![[r#"
            error: --discovery-srv cannot be `example.com`: cluster discovery is not served
            hint: leave the setting out
        "#]],
    );
}

#[test]
fn clients_can_be_told_apart_only_with_tls() {
    check(
        "--client-crl-file revoked.pem --client-cert-allowed-cn a",
        expect![[r#"
            default in default.etcd
            clients at Tcp(127.0.0.1:2379)
            warning: --client-crl-file has no effect without --cert-file and --key-file
            warning: --client-cert-allowed-cn has no effect without --cert-file and --key-file
        "#]],
    );
    check(
        "--auto-tls --client-crl-file revoked.pem",
        expect![[r#"
            error: client certificates cannot be checked without --trusted-ca-file
            hint: name the PEM file of the authority that signs client certificates
        "#]],
    );
    check(
        "--auto-tls --trusted-ca-file ca --client-cert-allowed-cn a --client-cert-allowed-hostname b",
        expect![[r#"
            error: --client-cert-allowed-cn and --client-cert-allowed-hostname exclude each other
            hint: admit clients by common names or by host names
        "#]],
    );
}

#[test]
fn the_json_gateway_is_served_unless_told_otherwise() {
    let serves = |line| Serve::of(layered(line, &[], "").unwrap()).unwrap().options.serves_json;
    assert!(serves(""));
    assert!(serves("--enable-grpc-gateway"));
    assert!(!serves("--enable-grpc-gateway=false"));
}

#[test]
fn limits_follow_etcd() {
    let quota =
        |line| Serve::of(layered(line, &[], "").unwrap()).unwrap().options.limits.quota_bytes;
    assert_eq!(quota(""), QUOTA_BYTES_DEFAULT);
    assert_eq!(quota("--quota-backend-bytes 0"), QUOTA_BYTES_DEFAULT);
    assert_eq!(quota("--quota-backend-bytes -1"), 0);
    assert_eq!(quota("--quota-backend-bytes 8589934592"), 8589934592);
    check(
        "--max-concurrent-streams 4294967296",
        expect![[r#"
            error: --max-concurrent-streams: invalid value `4294967296`
            hint: give a 32-bit number
        "#]],
    );
    check(
        "--bcrypt-cost 99",
        expect![[r#"
            default in default.etcd
            clients at Tcp(127.0.0.1:2379)
            warning: --bcrypt-cost 99 is invalid; using 10
        "#]],
    );
}
