//! What windlass is to reach, and whether it did.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    figures::{Figures, Metric},
    row::{Disturbance, Row, Work},
    subject::Role,
};

/// A bound on one figure of windlass, in units of another server's, or on the figure itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    pub metric: Metric,
    /// `None`: the figure is a ratio already.
    pub against: Option<Role>,
    pub bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Reached,
    Missed,
    /// One of the two servers was not measured on this row.
    NotMeasured,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub target: Target,
    /// What was reached, in the unit of the bound.
    pub value: Option<f64>,
    pub outcome: Outcome,
}

/// The targets of a row.
#[must_use]
pub(super) fn of(row: &Row) -> Vec<Target> {
    use Metric::{P50Micros, RatePerSecond, ServerCpuMicros};
    let to_etcd = |metric, bound| Target { metric, against: Some(Role::Etcd), bound };
    let cpu = |share| to_etcd(ServerCpuMicros, Bound::AtMost(share));
    let rate_of = |role, share| Target {
        metric: RatePerSecond,
        against: Some(role),
        bound: Bound::AtLeast(share),
    };
    let mut targets = ahead_of_etcd();
    match row.work {
        Work::Put { .. } if row.clients == 1 => {
            targets.push(to_etcd(P50Micros, Bound::AtMost(0.8)));
        }
        Work::Put { .. } | Work::TxnCreate | Work::TxnUpdate => {
            targets.extend([rate_of(Role::DurableCeiling, 0.8), cpu(0.7)]);
        }
        Work::Get => targets.push(rate_of(Role::Ceiling, 0.75)),
        Work::List(_) => targets.extend([rate_of(Role::Ceiling, 0.75), cpu(0.35)]),
        Work::Count => targets.extend([rate_of(Role::Ceiling, 0.75), cpu(0.15)]),
        Work::Watch { .. } => targets.push(cpu(0.35)),
        Work::LeaseGrant => targets.push(cpu(0.2)),
        Work::LeaseKeepAlive | Work::Mixed => {}
        Work::Fill => targets.extend([
            to_etcd(Metric::ResidentBytes, Bound::AtMost(0.5)),
            to_etcd(Metric::DiskAllocatedBytes, Bound::AtMost(0.7)),
            to_etcd(Metric::RestartMillis, Bound::AtMost(0.5)),
        ]),
        Work::PutWhile(disturbance) => targets.push(undisturbed(disturbance)),
    }
    targets
}

fn ahead_of_etcd() -> Vec<Target> {
    let against = Some(Role::Etcd);
    vec![
        Target { metric: Metric::RatePerSecond, against, bound: Bound::AtLeast(1.0) },
        Target { metric: Metric::P50Micros, against, bound: Bound::AtMost(1.0) },
        Target { metric: Metric::P99Micros, against, bound: Bound::AtMost(1.0) },
    ]
}

fn undisturbed(disturbance: Disturbance) -> Target {
    let (metric, bound) = match disturbance {
        Disturbance::Compaction | Disturbance::Snapshot => {
            (Metric::RateOfCalm, Bound::AtLeast(0.85))
        }
        Disturbance::SlowWatchers => (Metric::P99OfCalm, Bound::AtMost(1.2)),
    };
    Target { metric, against: None, bound }
}

// === impl Target ===

impl Target {
    /// Judges windlass by `figures`, which gives the medians of each server that was measured.
    #[must_use]
    pub fn judge<'a>(&self, figures: impl Fn(Role) -> Option<&'a Figures>) -> Verdict {
        let read = |role: Role| figures(role).and_then(|figures| figures.get(self.metric));
        let ours = read(Role::Windlass);
        let value = match self.against {
            None => ours,
            Some(role) => {
                ours.zip(read(role)).filter(|&(_, base)| base > 0.0).map(|(ours, base)| ours / base)
            }
        };
        let outcome = match value {
            None => Outcome::NotMeasured,
            Some(value) if self.bound.holds(value) => Outcome::Reached,
            Some(_) => Outcome::Missed,
        };
        Verdict { target: *self, value, outcome }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, bound) = match self.bound {
            Bound::AtLeast(bound) => ("≥", bound),
            Bound::AtMost(bound) => ("≤", bound),
        };
        write!(f, "{} {sign} {bound:.2}×", self.metric.name())?;
        match self.against {
            Some(role) => write!(f, " {role}"),
            None => Ok(()),
        }
    }
}

// === impl Bound ===

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

// === impl Outcome ===

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reached => "reached",
            Self::Missed => "missed",
            Self::NotMeasured => "not measured",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bound: Bound, ours: Option<f64>, etcd: Option<f64>) -> (Option<f64>, Outcome) {
        let figures = |value: Option<f64>| {
            value.map(|value| {
                let mut figures = Figures::default();
                figures.set(Metric::RatePerSecond, value);
                figures
            })
        };
        let (ours, etcd) = (figures(ours), figures(etcd));
        let target = Target { metric: Metric::RatePerSecond, against: Some(Role::Etcd), bound };
        let verdict = target.judge(|role| match role {
            Role::Windlass => ours.as_ref(),
            _ => etcd.as_ref(),
        });
        (verdict.value, verdict.outcome)
    }

    #[test]
    fn a_target_is_reached_missed_or_not_measured() {
        let least = Bound::AtLeast(1.0);
        assert_eq!(check(least, Some(20.0), Some(10.0)), (Some(2.0), Outcome::Reached));
        assert_eq!(check(least, Some(9.0), Some(10.0)), (Some(0.9), Outcome::Missed));
        assert_eq!(check(Bound::AtMost(0.5), Some(6.0), Some(10.0)), (Some(0.6), Outcome::Missed));
        assert_eq!(check(least, None, Some(10.0)), (None, Outcome::NotMeasured));
        assert_eq!(check(least, Some(9.0), None), (None, Outcome::NotMeasured));
    }
}
