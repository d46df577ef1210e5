//! Properties, one per file: of any facts, and of worlds in which machines come, register, break and
//! go while groups are resized by us and by others.

mod any_facts;
mod fault_stays_in_its_group;
mod lost_state;
mod one_action_per_instance;
mod one_size_change_per_group;
mod order_of_input;
mod reductions;
mod restarts;
mod seeded_bugs;
mod world;

use registry::{Config, Observation, Registry};

use self::world::{Event, World};

/// Limits that no world reaches, where a halt would hide what is looked at.
fn never_halting() -> Config {
    Config { unready_count_ok: 1_000, ..Config::default() }
}

/// A registry that lives in a world, carrying out its decisions as the world allows.
struct Life {
    world: World,
    registry: Registry,
}

// === impl Life ===

impl Life {
    fn new(config: Config) -> Self {
        Self { world: World::default(), registry: Registry::new(config) }
    }

    /// What a step makes the registry say, if it is one in which it looks.
    fn step(&mut self, event: &Event) -> Option<Observation> {
        self.world.happen(event, &mut self.registry);
        matches!(event, Event::Look { .. }).then(|| {
            let observation = self.registry.observe(self.world.now, &self.world.facts());
            self.world.decided = observation.decisions.clone();
            observation
        })
    }
}
