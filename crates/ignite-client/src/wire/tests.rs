//! Numbers, strings, bits and tuples byte for byte as the Java client 3.1.0 packs them.

use bytes::{Bytes, BytesMut};
use expect_test::expect;
use proptest::prelude::*;

use super::{DecodeError, frame, handshake, pack::Packer, unpack::Unpacker};

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn bytes(hex: &str) -> Bytes {
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn packed(pack: impl FnOnce(&mut Packer) -> &mut Packer) -> String {
    let mut packer = Packer::new();
    pack(&mut packer);
    hex(&packer.finish())
}

#[test]
fn numbers_are_as_short_as_the_java_clients() {
    for (number, golden) in [
        (0, "00"),
        (127, "7f"),
        (128, "cc80"),
        (255, "ccff"),
        (256, "cd0100"),
        (65_535, "cdffff"),
        (65_536, "ce00010000"),
        (4_294_967_295, "ceffffffff"),
        (4_294_967_296, "cf0000000100000000"),
        (i64::MAX, "cf7fffffffffffffff"),
        (-1, "ff"),
        (-32, "e0"),
        (-33, "d0df"),
        (-128, "d080"),
        (-129, "d1ff7f"),
        (-32_768, "d18000"),
        (-32_769, "d2ffff7fff"),
        (-2_147_483_648, "d280000000"),
        (-2_147_483_649, "d3ffffffff7fffffff"),
        (i64::MIN, "d38000000000000000"),
    ] {
        assert_eq!(packed(|packer| packer.int(number)), golden, "{number}");
        assert_eq!(Unpacker::new(bytes(golden)).long("a number").unwrap(), number);
    }
}

#[test]
fn strings_bytes_and_bits_are_the_java_clients() {
    assert_eq!(packed(|packer| packer.string("")), "a0");
    assert_eq!(packed(|packer| packer.string("authn-type")), "aa617574686e2d74797065");
    assert_eq!(packed(|packer| packer.binary(&[1, 2, 3])), "c403010203");
    assert!(packed(|packer| packer.binary(&[0; 300])).starts_with("c5012c00"));
    for (set, golden) in [
        (&[][..], "c70008"),
        (&[0], "d40801"),
        (&[3], "d40808"),
        (&[9], "d5080002"),
        (&[17], "c70308000002"),
        (&[0, 33], "c705080100000002"),
    ] {
        assert_eq!(packed(|packer| packer.bits(set)), golden, "{set:?}");
    }
    let uuid = Unpacker::new(bytes("d8037766554433221100ffeeddccbbaa9988")).uuid("an id").unwrap();
    assert_eq!(uuid.to_string(), "00112233-4455-6677-8899-aabbccddeeff");
}

#[test]
fn a_handshake_names_version_kind_and_user() {
    let none = handshake::request(None);
    assert_eq!(hex(&none), "49474e49".to_owned() + "00000007" + "030000" + "02" + "c400" + "00");
    let credentials = handshake::Credentials { user: "u", password: "p" };
    let with = String::from_utf8_lossy(&handshake::request(Some(credentials))).into_owned();
    for word in ["authn-type", "basic", "authn-identity", "authn-secret"] {
        assert!(with.contains(word), "{word}");
    }
}

#[test]
fn an_error_keeps_code_class_and_message() {
    let mut packer = Packer::new();
    packer.int(7).int(4).int(99);
    let mut message = BytesMut::from(&packer.finish()[..]);
    message.extend_from_slice(&bytes("d8037766554433221100ffeeddccbbaa9988"));
    let mut rest = Packer::new();
    rest.int((7 << 16) | 4).string("a.B").string("lock").nil().nil();
    message.extend_from_slice(&rest.finish());
    let answer = frame::answer(message.freeze()).unwrap();
    assert_eq!((answer.id, answer.observable, answer.is_notification), (7, 99, false));
    let error = answer.outcome.unwrap_err();
    assert_eq!(error.to_string(), "IGN-TX-4: lock");
    assert_eq!(error.class, "a.B");
}

#[test]
fn frames_come_whole_or_not_yet() {
    let request = frame::request(44, 3, &[9]);
    assert_eq!(hex(&request), "000000032c0309");
    for cut in 0..request.len() {
        let mut part = BytesMut::from(&request[..cut]);
        assert_eq!(frame::next(&mut part, 100), Ok(None), "{cut}");
        part.extend_from_slice(&request[cut..]);
        assert_eq!(frame::next(&mut part, 100).unwrap().unwrap(), request[4..]);
    }
    let mut long = BytesMut::from(&[0, 0, 1, 0, 0xcd, 2, 1][..]);
    assert_eq!(frame::next(&mut long, 255), Ok(None), "whom it answers is not there yet");
    long.extend_from_slice(&[0; 6]);
    let too_long = frame::TooLong { bytes: 256, id: Some(513) };
    assert_eq!(frame::next(&mut long, 255), Err(too_long));
}

#[test]
fn a_claimed_count_is_not_believed() {
    let mut unpacker = Unpacker::new(bytes("ce7fffffff00"));
    assert_eq!(unpacker.count("rows"), Err(DecodeError::Short { what: "rows" }));
    expect!["the message ends in the middle of rows"]
        .assert_eq(&DecodeError::Short { what: "rows" }.to_string());
}

proptest! {
    #[test]
    fn no_message_makes_reading_panic(message in prop::collection::vec(any::<u8>(), 0..80)) {
        let message = Bytes::from(message);
        drop(frame::answer(message.clone()));
        drop(handshake::response(message.clone()));
        let mut unpacker = Unpacker::new(message);
        while unpacker.skip().is_ok() {}
    }
}
