//! Merged intervals against a check that looks at one permission at a time.

use bytes::Bytes;
use etcd_api::authpb::{Permission, permission::Type};
use proptest::prelude::*;

use crate::auth::permission::{Grants, Right, covers, is_grantable};

proptest! {
    #[test]
    fn the_union_of_roles_is_the_union_of_their_permissions(
        roles in prop::collection::vec(prop::collection::vec(grantable(), 0..4), 0..4),
        (key, range_end) in (key(), range_end()),
    ) {
        let grants: Vec<Grants> = roles.iter().map(|role| Grants::new(role)).collect();
        let permissions: Vec<Permission> = roles.into_iter().flatten().collect();
        for (right, kind) in [(Right::Read, Type::Read), (Right::Write, Type::Write)] {
            let merged = covers(grants.iter().map(|role| role.of(right)), &key, &range_end);
            let granting: Vec<&Permission> = permissions
                .iter()
                .filter(|permission| [kind, Type::Readwrite].contains(&permission.perm_type()))
                .collect();
            prop_assert_eq!(merged, covers_naively(&granting, &key, &range_end), "{:?}", right);
        }
    }
}

/// If a range has a key that nothing permits, then the first such key is where the range begins or
/// where some permission ends.
fn covers_naively(permissions: &[&Permission], key: &[u8], range_end: &[u8]) -> bool {
    let ends =
        permissions.iter().filter_map(|permission| end(&permission.key, &permission.range_end));
    let wanted_end = end(key, range_end);
    let is_wanted = |at: &Vec<u8>| &**at > key && wanted_end.as_ref().is_none_or(|end| at < end);
    let suspects = ends.filter(is_wanted).chain([key.to_vec()]);
    suspects.into_iter().all(|suspect| permissions.iter().any(|held| holds(held, &suspect)))
}

fn holds(permission: &Permission, key: &[u8]) -> bool {
    let is_before_end = |end: Vec<u8>| *key < *end;
    permission.key <= key && end(&permission.key, &permission.range_end).is_none_or(is_before_end)
}

fn end(key: &[u8], range_end: &[u8]) -> Option<Vec<u8>> {
    match range_end {
        b"" => Some([key, b"\0"].concat()),
        b"\0" => None,
        end => Some(end.to_vec()),
    }
}

fn grantable() -> impl Strategy<Value = Permission> {
    let permission = (key(), range_end(), 0..3_i32)
        .prop_map(|(key, range_end, perm_type)| Permission { perm_type, key, range_end });
    permission.prop_filter("not grantable", |permission| {
        is_grantable(&permission.key, &permission.range_end)
    })
}

/// Few keys, so that they meet, with neighbours among them.
fn key() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(prop::sample::select(vec![0, b'a', b'b', 0xff]), 1..3)
        .prop_map(Bytes::from)
}

fn range_end() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        1 => Just(Bytes::new()),
        1 => Just(Bytes::from_static(b"\0")),
        3 => key(),
    ]
}
