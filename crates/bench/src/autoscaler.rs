//! How long the autoscaler thinks: pods packed onto nodes, and whole iterations on a large cluster. Needs
//! no cluster; everything is made here, and nothing is asked of anybody.

mod iteration;
mod report;

use anyhow::Result;

pub use iteration::Iterated;
pub use report::Report;

use crate::Machine;
use crate::fit::{self, Scale};

/// How large everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub scale: Scale,
}

/// Measures all of it and tells `progress` of each step. Iterations come first: what a process has had
/// resident does not become less.
pub fn run(options: Options, progress: &mut dyn FnMut(&str)) -> Result<Report> {
    let machine = Machine::read()?;
    let iterations = iteration::run(options.scale)?;
    for iterated in &iterations {
        progress(&format!("{iterated}"));
    }
    let packings = fit::run(options.scale)?;
    progress(&format!("{} estimates", packings.len()));
    Ok(Report { machine, divisor: options.scale.divisor, iterations, packings })
}

// === impl Options ===

impl Options {
    /// What is published.
    #[must_use]
    pub fn full() -> Self {
        Self { scale: Scale { divisor: 1 } }
    }

    /// Shows that everything works; the figures mean little.
    #[must_use]
    pub fn quick() -> Self {
        Self { scale: Scale { divisor: 100 } }
    }
}
