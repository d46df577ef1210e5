//! Options in both generations of the wire. A provider answers in the one it knows, and may echo the
//! fields of the other as it got them; so of each time, that generation counts which says something
//! new.

use cloud_api::externalgrpc::{LegacyDuration, NodeGroupAutoscalingOptions};
use cloud_api::well_known::Duration as WireDuration;
use jiff::SignedDuration;
use registry::Options;

use crate::provider::GroupOptions;

/// The defaults, in both generations.
pub(super) fn encode(defaults: &GroupOptions) -> NodeGroupAutoscalingOptions {
    let times = &defaults.times;
    NodeGroupAutoscalingOptions {
        scale_down_utilization_threshold: defaults.utilization_threshold,
        scale_down_gpu_utilization_threshold: defaults.gpu_utilization_threshold,
        legacy_scale_down_unneeded: times.unneeded.map(to_legacy),
        legacy_scale_down_unready: times.unready.map(to_legacy),
        legacy_max_node_provision: times.provision.map(to_legacy),
        zero_or_max_node_scaling: defaults.is_zero_or_max,
        ignore_daemon_sets_utilization: defaults.ignores_daemon_sets,
        scale_down_unneeded: times.unneeded.map(to_wire),
        scale_down_unready: times.unready.map(to_wire),
        max_node_provision: times.provision.map(to_wire),
        max_node_startup: times.startup.map(to_wire),
        allow_non_atomic_scale_up_to_max: defaults.may_fill_in_parts,
    }
}

/// What the answer says, where it says something.
pub(super) fn decode(
    answer: &NodeGroupAutoscalingOptions,
    defaults: &GroupOptions,
) -> GroupOptions {
    let sent = &defaults.times;
    let times = Options {
        unneeded: choose(
            answer.legacy_scale_down_unneeded,
            answer.scale_down_unneeded,
            sent.unneeded,
        ),
        unready: choose(answer.legacy_scale_down_unready, answer.scale_down_unready, sent.unready),
        provision: choose(
            answer.legacy_max_node_provision,
            answer.max_node_provision,
            sent.provision,
        ),
        startup: choose(None, answer.max_node_startup, sent.startup),
    };
    let share = |answer: f64, default| if answer > 0.0 { answer } else { default };
    GroupOptions {
        times,
        utilization_threshold: share(
            answer.scale_down_utilization_threshold,
            defaults.utilization_threshold,
        ),
        gpu_utilization_threshold: share(
            answer.scale_down_gpu_utilization_threshold,
            defaults.gpu_utilization_threshold,
        ),
        is_zero_or_max: answer.zero_or_max_node_scaling,
        ignores_daemon_sets: answer.ignore_daemon_sets_utilization,
        may_fill_in_parts: answer.allow_non_atomic_scale_up_to_max,
    }
}

/// The newer answer if it differs from what was sent, else the older if that does. Absent and zero say
/// nothing.
fn choose(
    legacy: Option<LegacyDuration>,
    current: Option<WireDuration>,
    sent: Option<SignedDuration>,
) -> Option<SignedDuration> {
    let is_news = |answer: &SignedDuration| !answer.is_zero() && Some(*answer) != sent;
    let current = current.map(from_wire).filter(is_news);
    current.or_else(|| legacy.map(from_legacy).filter(is_news)).or(sent)
}

fn to_legacy(span: SignedDuration) -> LegacyDuration {
    LegacyDuration { nanos: i64::try_from(span.as_nanos()).unwrap_or(i64::MAX) }
}

fn from_legacy(span: LegacyDuration) -> SignedDuration {
    SignedDuration::from_nanos(span.nanos)
}

fn to_wire(span: SignedDuration) -> WireDuration {
    WireDuration { seconds: span.as_secs(), nanos: span.subsec_nanos() }
}

/// The two parts may contradict each other; then their sum counts.
fn from_wire(span: WireDuration) -> SignedDuration {
    SignedDuration::from_secs(span.seconds)
        .saturating_add(SignedDuration::from_nanos(span.nanos.into()))
}

#[cfg(test)]
mod tests {
    use registry::Times;

    use super::*;

    const MINUTE: i64 = 60;

    /// What is made of an answer to a default of ten minutes, in seconds.
    fn check(legacy: Option<i64>, current: Option<i64>) -> i64 {
        let legacy = legacy.map(|seconds| LegacyDuration { nanos: seconds * 1_000_000_000 });
        let current = current.map(|seconds| WireDuration { seconds, nanos: 0 });
        let sent = Some(SignedDuration::from_mins(10));
        choose(legacy, current, sent).unwrap().as_secs()
    }

    #[test]
    fn the_generation_that_says_something_new_counts() {
        let (sent, other, third) = (Some(10 * MINUTE), Some(20 * MINUTE), Some(30 * MINUTE));
        for (legacy, current, expected) in [
            (None, None, sent),
            (sent, sent, sent),
            // An old provider, which keeps fields it does not know.
            (other, sent, other),
            // One that drops them.
            (other, None, other),
            // A new provider that does the same.
            (sent, other, other),
            (None, other, other),
            (other, third, third),
            // Zero is what a field is that nobody set.
            (Some(0), other, other),
            (other, Some(0), other),
            (Some(0), Some(0), sent),
        ] {
            let chosen = check(legacy, current);
            assert_eq!(Some(chosen), expected, "{legacy:?} {current:?}");
        }
    }

    #[test]
    fn an_echo_is_the_defaults() {
        let defaults = GroupOptions::with_times(&Times::default());
        assert_eq!(decode(&encode(&defaults), &defaults), defaults);
        let silent = decode(&NodeGroupAutoscalingOptions::default(), &defaults);
        assert_eq!(silent, defaults, "and so is an answer without a word");
    }

    #[test]
    fn spans_that_cannot_be_are_kept_for_the_registry_to_refuse() {
        let odd = WireDuration { seconds: i64::MAX, nanos: i32::MAX };
        assert_eq!(from_wire(odd), SignedDuration::MAX);
        assert_eq!(from_wire(WireDuration { seconds: -1, nanos: 0 }).as_secs(), -1);
    }
}
