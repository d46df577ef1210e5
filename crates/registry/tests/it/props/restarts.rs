//! Saved and restored at any point, a registry decides as if nothing had happened.

use proptest::prelude::*;
use registry::{Config, Registry};

use super::Life;
use super::world::life;

proptest! {
    #[test]
    fn change_no_decision(events in life(), at in 0_usize..60) {
        let mut life = Life::new(Config::default());
        let mut other = None;
        for (number, event) in events.iter().enumerate() {
            if number == at {
                other = Some(restarted(&life));
            }
            let seen = life.step(event);
            if let Some(other) = &mut other {
                let has_looked = seen.is_some();
                prop_assert_eq!(other.step(event), seen);
                prop_assert_eq!(other.registry.save(), life.registry.save());
                if has_looked {
                    let now = life.world.now;
                    prop_assert_eq!(other.registry.removable(now), life.registry.removable(now));
                }
            }
        }
    }
}

/// The same life with a registry that was saved and restored.
fn restarted(life: &Life) -> Life {
    let bytes = life.registry.save();
    let registry = Registry::restore(Config::default(), &bytes, life.world.now).expect("our own");
    Life { world: life.world.clone(), registry }
}
