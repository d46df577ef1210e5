//! Facts in few words.
//!
//! ```text
//! g1 T=5 min=0 max=10 provision=2m: 2 ready, unready created=30m since=20m, instance error=STOCKOUT
//! g2 T=1 instances-fail: ready zone=z1
//! -: 3 unready
//! ```
//!
//! A line is a group with its members; `-` is none. Members are nodes with their machines, or with
//! `instance` machines alone. The third member of g1 is the node `g1-3` on the machine `sim/g1-3`. Times
//! are so long before the story's beginning, or with a `+` after it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use registry::{
    Condition, ConditionStatus, ErrorClass, ErrorInfo, Facts, Fault, Group, Instance,
    InstanceState, Membership, Node, Options, Taint,
};

const DAY: &str = "24h";

/// Where a story begins.
pub(crate) fn beginning() -> Timestamp {
    "2026-03-01T10:00:00Z".parse().expect("a time")
}

/// `3m`, `90s`, `1h`, `-5m`.
pub(crate) fn span(text: &str) -> SignedDuration {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let (number, unit) = text.split_at(text.len() - 1);
    let number: i64 = number.parse().expect("a number before the unit");
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        other => panic!("unknown unit {other:?}"),
    };
    SignedDuration::from_secs(sign * number * seconds)
}

/// `30m` before the beginning, `+2m` after it.
fn moment(text: &str) -> Timestamp {
    match text.strip_prefix('+') {
        Some(after) => beginning() + span(after),
        None => beginning() - span(text),
    }
}

pub(crate) fn facts(text: &str) -> Facts {
    let mut facts = Facts { nodes: Vec::new(), groups: Ok(Vec::new()) };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(reason) = line.strip_prefix("groups-fail") {
            facts.groups = Err(Fault(reason.trim().to_owned()));
            continue;
        }
        let (head, members) = line.split_once(':').unwrap_or((line, ""));
        let head = Words::parse(head);
        let members = expand(members);
        facts.nodes.extend(members.iter().enumerate().filter_map(|(i, it)| node(&head, i, it)));
        if let Ok(groups) = &mut facts.groups
            && head.word != "-"
        {
            groups.push(group(&head, &members));
        }
    }
    facts
}

/// A word and its fields.
#[derive(Clone)]
struct Words<'a> {
    word: &'a str,
    fields: BTreeMap<&'a str, &'a str>,
}

// === impl Words ===

impl<'a> Words<'a> {
    fn parse(text: &'a str) -> Self {
        let mut words = text.split_whitespace();
        let word = words.next().expect("a word");
        let fields = words.map(|field| field.split_once('=').unwrap_or((field, ""))).collect();
        Self { word, fields }
    }

    fn get(&self, field: &str) -> Option<&'a str> {
        self.fields.get(field).copied()
    }

    fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    fn number(&self, field: &str, default: i64) -> i64 {
        self.get(field).map_or(default, |number| number.parse().expect("a number"))
    }

    fn option(&self, field: &str) -> Option<SignedDuration> {
        self.get(field).map(span)
    }
}

/// `2 ready, unready` is three members.
fn expand(members: &str) -> Vec<Words<'_>> {
    let members = members.split(',').map(str::trim).filter(|member| !member.is_empty());
    members
        .flat_map(|member| {
            let (first, rest) = member.split_once(' ').unwrap_or((member, ""));
            let (times, member) = first.parse().map_or((1, member), |times: usize| (times, rest));
            std::iter::repeat_n(Words::parse(member), times)
        })
        .collect()
}

