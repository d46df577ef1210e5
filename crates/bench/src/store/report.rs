//! What a run found: everything for a machine to read, and a table for people.

use serde::{Deserialize, Serialize};

use super::{
    Scale,
    figures::Figures,
    row::Row,
    subject::Role,
    target::{self, Outcome, Verdict},
};
use crate::Machine;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub machine: Machine,
    pub scale: Scale,
    pub rounds: usize,
    pub rows: Vec<RowReport>,
    pub failures: Vec<Failure>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowReport {
    pub name: String,
    /// What the rate counts.
    pub unit: String,
    pub clients: usize,
    pub connections: usize,
    pub servers: Vec<Measured>,
    /// The figures of windlass in units of each other server's.
    pub ratios: Vec<Ratio>,
    pub verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub role: Role,
    pub medians: Figures,
    pub rounds: Vec<Figures>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub against: Role,
    pub figures: Figures,
}

/// A measurement that gave no figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub row: String,
    pub role: Role,
    /// From 1.
    pub round: usize,
    pub error: String,
}

// === impl Report ===

impl Report {
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        let verdicts = self.rows.iter().flat_map(|row| &row.verdicts);
        verdicts.filter(|verdict| verdict.outcome == outcome).count()
    }
}

// === impl RowReport ===

impl RowReport {
    pub(super) fn new(row: &Row, servers: Vec<Measured>) -> Self {
        let medians = |role: Role| {
            servers.iter().find(|server| server.role == role).map(|server| &server.medians)
        };
        let verdicts = target::of(row).iter().map(|target| target.judge(medians)).collect();
        let ratio = |role| {
            let figures = medians(Role::Windlass)?.ratios(medians(role)?);
            Some(Ratio { against: role, figures })
        };
        let others = [Role::Etcd, Role::Ceiling, Role::DurableCeiling];
        Self {
            name: row.name(),
            unit: row.work.unit().to_owned(),
            clients: row.clients,
            connections: row.connections,
            ratios: others.into_iter().filter_map(ratio).collect(),
            verdicts,
            servers,
        }
    }

    /// The ratios to one of the other servers, if it was measured.
    #[must_use]
    pub fn ratios_to(&self, role: Role) -> Option<&Figures> {
        self.ratios.iter().find(|ratio| ratio.against == role).map(|ratio| &ratio.figures)
    }
}

// === impl Measured ===

impl Measured {
    pub(super) fn new(role: Role, rounds: Vec<Figures>) -> Self {
        Self { role, medians: Figures::medians(&rounds), rounds }
    }
}
