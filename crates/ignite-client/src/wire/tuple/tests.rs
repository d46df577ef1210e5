//! What Ignite's own Java client 3.1.0 writes, byte for byte; and that all that is written is read.

use bytes::Bytes;
use proptest::prelude::*;
use uuid::Uuid;

use super::{Builder, Tuple};
use crate::value::{ColumnType, Date, Decimal, Period, Seconds, Time, Value};
use crate::wire::{pack::Packer, tests::hex};

/// Arguments as `ClientMessagePacker.packObjectArrayAsBinaryTuple` packs them.
fn check(arguments: &[Value], golden: &str) {
    let mut builder = Builder::new();
    arguments.iter().for_each(|argument| builder.argument(argument));
    let mut packer = Packer::new();
    let tuple = builder.finish();
    packer.len(arguments.len()).binary(&tuple);
    assert_eq!(hex(&packer.finish()), golden, "{arguments:?}");
    let read = Tuple::new(tuple, arguments.len() * 3).unwrap();
    for (index, argument) in arguments.iter().enumerate() {
        let back = read.value(index * 3 + 2, argument.column_type()).unwrap();
        assert_eq!(shown(&back), shown(argument));
    }
}

/// Decimals are written without zeros at their end: 1.50 comes back as 1.5.
fn shown(value: &Value) -> Value {
    let Value::Decimal(Decimal { mut unscaled, mut scale }) = *value else { return value.clone() };
    while unscaled != 0 && unscaled % 10 == 0 {
        (unscaled, scale) = (unscaled / 10, scale - 1);
    }
    Value::Decimal(Decimal { unscaled, scale: if unscaled == 0 { 0 } else { scale } })
}

fn decimal(unscaled: i128, scale: i16) -> Value {
    Value::Decimal(Decimal { unscaled, scale })
}

const DAY: Date = Date { year: 2026, month: 11, day: 17 };

fn time(hour: u8, minute: u8, second: u8, nanos: u32) -> Time {
    Time { hour, minute, second, nanos }
}

#[test]
fn numbers_are_the_java_clients() {
    check(&[Value::Null], "01c40400000000");
    check(&[Value::Bool(true)], "01c40700010203010001");
    check(&[Value::I8(-5)], "01c407000102030200fb");
    check(&[Value::I16(300)], "01c4080001020403002c01");
    check(&[Value::I16(3)], "01c40700010203030003");
    check(&[Value::I32(-70_000)], "01c40a00010206040090eefeff");
    check(&[Value::I64(5_000_000_000)], "01c40e0001020a050000f2052a01000000");
    check(&[Value::I64(-1)], "01c407000102030500ff");
    check(&[Value::F32(1.5)], "01c40a0001020606000000c03f");
    check(&[Value::F64(1.5)], "01c40a0001020607000000c03f");
    check(&[Value::F64(0.1)], "01c40e0001020a07009a9999999999b93f");
    check(&[decimal(-1_234_500, 3)], "01c40a0001020608030100cfc7");
    check(&[decimal(0, 2)], "01c409000102050802000000");
    check(&[decimal(128, 0)], "01c40a00010206080000000080");
    check(&[decimal(-128, 0)], "01c409000102050800000080");
}

#[test]
fn times_are_the_java_clients() {
    let ides = Date { year: -44, month: 3, day: 15 };
    check(&[Value::Date(DAY)], "01c40900010205090071d50f");
    check(&[Value::Date(ides)], "01c4090001020509006fa8ff");
    check(&[Value::Time(time(23, 59, 58, 7_000_000))], "01c40a000102060a0007e8fb05");
    check(&[Value::Time(time(23, 59, 58, 7_000))], "01c40b000102070a000700a0ef17");
    check(&[Value::Time(time(1, 2, 3, 7))], "01c40c000102080a00070000c02004");
    check(&[Value::DateTime(DAY, time(1, 2, 3, 0))], "01c40d000102090b0071d50f000c4200");
    let seconds = |seconds, nanos| Seconds { seconds, nanos };
    check(
        &[Value::Timestamp(seconds(1_700_000_000, 5))],
        "01c4120001020e0c0000f153650000000005000000",
    );
    check(&[Value::Timestamp(seconds(-1, 0))], "01c40e0001020a0c00ffffffffffffffff");
    check(&[Value::Duration(seconds(90, 1))], "01c4120001020e12005a0000000000000001000000");
    let period = Period { years: 1, months: -2, days: 300 };
    check(&[Value::Period(period)], "01c40c0001020811000100feff2c01");
}

