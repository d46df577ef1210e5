//! Runs a script against the cloud and writes down what it shows.
//!
//! Each line is a time since the beginning and a call: `30s increase a 3`. `show` tells of machines and
//! Nodes; every other call tells its answer.

use std::fmt::Display;
use std::num::NonZeroU32;

use autoscaler::provider::NodeRef;
use expect_test::Expect;
use jiff::{SignedDuration, Timestamp};
use registry::{GroupId, InstanceState};

use crate::core::{Cloud, Refusal};
use crate::scenario::Scenario;

pub(super) fn started() -> Timestamp {
    "2026-03-01T08:00:00Z".parse().unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "`expect!` is written in place")]
pub(super) fn check(scenario: &str, script: &str, expected: Expect) {
    let mut cloud = Cloud::new(Scenario::parse(scenario).unwrap(), started());
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let told: String = lines.map(|line| format!("{line}: {}\n", tell(&mut cloud, line))).collect();
    expected.assert_eq(&told);
}

/// The answer to one line.
fn tell(cloud: &mut Cloud, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let elapsed: SignedDuration = words[0].parse().unwrap();
    let now = started() + elapsed;
    cloud.step(now);
    let number = |text: &str| text.parse::<NonZeroU32>().unwrap();
    match words[1..] {
        ["show"] => show(cloud, now),
        ["refresh"] => told(cloud.refresh(now).map(|()| "done")),
        ["groups"] => told(cloud.groups(now).map(|groups| groups.len())),
        ["target", group] => told(cloud.target(now, &group.into())),
        ["increase", group, by] => done(cloud.increase(now, &group.into(), number(by))),
        ["decrease", group, by] => done(cloud.decrease(now, &group.into(), number(by))),
        ["delete", group, ref names @ ..] => {
            let nodes: Vec<NodeRef> = names.iter().map(|name| by_id(group, name)).collect();
            done(cloud.delete(now, &group.into(), &nodes))
        }
        ["template", group] => {
            let template = cloud.template(now, &group.into());
            told(template.map(|it| it.map_or("none".to_owned(), |template| template.zone)))
        }
        ["group-of", name] => {
            let node = as_registered(cloud, name);
            let group = cloud.group_of(now, &node);
            told(group.map(|group| group.unwrap_or_else(|| "none".into())))
        }
        ["generation"] => format!("{:?}", cloud.generation(now)),
        ["certificate"] => {
            (if cloud.shows_wrong_certificate(now) { "wrong" } else { "right" }).to_owned()
        }
        _ => panic!("no such call: {line}"),
    }
}

fn show(cloud: &mut Cloud, now: Timestamp) -> String {
    let ids: Vec<GroupId> = cloud.groups.keys().cloned().collect();
    let mut machines = Vec::new();
    for id in ids {
        for instance in cloud.instances(now, &id).unwrap() {
            let state = match instance.state {
                Some(InstanceState::Running) => "running",
                Some(InstanceState::Creating) => "creating",
                Some(InstanceState::Deleting) => "deleting",
                None => "?",
            };
            let error = instance.error.map(|it| format!(" {:?} {}", it.class, it.code));
            let name = instance.id.last_segment().to_owned();
            machines.push(format!("{name} {state}{}", error.unwrap_or_default()));
        }
    }
    let nodes = cloud.nodes().map(|node| {
        let since = node.since.duration_since(started());
        format!("{} {:?} since {since:#}", node.name, node.health)
    });
    let nodes: Vec<String> = nodes.collect();
    format!("[{}] [{}]", machines.join(", "), nodes.join(", "))
}

pub(super) fn by_id(group: &str, name: &str) -> NodeRef {
    NodeRef {
        name: name.into(),
        provider_id: format!("simcloud://{group}/{name}"),
        labels: [].into(),
        annotations: [].into(),
    }
}

/// As the Node says it is.
fn as_registered(cloud: &Cloud, name: &str) -> NodeRef {
    let node = cloud.nodes().find(|node| node.name.0 == name).unwrap();
    NodeRef { provider_id: node.provider_id.clone(), ..by_id("", name) }
}

fn done(result: Result<(), Refusal>) -> String {
    told(result.map(|()| "done"))
}

fn told<T: Display>(result: Result<T, Refusal>) -> String {
    match result {
        Ok(answer) => answer.to_string(),
        Err(Refusal::Failed { code, message }) => format!("{code:?}: {message}"),
        Err(other) => other.to_string(),
    }
}
