//! The formulae of one group: its counts and requests in, its sizes out. Pure arithmetic, on numbers
//! that any facts may have brought, so nothing overflows.

use crate::class::Class;

/// How many nodes and instances of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub ready: u32,
    pub suspended: u32,
    pub starting: u32,
    /// With `BrokenStart`.
    pub unready: u32,
    /// The part of `unready` that lacks nothing but a promised device.
    pub resource_unready: u32,
    /// Being drained: tainted, and still the group's.
    pub leaving: u32,
    /// Handed to the provider, being deleted or gone: the target has forgotten them.
    pub left: u32,
    pub unregistered: u32,
    pub long_unregistered: u32,
    pub create_failed: u32,
}

/// Everything the formulae take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    pub counts: Counts,
    pub target: u32,
    /// The sum that an unsettled increase waits for.
    pub expected_target: Option<u32>,
    /// Of open requests.
    pub increase: u32,
    pub is_backed_off: bool,
    pub open_deletions: u32,
    /// Whether the cloud has the group yet.
    pub exists: bool,
}

/// The sizes that are as they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// Below zero when more is late than the target has.
    pub min: i64,
    pub max: i64,
}

// === impl Counts ===

impl Counts {
    /// Counts a node.
    pub(crate) fn add_node(&mut self, class: Class, is_handed_over: bool, lacks_device: bool) {
        let counter = match class {
            Class::Ready => &mut self.ready,
            Class::Suspended => &mut self.suspended,
            Class::Starting => &mut self.starting,
            Class::BrokenStart | Class::Unready => &mut self.unready,
            Class::Leaving if !is_handed_over => &mut self.leaving,
            _ => &mut self.left,
        };
        *counter += 1;
        self.resource_unready += u32::from(class.is_unready() && lacks_device);
    }

    /// Counts an instance without Node.
    pub(crate) fn add_instance(&mut self, class: Class) {
        match class {
            Class::CreateFailed => self.create_failed += 1,
            Class::Unregistered => self.unregistered += 1,
            Class::LongUnregistered => self.long_unregistered += 1,
            _ => {}
        }
    }

    /// Nodes that the target speaks of.
    #[must_use]
    pub fn registered(&self) -> u32 {
        self.ready + self.unready + self.suspended + self.starting + self.leaving
    }

    /// All Node objects.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.registered() + self.left
    }

    /// Instances without Node that the target speaks of.
    #[must_use]
    pub fn unregistered_all(&self) -> u32 {
        self.unregistered + self.long_unregistered + self.create_failed
    }
}

// === impl Terms ===

impl Terms {
    #[must_use]
    pub fn range(&self) -> SizeRange {
        let late = i64::from(self.counts.long_unregistered) + i64::from(self.increase);
        let target = i64::from(self.target);
        SizeRange { min: target - late, max: target + i64::from(self.open_deletions) }
    }

    /// What is neither there nor known to be broken.
    #[must_use]
    pub fn gap(&self) -> u32 {
        let Counts { starting, unregistered, .. } = self.counts;
        let there = self.counts.registered() - starting;
        let failed = self.counts.unregistered_all() - unregistered;
        let target = self.expected_target.map_or(self.target, |it| it.max(self.target));
        target.saturating_sub(there.saturating_add(failed))
    }

    /// How many nodes will come without anybody asking again.
    #[must_use]
    pub fn upcoming(&self) -> u32 {
        if !self.exists {
            return self.target;
        }
        let gap = self.gap();
        let seen = gap.min(self.counts.starting + self.counts.unregistered);
        let awaited = if self.is_backed_off { 0 } else { (gap - seen).min(self.increase) };
        seen + awaited
    }

    /// What nobody has seen anything of.
    #[must_use]
    pub fn missing(&self) -> u32 {
        let there = self.counts.registered() + self.counts.unregistered_all();
        self.target.saturating_sub(there)
    }

    #[must_use]
    pub fn is_wrong_size(&self) -> bool {
        self.missing() > 0 || self.counts.registered() > self.target
    }
}