#[test]
fn texts_and_bytes_are_the_java_clients() {
    let uuid = Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    check(&[Value::Uuid(uuid)], "01c416000102120d007766554433221100ffeeddccbbaa9988");
    check(&["häuser".into()], "01c40d000102090f0068c3a475736572");
    check(&["".into()], "01c407000102030f0080");
    check(&[Value::Bytes(Bytes::from_static(&[0, 1]))], "01c4080001020410000001");
    check(&[Value::Bytes(Bytes::new())], "01c40700010203100080");
    check(&[Value::Bytes(Bytes::from_static(&[0x80, 1]))], "01c409000102051000808001");
    check(&["a".into(), Value::I32(7)], "02c40d000102030405060f0061040007");
}

#[test]
fn offsets_are_as_wide_as_the_values_need() {
    let mut builder = Builder::new();
    builder.value(&Value::Bytes(vec![0; 300].into()));
    builder.value(&Value::I64(1));
    let tuple = hex(&builder.finish());
    assert_eq!(tuple, format!("012c012d01{}01", "00".repeat(300)));
    assert_eq!(hex(&Builder::new().finish()), "00");
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::I8),
        any::<i16>().prop_map(Value::I16),
        any::<i32>().prop_map(Value::I32),
        any::<i64>().prop_map(Value::I64),
        any::<f32>().prop_map(Value::F32),
        any::<f64>().prop_map(Value::F64),
        (any::<i128>(), -100..100_i16).prop_map(|(unscaled, scale)| decimal(unscaled, scale)),
        (0..24_u8, 0..60_u8, 0..60_u8, 0..1_000_000_000_u32).prop_map(
            |(hour, minute, second, nanos)| Value::Time(time(hour, minute, second, nanos))
        ),
        (any::<i64>(), 0..1_000_000_000_i32)
            .prop_map(|(seconds, nanos)| Value::Timestamp(Seconds { seconds, nanos })),
        (any::<i32>(), any::<i32>(), any::<i32>())
            .prop_map(|(years, months, days)| Value::Period(Period { years, months, days })),
        ".*".prop_map(Value::String),
        prop::collection::vec(any::<u8>(), 0..400).prop_map(|bytes| Value::Bytes(bytes.into())),
    ]
}

fn any_kind() -> impl Strategy<Value = ColumnType> {
    (0..19_i32).prop_filter_map("15 of 19 are types", ColumnType::from_id)
}

proptest! {
    #[test]
    fn what_is_written_is_read(values in prop::collection::vec(any_value(), 0..12)) {
        let mut builder = Builder::new();
        values.iter().for_each(|value| builder.value(value));
        let tuple = Tuple::new(builder.finish(), values.len()).unwrap();
        for (index, value) in values.iter().enumerate() {
            let back = tuple.value(index, value.column_type()).unwrap();
            prop_assert_eq!(shown(&back), shown(value));
        }
    }

    #[test]
    fn no_bytes_make_reading_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        kinds in prop::collection::vec(any_kind(), 0..8),
    ) {
        if let Ok(tuple) = Tuple::new(bytes.into(), kinds.len()) {
            for (index, kind) in kinds.iter().enumerate() {
                drop(tuple.value(index, *kind));
            }
        }
    }
}
