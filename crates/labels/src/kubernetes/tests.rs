//! What the API server's answers mean. The texts are its own, taken from kube-apiserver 1.36.

use kube::core::Status;

use super::*;

#[track_caller]
fn check(status: &str, expected: Kind) {
    let status: Status = serde_json::from_str(status).unwrap();
    let error = Error::refused(Verb::Patch, "Node a", kube::Error::Api(status.boxed()));
    assert_eq!(error.kind, expected);
}

#[test]
fn a_changed_object_and_another_incarnation_are_told_apart() {
    check(r#"{"status":"Failure","reason":"Conflict","code":409}"#, Kind::Conflict);
    check(
        r#"{"status":"Failure","reason":"Invalid","code":422,"details":{"name":"a","kind":"Node",
            "causes":[{"reason":"FieldValueInvalid","message":"field is immutable","field":"metadata.uid"}]}}"#,
        Kind::OtherIncarnation,
    );
    check(
        r#"{"status":"Failure","reason":"Invalid","code":422,"details":{"name":"a","kind":"Node",
            "causes":[{"reason":"FieldValueInvalid","message":"…","field":"metadata.labels"}]}}"#,
        Kind::Invalid,
    );
}

#[test]
fn a_missing_namespace_is_not_a_missing_object() {
    check(
        r#"{"status":"Failure","reason":"NotFound","code":404,"details":{"name":"node-metadata","kind":"namespaces"}}"#,
        Kind::NamespaceMissing,
    );
    check(
        r#"{"status":"Failure","reason":"NotFound","code":404,"details":{"name":"a","kind":"configmaps"}}"#,
        Kind::NotFound,
    );
}

#[test]
fn the_rest_of_the_table() {
    check(r#"{"status":"Failure","reason":"AlreadyExists","code":409}"#, Kind::AlreadyExists);
    check(r#"{"status":"Failure","reason":"Forbidden","code":403}"#, Kind::Forbidden);
    check(r#"{"status":"Failure","reason":"Unauthorized","code":401}"#, Kind::Forbidden);
    check(r#"{"status":"Failure","reason":"RequestEntityTooLarge","code":413}"#, Kind::Invalid);
    check(r#"{"status":"Failure","reason":"Expired","code":410}"#, Kind::Expired);
    for code in [429, 500, 503, 504] {
        check(&format!(r#"{{"status":"Failure","code":{code}}}"#), Kind::Unknown);
    }
}
