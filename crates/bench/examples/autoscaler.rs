//! How long an iteration of the autoscaler's planners takes on a large cluster.
//!
//! ```text
//! cargo run --release -p bench --example autoscaler
//! ```

#![expect(clippy::print_stdout, reason = "an example is a program")]

use bench::autoscaler;
use bench::fit::Scale;

fn main() -> anyhow::Result<()> {
    let figures = autoscaler::run(Scale { divisor: 1 })?;
    println!("{}", autoscaler::table(&figures));
    Ok(())
}
