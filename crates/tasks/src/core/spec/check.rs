//! One check per field, or per kind of field.

use std::collections::BTreeMap;
use std::time::Duration;

use super::error::{Problem, SpecError};
use super::{
    ARGS_MAX, ARGV_AND_ENV_BYTES_MAX, ENV_NAMES_MAX, LABEL_BYTES_MAX, LABELS_MAX, NAME_BYTES_MAX,
    Network, PRIORITY_MAX, RETRIES_MAX, ROOTFS_BYTES_MAX, STDIN_BYTES_MAX, Scratch, TIMEOUT_MAX,
    TIMEOUT_MIN, User,
};
use crate::wire;

type Result<T = ()> = std::result::Result<T, SpecError>;

/// Everything that has a length.
pub(super) fn texts(spec: &wire::TaskSpec) -> Result {
    command(spec)?;
    env(&spec.env)?;
    argv_and_env(spec)?;
    length("stdin", spec.stdin.len(), STDIN_BYTES_MAX)?;
    name("rootfs", &spec.rootfs, ROOTFS_BYTES_MAX)?;
    length("idempotency_key", spec.idempotency_key.len(), NAME_BYTES_MAX)?;
    length("name", spec.name.len(), NAME_BYTES_MAX)?;
    labels(&spec.labels)
}

fn command(spec: &wire::TaskSpec) -> Result {
    if spec.command.is_empty() {
        return Err(SpecError::new("command", Problem::Empty));
    }
    no_zero("command", &spec.command)?;
    count("args", spec.args.len(), ARGS_MAX)?;
    let args = spec.args.iter().enumerate();
    args.into_iter().try_for_each(|(index, arg)| no_zero(&format!("args[{index}]"), arg))
}

fn env(env: &BTreeMap<String, String>) -> Result {
    count("env", env.len(), ENV_NAMES_MAX)?;
    for (name, value) in env {
        if name.is_empty() {
            return Err(SpecError::new("env", Problem::Empty));
        }
        if name.contains('=') {
            return Err(SpecError::new("env", Problem::EqualsSign(name.clone())));
        }
        no_zero("env", name)?;
        no_zero(&format!("env[{name}]"), value)?;
    }
    Ok(())
}

fn argv_and_env(spec: &wire::TaskSpec) -> Result {
    let argv = spec.args.iter().chain([&spec.command]).map(|text| text.len() + 1);
    let env = spec.env.iter().map(|(name, value)| name.len() + "=".len() + value.len() + 1);
    length("args and env", argv.chain(env).sum(), ARGV_AND_ENV_BYTES_MAX)
}

fn labels(labels: &BTreeMap<String, String>) -> Result {
    count("labels", labels.len(), LABELS_MAX)?;
    for (key, value) in labels {
        if key.is_empty() {
            return Err(SpecError::new("labels", Problem::Empty));
        }
        length("labels", key.len(), LABEL_BYTES_MAX)?;
        length(&format!("labels[{key}]"), value.len(), LABEL_BYTES_MAX)?;
    }
    Ok(())
}

/// Each step as the kernel would take it: no step back, none that stays.
pub(super) fn workdir(path: String) -> Result<String> {
    if path.is_empty() {
        return Ok("/".to_owned());
    }
    no_zero("workdir", &path)?;
    let steps = path.strip_prefix('/').map(|rest| rest.split('/'));
    let is_step = |step: &str| !matches!(step, "" | "." | "..");
    let is_normal = path == "/" || steps.is_some_and(|mut steps| steps.all(is_step));
    if is_normal { Ok(path) } else { Err(SpecError::new("workdir", Problem::NotNormalised(path))) }
}

/// Without a group, the group of the same number.
pub(super) fn user(text: &str) -> Result<User> {
    if text.is_empty() {
        return Ok(User::NOBODY);
    }
    let (uid, gid) = text.split_once(':').unwrap_or((text, text));
    let id = |digits: &str| {
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    };
    match (id(uid), id(gid)) {
        (Some(uid), Some(gid)) => Ok(User { uid, gid }),
        _ => Err(SpecError::new("user", Problem::NotNumeric(text.to_owned()))),
    }
}

pub(super) fn network(value: i32) -> Result<Network> {
    match wire::Network::try_from(value) {
        Ok(wire::Network::None) => Ok(Network::None),
        Ok(wire::Network::Host) => Ok(Network::Host),
        Err(_) => Err(SpecError::new("network", Problem::Unknown(value))),
    }
}

pub(super) fn scratch(value: i32) -> Result<Scratch> {
    match wire::ScratchMedium::try_from(value) {
        Ok(wire::ScratchMedium::Memory) => Ok(Scratch::Memory),
        Ok(wire::ScratchMedium::Disk) => Ok(Scratch::Disk),
        Err(_) => Err(SpecError::new("resources.scratch_medium", Problem::Unknown(value))),
    }
}

pub(super) fn timeout(millis: Option<u64>) -> Result<Option<Duration>> {
    let Some(millis) = millis else { return Ok(None) };
    at_least("timeout_ms", millis, as_millis(TIMEOUT_MIN))?;
    at_most("timeout_ms", Some(millis), Duration::ZERO, TIMEOUT_MAX).map(Some)
}

pub(super) fn at_most(
    field: &str,
    millis: Option<u64>,
    default: Duration,
    max: Duration,
) -> Result<Duration> {
    let Some(value) = millis else { return Ok(default) };
    let max = as_millis(max);
    if value > max {
        return Err(SpecError::new(field, Problem::TooLarge { value, max }));
    }
    Ok(Duration::from_millis(value))
}

pub(super) fn at_least(field: &str, value: u64, min: u64) -> Result {
    if value < min {
        return Err(SpecError::new(field, Problem::TooSmall { value, min }));
    }
    Ok(())
}

pub(super) fn retries(value: u32) -> Result<u32> {
    if value > RETRIES_MAX {
        let (value, max) = (value.into(), RETRIES_MAX.into());
        return Err(SpecError::new("retries", Problem::TooLarge { value, max }));
    }
    Ok(value)
}

pub(super) fn priority(value: i32) -> Result<i32> {
    if !(-PRIORITY_MAX..=PRIORITY_MAX).contains(&value) {
        return Err(SpecError::new("priority", Problem::Priority(value)));
    }
    Ok(value)
}

/// Clients send names, never paths of the host.
fn name(field: &str, text: &str, max: usize) -> Result {
    length(field, text.len(), max)?;
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !text.bytes().all(is_name_byte) || matches!(text, "." | "..") {
        return Err(SpecError::new(field, Problem::NotAName(text.to_owned())));
    }
    Ok(())
}

fn length(field: &str, bytes: usize, max: usize) -> Result {
    if bytes > max {
        return Err(SpecError::new(field, Problem::TooLong { bytes, max }));
    }
    Ok(())
}

fn count(field: &str, count: usize, max: usize) -> Result {
    if count > max {
        return Err(SpecError::new(field, Problem::TooMany { count, max }));
    }
    Ok(())
}

fn no_zero(field: &str, text: &str) -> Result {
    if text.contains('\0') {
        return Err(SpecError::new(field, Problem::ZeroByte));
    }
    Ok(())
}

fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("bounds are days, not ages")
}
