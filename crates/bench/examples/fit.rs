//! The core that places pods, alone.
//!
//! ```text
//! cargo run --release -p bench --example fit
//! ```

#![expect(clippy::print_stdout, reason = "an example is a program")]

use bench::fit::{self, Scale};

fn main() -> anyhow::Result<()> {
    let figures = fit::run(Scale { divisor: 1 })?;
    println!("{}", fit::table(&figures));
    Ok(())
}
