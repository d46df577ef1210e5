//! Changes what a machine can put right: formatting, and the lints clippy can apply.

use anyhow::Result;

use crate::checkout::Checkout;
use crate::process;

pub(crate) fn run(checkout: &Checkout) -> Result<bool> {
    let mut clippy = checkout.cargo(&["clippy", "--workspace", "--all-targets", "--all-features"]);
    clippy.args(["--fix", "--allow-dirty", "--allow-staged"]);
    let is_fixed = process::run_in_front(&mut clippy)?;
    // Formatting comes last, because applied lints leave long lines behind.
    Ok(process::run_in_front(&mut checkout.cargo(&["fmt", "--all"]))? && is_fixed)
}
