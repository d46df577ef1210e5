//! Whether a node has room for a task now. Keeps the account of what is reserved; measures nothing.

mod ledger;

use super::amounts::{Amounts, Resource};

pub use ledger::Ledger;

/// Left to the machine itself, or 5 % of it if that is more.
pub const MEMORY_RESERVE_BYTES_MIN: u64 = 512 << 20;
/// Left free in the data directory, or 5 % of it if that is more.
pub const DISK_RESERVE_BYTES_MIN: u64 = 2 << 30;
/// `full avg10` of memory pressure, in percent, from which on nothing new is started.
pub const PRESSURE_MAX: f64 = 10.0;

/// What the machine and the node's own cgroup have in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    pub host: Amounts,
    /// Not set where the node's own cgroup sets no limit.
    pub cgroup_cpu_millis: Option<u64>,
    pub cgroup_memory_bytes: Option<u64>,
    pub cgroup_pids: Option<u64>,
}

/// How the machine is now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    pub memory_available_bytes: u64,
    /// Not set where the kernel does not tell.
    pub memory_pressure: Option<f64>,
    pub disk_free_bytes: u64,
    pub disk_total_bytes: u64,
}

/// Why there is no room for a task beside those that are reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("too little {} is left", .0.as_str())]
    Reserved(Resource),
}

/// What of the machine itself keeps a node from taking tasks that would fit. Told to the other nodes,
/// hence without numbers that change all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Hindrance {
    /// Of tasks that ask for as much memory or more.
    #[error("the machine's memory is almost used up")]
    Memory { from_bytes: u64 },
    #[error("the machine waits for memory {PRESSURE_MAX} % of the time or more")]
    Pressure,
    #[error("the data directory is almost full")]
    Disk,
}

// === impl Totals ===

impl Totals {
    /// What tasks can have of it.
    #[must_use]
    pub fn capacity(&self) -> Amounts {
        let least = |host: u64, cgroup: Option<u64>| cgroup.map_or(host, |limit| limit.min(host));
        let memory = least(self.host.memory_bytes, self.cgroup_memory_bytes);
        Amounts {
            cpu_millis: least(self.host.cpu_millis, self.cgroup_cpu_millis),
            memory_bytes: memory.saturating_sub(memory_reserve(memory)),
            pids: least(self.host.pids, self.cgroup_pids),
            disk_bytes: self.host.disk_bytes.saturating_sub(disk_reserve(self.host.disk_bytes)),
        }
    }
}

// === impl Machine ===

impl Machine {
    /// Whether the machine itself can bear one more task that asks for `demand`, beside others that were
    /// promised `unmeasured_bytes` of memory since it was measured. What hinders every task is told before
    /// what hinders this one.
    pub fn admit(
        &self,
        demand: &Amounts,
        unmeasured_bytes: u64,
        capacity: &Amounts,
    ) -> Result<(), Hindrance> {
        if self.memory_pressure.is_some_and(|pressure| pressure >= PRESSURE_MAX) {
            return Err(Hindrance::Pressure);
        }
        if self.disk_free_bytes < disk_reserve(self.disk_total_bytes) {
            return Err(Hindrance::Disk);
        }
        let left = self.memory_available_bytes.saturating_sub(unmeasured_bytes);
        let left = left.saturating_sub(demand.memory_bytes);
        if left <= memory_reserve(capacity.memory_bytes) {
            return Err(Hindrance::Memory { from_bytes: demand.memory_bytes });
        }
        Ok(())
    }
}

// === impl Hindrance ===

impl Hindrance {
    #[must_use]
    pub fn hinders(self, demand: &Amounts) -> bool {
        match self {
            Self::Memory { from_bytes } => demand.memory_bytes >= from_bytes,
            Self::Pressure | Self::Disk => true,
        }
    }

    /// The one of the two that hinders more tasks.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        match (self, other) {
            (Self::Memory { from_bytes: a }, Self::Memory { from_bytes: b }) => {
                Self::Memory { from_bytes: a.min(b) }
            }
            (Self::Memory { .. }, all) | (all, _) => all,
        }
    }
}

fn memory_reserve(total: u64) -> u64 {
    MEMORY_RESERVE_BYTES_MIN.max(total / 20)
}

fn disk_reserve(total: u64) -> u64 {
    DISK_RESERVE_BYTES_MIN.max(total / 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn machine() -> Machine {
        Machine {
            memory_available_bytes: 4 * GIB,
            memory_pressure: Some(0.5),
            disk_free_bytes: 3 * GIB,
            disk_total_bytes: 40 * GIB,
        }
    }

    fn admit(machine: Machine, memory_bytes: u64) -> Result<(), Hindrance> {
        let demand = Amounts { memory_bytes, ..Amounts::default() };
        machine.admit(&demand, 0, &Amounts { memory_bytes: 4 * GIB, ..Amounts::default() })
    }

    #[test]
    fn capacity_leaves_the_machine_its_share() {
        let host = Amounts { cpu_millis: 8000, memory_bytes: 4 * GIB, pids: 9, disk_bytes: GIB };
        let unlimited =
            Totals { host, cgroup_cpu_millis: None, cgroup_memory_bytes: None, cgroup_pids: None };
        let capacity = unlimited.capacity();
        assert_eq!(capacity.memory_bytes, 4 * GIB - MEMORY_RESERVE_BYTES_MIN);
        assert_eq!((capacity.cpu_millis, capacity.disk_bytes), (8000, 0));

        let limited = Totals {
            cgroup_memory_bytes: Some(GIB),
            cgroup_cpu_millis: Some(1500),
            cgroup_pids: Some(100),
            ..unlimited
        };
        let capacity = limited.capacity();
        assert_eq!(capacity.memory_bytes, GIB - MEMORY_RESERVE_BYTES_MIN);
        assert_eq!((capacity.cpu_millis, capacity.pids), (1500, 9));

        let large = Totals { host: Amounts { memory_bytes: 100 * GIB, ..host }, ..unlimited };
        assert_eq!(large.capacity().memory_bytes, 95 * GIB);
    }

    #[test]
    fn each_sign_of_a_full_machine_refuses() {
        assert_eq!(admit(machine(), GIB), Ok(()));
        let left = 4 * GIB - MEMORY_RESERVE_BYTES_MIN;
        assert_eq!(admit(machine(), left), Err(Hindrance::Memory { from_bytes: left }));
        assert_eq!(admit(machine(), left - 1), Ok(()));
        let pressed = Machine { memory_pressure: Some(10.0), ..machine() };
        assert_eq!(admit(pressed, 1), Err(Hindrance::Pressure));
        let untold = Machine { memory_pressure: None, ..machine() };
        assert_eq!(admit(untold, 1), Ok(()));
        let full = Machine { disk_free_bytes: 2 * GIB - 1, ..machine() };
        assert_eq!(admit(full, 1), Err(Hindrance::Disk));
    }

    #[test]
    fn the_worse_of_two_hinders_what_either_does() {
        let memory = |from_bytes| Hindrance::Memory { from_bytes };
        let all = [memory(1), memory(5), Hindrance::Pressure, Hindrance::Disk];
        for (a, b) in all.into_iter().flat_map(|a| all.map(|b| (a, b))) {
            for memory_bytes in [0, 1, 4, 5] {
                let demand = Amounts { memory_bytes, ..Amounts::default() };
                let is_hindered = a.hinders(&demand) || b.hinders(&demand);
                assert_eq!(a.worse(b).hinders(&demand), is_hindered, "{a:?}, {b:?}, {demand:?}");
            }
        }
    }
}
