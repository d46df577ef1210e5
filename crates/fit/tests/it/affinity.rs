//! Required pod affinity and anti-affinity.

use crate::scene::check;

const AFFINITY: &str = "node does not match pod affinity rules";
const ANTI: &str = "node does not match pod anti-affinity rules";
const EXISTING: &str = "node does not satisfy existing pods anti-affinity rules";

fn nodes(pods: [&str; 3]) -> String {
    let [a, b, c] = pods;
    format!(
        "namespaces: {{other: {{team: red}}, third: {{team: blue}}}}
nodes:
- {{name: a, labels: {{zone: z1}}, pods: [{a}]}}
- {{name: b, labels: {{zone: z1}}, pods: [{b}]}}
- {{name: c, labels: {{zone: z2}}, pods: [{c}]}}"
    )
}

fn pod(kind: &str, terms: &str) -> String {
    format!(
        "{{labels: {{app: x, rev: '1'}}, spec: {{affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{terms}]}}}}}}}}"
    )
}

fn term(selector: &str, more: &str) -> String {
    format!("{{topologyKey: zone, labelSelector: {{matchLabels: {{{selector}}}}}{more}}}")
}

fn answer(pods: [&str; 3], pod: &str, refused: &str, fitting: &str) {
    let expected = ["a", "b", "c"]
        .map(|node| format!("{node}: {}", if fitting.contains(node) { "fits" } else { refused }));
    check(&format!("{}\npod: {pod}", nodes(pods)), &expected.each_ref().map(String::as_str));
}

#[test]
fn affinity_wants_company() {
    let near_db = pod("podAffinity", &term("app: db", ""));
    answer(["{labels: {app: db}}", "", ""], &near_db, AFFINITY, "ab");
    answer(["", "", "{labels: {app: db}}"], &near_db, AFFINITY, "c");
    answer(["", "", ""], &near_db, AFFINITY, "");
    // On its way out it is company still.
    answer(["", "", "{labels: {app: db}, deleting: true}"], &near_db, AFFINITY, "c");
}

#[test]
fn the_first_of_its_kind_needs_no_company_but_its_own() {
    let near_own = pod("podAffinity", &term("app: x", ""));
    answer(["", "", ""], &near_own, AFFINITY, "abc");
    answer(["", "", "{labels: {app: x}}"], &near_own, AFFINITY, "c");
    let both = [term("app: x", ""), term("app: db", "")].join(", ");
    answer(["", "", ""], &pod("podAffinity", &both), AFFINITY, "");
}

/// One pod must match all terms; two that match one each are no company.
#[test]
fn terms_of_affinity_are_about_one_pod() {
    let both = pod("podAffinity", &[term("app: db", ""), term("tier: back", "")].join(", "));
    answer(["{labels: {app: db}}, {labels: {tier: back}}", "", ""], &both, AFFINITY, "");
    answer(["{labels: {app: db, tier: back}}", "", ""], &both, AFFINITY, "ab");
}

#[test]
fn affinity_needs_the_label_it_is_about() {
    let pod = pod("podAffinity", "{topologyKey: rack, labelSelector: {matchLabels: {app: x}}}");
    answer(["", "", ""], &pod, AFFINITY, "");
}

#[test]
fn anti_affinity_keeps_away() {
    let far_from_db = pod("podAntiAffinity", &term("app: db", ""));
    answer(["{labels: {app: db}}", "", ""], &far_from_db, ANTI, "c");
    answer(["", "", ""], &far_from_db, ANTI, "abc");
    // Without the label there is no domain to share.
    let by_rack =
        pod("podAntiAffinity", "{topologyKey: rack, labelSelector: {matchLabels: {app: db}}}");
    answer(["{labels: {app: db}}", "", ""], &by_rack, ANTI, "abc");
}

#[test]
fn pods_that_are_there_keep_others_away() {
    let hostile = pod("podAntiAffinity", &term("app: x", ""));
    answer([&hostile, "", ""], "{labels: {app: x}}", EXISTING, "c");
    answer([&hostile, "", ""], "{labels: {app: y}}", EXISTING, "abc");
    answer([&hostile, "", ""], "{labels: {app: x}, namespace: other}", EXISTING, "abc");
    let everywhere = pod("podAntiAffinity", &term("app: x", ", namespaceSelector: {}"));
    answer([&everywhere, "", ""], "{labels: {app: x}, namespace: other}", EXISTING, "c");
}

#[test]
fn namespaces_are_named_or_selected() {
    let other = "{labels: {app: db}, namespace: other}";
    let table = [
        ("", "c"),
        (", namespaces: [other]", "ab"),
        (", namespaces: [third]", ""),
        (", namespaceSelector: {}", "abc"),
        (", namespaceSelector: {matchLabels: {team: red}}", "ab"),
        (", namespaceSelector: {matchLabels: {team: blue}}", ""),
        (", namespaces: [default], namespaceSelector: {matchLabels: {team: red}}", "abc"),
    ];
    for (more, fitting) in table {
        let near_db = pod("podAffinity", &term("app: db", more));
        answer([other, "", "{labels: {app: db}}"], &near_db, AFFINITY, fitting);
    }
}

#[test]
fn label_keys_narrow_and_widen() {
    let alike = "{labels: {app: x, rev: '1'}}";
    let unlike = "{labels: {app: x, rev: '2'}}";
    let far = |more: &str| pod("podAntiAffinity", &term("app: x", more));
    answer([alike, "", unlike], &far(", matchLabelKeys: [rev]"), ANTI, "c");
    answer([alike, "", unlike], &far(", mismatchLabelKeys: [rev]"), ANTI, "ab");
    answer([alike, "", unlike], &far(", matchLabelKeys: [none]"), ANTI, "");
    // Without a selector nothing is selected, whatever the keys say.
    let bare = pod("podAntiAffinity", "{topologyKey: zone, matchLabelKeys: [rev]}");
    answer([alike, "", unlike], &bare, ANTI, "abc");
}
