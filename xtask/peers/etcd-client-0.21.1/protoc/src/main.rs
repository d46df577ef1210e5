//! As much of protoc as prost's build scripts ask for: imports and source information included,
//! `-I FOLDER` any number of times, `-o FILE`, and the files to compile.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use protox::Compiler;

#[derive(Default)]
struct Order {
    includes: Vec<PathBuf>,
    files: Vec<PathBuf>,
    output: PathBuf,
}

fn main() -> Result<()> {
    let order = Order::read(env::args().skip(1))?;
    let mut compiler = Compiler::new(order.includes).context("read the folders of imports")?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(order.files).context("compile")?;
    fs::write(&order.output, compiler.encode_file_descriptor_set())
        .with_context(|| format!("write {}", order.output.display()))
}

// === impl Order ===

impl Order {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut order = Self::default();
        while let Some(argument) = arguments.next() {
            let mut value =
                || arguments.next().with_context(|| format!("nothing after {argument}"));
            match argument.as_str() {
                "-I" => order.includes.push(value()?.into()),
                "-o" => order.output = value()?.into(),
                // Always done.
                "--include_imports" | "--include_source_info" => {}
                option if option.starts_with('-') => bail!("unknown option {option}"),
                file => order.files.push(file.into()),
            }
        }
        Ok(order)
    }
}
