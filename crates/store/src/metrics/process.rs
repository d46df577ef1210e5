//! What the operating system says of this process, under the names that every Prometheus client
//! library gives it. What the system does not tell is left out.

use std::{fmt, fs, time::SystemTime};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter},
};
use rustix::{
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

use super::{state::gauge, unix_seconds};

#[derive(Debug)]
pub(crate) struct ProcessMetrics {
    pub(crate) started: SystemTime,
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu_s = std::time::Duration::try_from(cpu).map_or(0.0, |cpu| cpu.as_secs_f64());
        ConstCounter::new(cpu_s).encode(encoder.encode_descriptor(
            "process_cpu_seconds",
            "Time on processors",
            None,
            MetricType::Counter,
        )?)?;
        let started = unix_seconds(self.started);
        gauge(encoder, "process_start_time_seconds", "When the store was started", started)?;
        if let Some(bytes) = resident_bytes() {
            gauge(encoder, "process_resident_memory_bytes", "Memory in use", bytes)?;
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            gauge(encoder, "process_open_fds", "Open files", files.count())?;
        }
        if let Some(files) = getrlimit(Resource::Nofile).current {
            gauge(encoder, "process_max_fds", "Files that may be open", files)?;
        }
        Ok(())
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
