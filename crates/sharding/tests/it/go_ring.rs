//! The ring agrees with the Go project's, key by key.

use sharding::core::key::Key;
use sharding::core::object::GroupKind;
use sharding::core::partition::{Partition, Ring, Share};

/// The last digit of the owner of each of 2,000 keys, as the Go project's hash ring of five instances
/// with 100 tokens each says (timebertt/kubernetes-controller-sharding at f1d25b3).
const OWNERS: &str = include_str!("go_ring.txt");

fn key(number: usize) -> Key {
    let (group, kind, path) = match number % 4 {
        0 => ("", "Secret", format!("default/secret-{number}")),
        1 => ("apps", "Deployment", format!("team-{number}/web")),
        2 => {
            let path = format!("project-{}/homepage-{:x}", number % 17, number * 7919);
            ("webhosting.timebertt.dev", "Website", path)
        }
        _ => ("", "Namespace", format!("/ns-{number}")),
    };
    Key { kind: GroupKind::new(group, kind), path }
}

#[test]
fn two_thousand_keys_have_the_owners_that_the_go_project_gives_them() {
    let member = |number: u32| {
        let id = format!("checksum-controller-{number}").parse().expect("a label");
        Share { id, weight: 100 }
    };
    let ring = Ring::new(&(0..5).map(member).collect::<Vec<_>>());
    let expected: Vec<char> =
        OWNERS.chars().filter(|character| !character.is_whitespace()).collect();
    assert_eq!(expected.len(), 2_000);
    for (number, expected) in expected.into_iter().enumerate() {
        let key = key(number);
        let owner = ring.owner(&key).expect("the ring has members");
        assert!(owner.as_str().ends_with(expected), "{key:?} belongs to {owner}, not {expected}");
    }
}
