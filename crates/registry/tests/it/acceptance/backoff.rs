//! C25, C26: backoff.

use registry::Step;

use crate::story::Story;

fn refused(story: &mut Story, group: &str, message: &str) {
    story.increased(group, 1, Step::Failed { message: message.to_owned() });
}

#[test]
fn c25_backoff_grows_with_failures_and_is_each_group_s_own() {
    let mut story = Story::new();
    for (at, minutes) in [("0s", 5), ("5m", 10), ("15m", 20), ("35m", 30), ("65m", 30)] {
        refused(story.at(at), "g1", "no");
        assert_eq!(story.backoff("g1"), format!("apiCallError {minutes}m of {minutes}m"));
        assert_eq!(story.backoff("g2"), "none");
    }
    story.registry.clear_backoff(&"g1".into());
    assert_eq!(story.backoff("g1"), "none");
    refused(&mut story, "g1", "no");
    assert_eq!(story.backoff("g1"), "apiCallError 5m of 5m");
}

#[test]
fn c25_backoff_is_forgotten_three_hours_after_the_last_failure() {
    let mut story = Story::new();
    refused(&mut story, "g1", "no");
    refused(story.at("5m"), "g1", "no");
    refused(story.at("185m"), "g1", "no");
    assert_eq!(story.backoff("g1"), "apiCallError 5m of 5m");
}

#[test]
fn c26_a_failure_inside_the_window_makes_it_longer_and_not_harder() {
    let mut story = Story::new();
    refused(&mut story, "g1", "first");
    refused(story.at("3m"), "g1", "second");
    assert_eq!(story.backoff("g1"), "apiCallError 5m of 5m");
    let backoff = story.registry.backoff(&"g1".into(), story.now).unwrap();
    assert_eq!(backoff.message, "second");
    refused(story.at("8m"), "g1", "third");
    assert_eq!(story.backoff("g1"), "apiCallError 10m of 10m");
}
