//! How many pods may be disrupted: budgets, and what is already reserved of them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::labels::selects;

/// All budgets of a cluster, less what was reserved.
#[derive(Clone, Debug, Default)]
pub struct Budgets(Vec<Budget>);

#[derive(Clone, Debug)]
struct Budget {
    namespace: String,
    name: String,
    selector: Option<LabelSelector>,
    left: usize,
}

/// `NotEnoughPdb`: the budget that does not allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    pub namespace: String,
    pub name: String,
}

// === impl Budgets ===

impl Budgets {
    #[must_use]
    pub fn new(budgets: &[PodDisruptionBudget]) -> Self {
        let budget = |each: &PodDisruptionBudget| Budget {
            namespace: each.metadata.namespace.clone().unwrap_or_default(),
            name: each.metadata.name.clone().unwrap_or_default(),
            selector: each.spec.as_ref().and_then(|spec| spec.selector.clone()),
            left: each
                .status
                .as_ref()
                .map_or(0, |status| usize::try_from(status.disruptions_allowed).unwrap_or(0)),
        };
        Self(budgets.iter().map(budget).collect())
    }

    /// Whether any budget is about the pod.
    #[must_use]
    pub fn cover(&self, pod: &Pod) -> bool {
        self.0.iter().any(|budget| budget.covers(pod))
    }

    /// Reserves the disruption of all these pods, or of none.
    pub fn reserve(&mut self, pods: &[&Pod]) -> Result<(), Spent> {
        let needs: Vec<_> = self.0.iter().map(|budget| budget.need(pods)).collect();
        let short = self.0.iter().zip(&needs).find(|(budget, need)| budget.left < **need);
        if let Some((budget, _)) = short {
            let Budget { namespace, name, .. } = budget;
            return Err(Spent { namespace: namespace.clone(), name: name.clone() });
        }
        for (budget, need) in self.0.iter_mut().zip(needs) {
            budget.left -= need;
        }
        Ok(())
    }

    /// Gives back what was reserved for pods that stay after all.
    pub fn release(&mut self, pods: &[&Pod]) {
        for budget in &mut self.0 {
            budget.left += budget.need(pods);
        }
    }

    /// Nodes, by their place in the list, each with the pods that would leave it: first those that
    /// compete with no other for a budget that does not suffice for all of them.
    #[must_use]
    pub fn order(&self, nodes: &[Vec<&Pod>]) -> Vec<usize> {
        let needs: Vec<Vec<usize>> = (self.0.iter())
            .map(|budget| nodes.iter().map(|pods| budget.need(pods)).collect())
            .collect();
        let is_contested = |at: usize| {
            self.0.iter().zip(&needs).any(|(budget, needs)| {
                let competitors = needs.iter().filter(|need| **need > 0).count();
                needs[at] > 0 && competitors > 1 && needs.iter().sum::<usize>() > budget.left
            })
        };
        let mut order: Vec<_> = (0..nodes.len()).collect();
        order.sort_by_key(|at| is_contested(*at));
        order
    }
}

// === impl Budget ===

impl Budget {
    fn covers(&self, pod: &Pod) -> bool {
        let is_near = pod.metadata.namespace.as_deref().unwrap_or_default() == self.namespace;
        let none = BTreeMap::new();
        let labels = pod.metadata.labels.as_ref().unwrap_or(&none);
        is_near && self.selector.as_ref().is_some_and(|selector| selects(selector, labels))
    }

    fn need(&self, pods: &[&Pod]) -> usize {
        pods.iter().filter(|pod| self.covers(pod)).count()
    }
}
