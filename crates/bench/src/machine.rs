//! What a table of measurements says of the machine it was made on.

use std::{fmt, fs};

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub cores: usize,
    pub cpu: String,
    pub memory_bytes: u64,
    pub kernel: String,
}

// === impl Machine ===

impl Machine {
    /// Reads this machine.
    pub fn read() -> anyhow::Result<Self> {
        let cpu = fs::read_to_string("/proc/cpuinfo")?;
        let memory = fs::read_to_string("/proc/meminfo")?;
        Ok(Self {
            cores: std::thread::available_parallelism()?.get(),
            cpu: field(&cpu, "model name").unwrap_or("unknown processor").to_owned(),
            memory_bytes: field(&memory, "MemTotal").and_then(kibibytes).unwrap_or(0),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, cpu, memory_bytes, kernel } = self;
        let gibibytes = memory_bytes >> 30;
        write!(f, "{cores} cores ({cpu}), {gibibytes} GiB, Linux {kernel}")
    }
}

/// The value of `name: value` in one of the kernel's lists.
pub(crate) fn field<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    list.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

/// `123 kB`, in bytes.
pub(crate) fn kibibytes(text: &str) -> Option<u64> {
    let number = text.strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    Some(number * 1024)
}
