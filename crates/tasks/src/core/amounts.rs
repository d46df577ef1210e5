//! Amounts of what tasks use up and nodes have. Arithmetic only; who may have what is decided
//! elsewhere.

use crate::wire;

/// So much of each resource. Scratch files in memory count as memory, so only those on disk are
/// apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Amounts {
    pub cpu_millis: u64,
    pub memory_bytes: u64,
    pub pids: u64,
    pub disk_bytes: u64,
}

/// One of the resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    Cpu,
    Memory,
    Pids,
    Disk,
}

// === impl Amounts ===

impl Amounts {
    #[must_use]
    pub fn of(&self, resource: Resource) -> u64 {
        match resource {
            Resource::Cpu => self.cpu_millis,
            Resource::Memory => self.memory_bytes,
            Resource::Pids => self.pids,
            Resource::Disk => self.disk_bytes,
        }
    }

    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// Never below nothing.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    /// The first resource of which there is not enough.
    #[must_use]
    pub fn exceeds(&self, whole: &Self) -> Option<Resource> {
        Resource::ALL.into_iter().find(|resource| self.of(*resource) > whole.of(*resource))
    }

    #[must_use]
    pub fn fits(&self, whole: &Self) -> bool {
        self.exceeds(whole).is_none()
    }

    /// How many of these fit into `whole`.
    #[must_use]
    pub fn times_in(&self, whole: &Self) -> u64 {
        let times = Resource::ALL.map(|each| whole.of(each).checked_div(self.of(each)));
        times.into_iter().flatten().min().unwrap_or(0)
    }

    /// The largest share of `whole` that is taken, from 0 to 1.
    #[must_use]
    pub fn share_of(&self, whole: &Self) -> f64 {
        let shares = Resource::ALL.map(|each| ratio(self.of(each), whole.of(each)));
        shares.into_iter().fold(0.0, f64::max)
    }

    fn zip(&self, other: &Self, join: fn(u64, u64) -> u64) -> Self {
        Self {
            cpu_millis: join(self.cpu_millis, other.cpu_millis),
            memory_bytes: join(self.memory_bytes, other.memory_bytes),
            pids: join(self.pids, other.pids),
            disk_bytes: join(self.disk_bytes, other.disk_bytes),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
fn ratio(part: u64, whole: u64) -> f64 {
    if part == 0 { 0.0 } else { (part as f64 / (whole.max(1) as f64)).min(1.0) }
}

impl From<wire::Amounts> for Amounts {
    fn from(wire: wire::Amounts) -> Self {
        let wire::Amounts { cpu_millis, memory_bytes, pids, disk_bytes } = wire;
        Self { cpu_millis, memory_bytes, pids, disk_bytes }
    }
}

impl From<Amounts> for wire::Amounts {
    fn from(amounts: Amounts) -> Self {
        let Amounts { cpu_millis, memory_bytes, pids, disk_bytes } = amounts;
        Self { cpu_millis, memory_bytes, pids, disk_bytes }
    }
}

// === impl Resource ===

impl Resource {
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Memory, Self::Pids, Self::Disk];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Disk => "disk",
        }
    }

    /// So much of it, for people: thousandths of a core as Kubernetes writes them, bytes in the unit
    /// that suits them.
    #[must_use]
    pub fn tell(self, amount: u64) -> String {
        match self {
            Self::Cpu => format!("{amount}m of cpu"),
            Self::Memory | Self::Disk => format!("{} of {}", bytes(amount), self.as_str()),
            Self::Pids => format!("{amount} pids"),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "one digit is told")]
fn bytes(amount: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| amount >> shift > 0) {
        Some((unit, shift)) => format!("{:.1}{unit}", amount as f64 / (1_u64 << shift) as f64),
        None => format!("{amount}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Amounts =
        Amounts { cpu_millis: 4000, memory_bytes: 1000, pids: 100, disk_bytes: 0 };

    fn ask(cpu_millis: u64, memory_bytes: u64, pids: u64, disk_bytes: u64) -> Amounts {
        Amounts { cpu_millis, memory_bytes, pids, disk_bytes }
    }

    #[test]
    fn the_scarcest_resource_decides() {
        for (request, times, exceeds) in [
            (ask(1000, 100, 1, 0), 4, None),
            (ask(1000, 300, 1, 0), 3, None),
            (ask(4000, 1000, 100, 0), 1, None),
            (ask(4001, 1, 1, 0), 0, Some(Resource::Cpu)),
            (ask(1, 1, 1, 1), 0, Some(Resource::Disk)),
        ] {
            assert_eq!(request.times_in(&NODE), times, "{request:?}");
            assert_eq!(request.exceeds(&NODE), exceeds, "{request:?}");
        }
    }

    #[test]
    fn amounts_are_told_in_units() {
        for (resource, amount, told) in [
            (Resource::Cpu, 50, "50m of cpu"),
            (Resource::Memory, 24_012_692_480, "22.4GiB of memory"),
            (Resource::Memory, 1 << 40, "1.0TiB of memory"),
            (Resource::Disk, 1023, "1023B of disk"),
            (Resource::Pids, 256, "256 pids"),
        ] {
            assert_eq!(resource.tell(amount), told);
        }
    }

    #[test]
    fn load_is_the_largest_share() {
        assert!((ask(1000, 500, 0, 0).share_of(&NODE) - 0.5).abs() < f64::EPSILON);
        assert!((ask(9999, 0, 0, 0).share_of(&NODE) - 1.0).abs() < f64::EPSILON);
        assert!(Amounts::default().share_of(&NODE).abs() < f64::EPSILON);
    }
}
