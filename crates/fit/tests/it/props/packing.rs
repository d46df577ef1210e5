//! Packing never overfills, and leaves out nothing that would fit.

use fit::{Packing, Plan, Refusal};
use proptest::prelude::*;

use super::CASES;
use super::life::{Life, depends_on_company, events};
use crate::scene::node;

const MACHINE: &str = "{name: t, labels: {kubernetes.io/hostname: t, zone: z1}}";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn every_pod_is_placed_where_it_fits_or_fits_nowhere(
        events in events(),
        wanted in proptest::collection::vec(any::<usize>(), 0..20),
        steps in 1_usize..50,
    ) {
        let mut life = Life::new();
        events.iter().for_each(|event| life.happen(event));
        let pods: Vec<_> = wanted.iter().map(|pod| life.class(*pod)).collect();
        let nodes: Vec<_> = life.nodes.iter().map(|(id, ..)| *id).collect();
        let template = life.cluster.template(&node(MACHINE), Vec::new()).unwrap();
        let plan =
            Plan { pods: &pods, nodes: nodes.clone(), template: Some(&template), new_nodes_max: 4 };
        let mut packing = Packing::new(life.cluster.fork(), &plan);
        while !packing.advance(steps) {}
        let packed = packing.finish();

        let mut seen = vec![false; pods.len()];
        let mut packed = packed;
        for (pod, place) in &packed.placed {
            prop_assert!(!std::mem::replace(&mut seen[*pod], true));
            prop_assert!(packed.new_nodes.contains(place) || nodes.contains(place));
            // Nobody who came later took its room or was let in against its will.
            packed.cluster.remove(pods[*pod], *place);
            let refusal = packed.cluster.explain(pods[*pod], *place);
            packed.cluster.place(pods[*pod], *place);
            let is_kept = matches!(refusal, None | Some(Refusal::Spread(_) | Refusal::PodAffinity));
            prop_assert!(is_kept, "{:?}", refusal);
        }
        for pod in packed.left.iter().flat_map(|left| &left.pods) {
            prop_assert!(!std::mem::replace(&mut seen[*pod], true));
            for node in &nodes {
                // Company may have come after it was given up.
                let fits = packed.cluster.fits(pods[*pod], *node);
                prop_assert!(!fits || depends_on_company(wanted[*pod]));
            }
        }
        prop_assert!(seen.into_iter().all(|seen| seen), "each is placed or left, and told once");
        prop_assert!(packed.new_nodes.iter().all(|node| packed.cluster.pods_on(*node) > 0));
        prop_assert!(packed.new_nodes.len() <= 4);
    }
}