fn group(head: &Words<'_>, members: &[Words<'_>]) -> Group {
    let fault = |field: &str| head.has(field).then(|| Fault("unavailable".to_owned()));
    let listed = members.iter().enumerate().filter(|(_, member)| !member.has("unlisted"));
    let instances = listed.map(|(i, member)| instance(head, i, member)).collect();
    Group {
        id: head.word.into(),
        min: head.number("min", 0),
        max: head.number("max", 1_000),
        exists: !head.has("absent"),
        options: Options {
            unneeded: head.option("unneeded"),
            unready: head.option("unready"),
            provision: head.option("provision"),
            startup: head.option("startup"),
        },
        target: fault("target-fails").map_or(Ok(head.number("T", 0)), Err),
        instances: fault("instances-fail").map_or(Ok(instances), Err),
    }
}

/// The machine of a group's member, from 0.
fn machine(head: &Words<'_>, i: usize, member: &Words<'_>) -> String {
    member.get("id").map_or_else(|| format!("sim/{}-{}", head.word, i + 1), ToOwned::to_owned)
}

fn instance(head: &Words<'_>, i: usize, member: &Words<'_>) -> Instance {
    let states = [
        ("deleting", InstanceState::Deleting),
        ("creating", InstanceState::Creating),
        ("running", InstanceState::Running),
    ];
    let error = member.get("error").map(|code| ErrorInfo {
        class: ErrorClass::OutOfResources,
        code: code.to_owned(),
        message: format!("{code} it is"),
    });
    Instance {
        id: machine(head, i, member).as_str().into(),
        state: states.into_iter().find(|(word, _)| member.has(word)).map(|(_, state)| state),
        error,
    }
}

fn node(head: &Words<'_>, i: usize, member: &Words<'_>) -> Option<Node> {
    let (created, is_ready) = match member.word {
        "instance" => return None,
        "ready" | "leaving" | "suspended" => (DAY, true),
        "unready" => (DAY, false),
        "broken" => ("30m", false),
        "starting" => ("1m", false),
        other => panic!("unknown member {other:?}"),
    };
    let created = member.get("created").unwrap_or(created);
    let since = member.get("since").or((member.word == "unready").then_some("1h"));
    let taint = |key: &str, value: &str| Taint { key: key.to_owned(), value: value.to_owned() };
    let leaving = (member.word == "leaving").then_some("10s").or(member.get("leaving"));
    let began = leaving.map(|began| moment(began).as_second().to_string());
    let leaving = began.map(|began| taint("ToBeDeletedByClusterAutoscaler", &began));
    let zone = member.get("zone").map(|zone| ("topology.kubernetes.io/zone", zone));
    let kept = member
        .has("kept")
        .then_some(("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true"));
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    Some(Node {
        created: moment(created),
        name: member
            .get("name")
            .map_or_else(|| format!("{}-{}", head.word, i + 1), str::to_owned)
            .as_str()
            .into(),
        provider_id: if member.has("no-id") { String::new() } else { machine(head, i, member) },
        conditions: conditions(member, is_ready, since.unwrap_or(created)),
        taints: leaving.into_iter().chain(member.get("taint").map(|key| taint(key, ""))).collect(),
        labels: zone.into_iter().map(owned).collect(),
        annotations: kept.into_iter().map(owned).collect(),
        missing_resources: member.get("lacks").map(ToOwned::to_owned).into_iter().collect(),
        membership: match head.word {
            "-" => Membership::Unmanaged,
            _ if member.has("unknown") => Membership::Unknown,
            group => Membership::Group(group.into()),
        },
    })
}

fn conditions(member: &Words<'_>, is_ready: bool, since: &str) -> BTreeMap<String, Condition> {
    let condition = |kind: &str, is_true: bool| {
        let status = if is_true { ConditionStatus::True } else { ConditionStatus::False };
        (kind.to_owned(), Condition { status, last_transition: Some(moment(since)) })
    };
    let suspended = match (member.word, member.get("suspended")) {
        ("suspended", _) => Some(true),
        (_, Some("false")) => Some(false),
        _ => None,
    };
    let pressing = member.get("pressing").map(|kind| condition(kind, true));
    let suspended = suspended.map(|is_true| condition("Suspended", is_true));
    std::iter::once(condition("Ready", is_ready)).chain(pressing).chain(suspended).collect()
}
