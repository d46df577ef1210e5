//! The limits of one attempt, as what is written into which file.

use crate::Limits;

/// The kernel's default period, over which a quota is counted.
const CPU_PERIOD_US: u64 = 100_000;

/// The least quota per period that the kernel takes.
const CPU_QUOTA_US_MIN: u64 = 1_000;

/// One file to be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) controller: &'static str,
    pub(super) file: &'static str,
    pub(super) value: String,
    /// Not every kernel has the file; where it has not, there is nothing to limit.
    pub(super) is_optional: bool,
}

// === impl Setting ===

impl Setting {
    fn new(controller: &'static str, file: &'static str, value: impl ToString) -> Self {
        Self { controller, file, value: value.to_string(), is_optional: false }
    }

    fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }
}

/// In the order in which they must be written: memory and swap together may never be limited below
/// memory alone.
pub(super) fn in_v1(limits: &Limits) -> Vec<Setting> {
    let mut settings = vec![
        // One processor weighs what a group weighs by default; the bounds are the kernel's.
        Setting::new("cpu", "cpu.shares", weight(limits, 1024).clamp(2, 262_144)),
        Setting::new("memory", "memory.limit_in_bytes", limits.memory_bytes),
        Setting::new("memory", "memory.memsw.limit_in_bytes", limits.memory_bytes).optional(),
        Setting::new("pids", "pids.max", limits.pids),
    ];
    if let Some(quota_us) = quota_us(limits) {
        settings.push(Setting::new("cpu", "cpu.cfs_period_us", CPU_PERIOD_US));
        settings.push(Setting::new("cpu", "cpu.cfs_quota_us", quota_us));
    }
    settings
}

pub(super) fn in_v2(limits: &Limits) -> Vec<Setting> {
    let mut settings = vec![
        Setting::new("cpu", "cpu.weight", weight(limits, 100).clamp(1, 10_000)),
        Setting::new("memory", "memory.max", limits.memory_bytes),
        Setting::new("memory", "memory.swap.max", 0).optional(),
        // The attempt ends whole: a survivor of half of it would only hang.
        Setting::new("memory", "memory.oom.group", 1),
        Setting::new("pids", "pids.max", limits.pids),
    ];
    if let Some(quota_us) = quota_us(limits) {
        settings.push(Setting::new("cpu", "cpu.max", format!("{quota_us} {CPU_PERIOD_US}")));
    }
    settings
}

/// The weight in units of which `of_one_processor` is a whole processor.
fn weight(limits: &Limits, of_one_processor: u64) -> u64 {
    limits.cpu_weight_millis.saturating_mul(of_one_processor) / 1000
}

fn quota_us(limits: &Limits) -> Option<u64> {
    let millis = limits.cpu_quota_millis?;
    Some((millis.saturating_mul(CPU_PERIOD_US) / 1000).max(CPU_QUOTA_US_MIN))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::Medium;

    const LIMITS: Limits = Limits {
        cpu_weight_millis: 1500,
        cpu_quota_millis: Some(250),
        memory_bytes: 64 << 20,
        pids: 256,
        scratch_bytes: 64 << 20,
        scratch_medium: Medium::Memory,
    };

    fn check(settings: &[Setting], expected: &Expect) {
        let line = |setting: &Setting| {
            let optional = if setting.is_optional { " if there" } else { "" };
            format!("{} = {}{optional}\n", setting.file, setting.value)
        };
        expected.assert_eq(&settings.iter().map(line).collect::<String>());
    }

    #[test]
    fn the_same_limits_in_both_worlds() {
        check(
            &in_v1(&LIMITS),
            &expect![[r#"
                cpu.shares = 1536
                memory.limit_in_bytes = 67108864
                memory.memsw.limit_in_bytes = 67108864 if there
                pids.max = 256
                cpu.cfs_period_us = 100000
                cpu.cfs_quota_us = 25000
            "#]],
        );
        check(
            &in_v2(&LIMITS),
            &expect![[r#"
                cpu.weight = 150
                memory.max = 67108864
                memory.swap.max = 0 if there
                memory.oom.group = 1
                pids.max = 256
                cpu.max = 25000 100000
            "#]],
        );
    }

    #[test]
    fn extremes_stay_within_what_the_kernel_takes() {
        let tiny = Limits { cpu_weight_millis: 1, cpu_quota_millis: Some(1), ..LIMITS };
        let huge = Limits { cpu_weight_millis: u64::MAX, cpu_quota_millis: None, ..LIMITS };
        assert_eq!(in_v1(&tiny)[0].value, "2");
        assert_eq!(in_v2(&tiny)[0].value, "1");
        assert_eq!(quota_us(&tiny), Some(1_000));
        assert_eq!(in_v1(&huge)[0].value, "262144");
        assert_eq!(in_v2(&huge)[0].value, "10000");
    }
}
