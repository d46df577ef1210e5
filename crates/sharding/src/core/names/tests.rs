use expect_test::expect;

use super::*;

fn told(dialect: Dialect) -> String {
    let names = Names::new("websites".parse().unwrap(), dialect);
    let annotations = [
        Annotation::Incarnation,
        Annotation::Pod,
        Annotation::HoldSeconds,
        Annotation::DrainEpoch,
        Annotation::DrainSeen,
    ];
    let annotations = annotations.map(|annotation| names.annotation(annotation));
    let lines = [
        names.ring_label(),
        names.state_label(),
        names.weight_label().unwrap_or_default(),
        names.shard_label(),
        names.drain_label(),
        names.sharder_holder().to_owned(),
    ];
    lines.into_iter().chain(annotations.into_iter().flatten()).collect::<Vec<_>>().join("\n")
}

#[test]
fn our_own_names() {
    expect![[r#"
        windlass.dev/ring
        windlass.dev/state
        windlass.dev/virtual-nodes
        shard.windlass.dev/websites
        drain.windlass.dev/websites
        windlass-sharder
        windlass.dev/incarnation
        windlass.dev/pod
        windlass.dev/hold-seconds
        windlass.dev/drain-epoch
        windlass.dev/drain-seen"#]]
    .assert_eq(&told(Dialect::Own { prefix: PREFIX_DEFAULT.to_owned() }));
}

#[test]
fn another_prefix_replaces_ours_everywhere() {
    let told = told(Dialect::Own { prefix: "example.com".to_owned() });
    assert!(!told.contains(PREFIX_DEFAULT), "{told}");
    assert!(told.contains("shard.example.com/websites"), "{told}");
}

#[test]
fn the_go_project_is_answered_in_its_own_words() {
    expect![[r#"
        alpha.sharding.timebertt.dev/controllerring
        alpha.sharding.timebertt.dev/state

        shard.alpha.sharding.timebertt.dev/websites
        drain.alpha.sharding.timebertt.dev/websites
        shardlease-controller"#]]
    .assert_eq(&told(Dialect::Timebertt));
}

#[test]
fn each_dialect_has_its_words_for_states() {
    let words = |dialect: Dialect| {
        let names = Names::new("r".parse().unwrap(), dialect);
        let words = State::ALL.map(|state| names.state_word(state, false));
        format!("{} | {}", words.join(" "), names.state_word(State::Unknown, true))
    };
    expect!["ready unknown restarting dead released conflict orphan | unknown"]
        .assert_eq(&words(Dialect::Own { prefix: PREFIX_DEFAULT.to_owned() }));
    expect!["ready expired expired dead dead unknown orphaned | uncertain"]
        .assert_eq(&words(Dialect::Timebertt));
}

#[test]
fn ids_are_rfc_1123_labels() {
    for good in ["a", "a-0", "0", "website-controller-5", &"x".repeat(63)] {
        assert_eq!(good.parse::<InstanceId>().map(String::from).as_deref(), Ok(good));
    }
    let error = |text: &str| text.parse::<InstanceId>().unwrap_err().to_string();
    for (bad, why) in [
        ("", "empty"),
        ("-a", "begins or ends"),
        ("a-", "begins or ends"),
        ("A", "none of a-z"),
        ("a.b", "none of a-z"),
        ("a_b", "none of a-z"),
    ] {
        assert!(error(bad).contains(why), "{bad:?}: {}", error(bad));
    }
    assert!(error(&"x".repeat(64)).contains("64 characters, more than 63"));
}

#[test]
fn prefixes_leave_room_for_what_stands_before_them() {
    let longest = format!("{}a", "a.".repeat(123));
    assert_eq!(longest.len(), SUBDOMAIN_CHARACTERS_MAX - LONGEST_LEAD.len());
    assert_eq!(check_prefix(&longest), Ok(()));
    assert!(matches!(check_prefix(&format!("{longest}a")), Err(NameError::TooLong { .. })));
    assert_eq!(check_prefix("a..b"), Err(NameError::Empty));
    assert_eq!(check_prefix(""), Err(NameError::Empty));
}
