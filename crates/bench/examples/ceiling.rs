//! A ceiling as a process of its own: `ceiling LISTEN OBJECTS [DATA_DIR]`.

use bench::ceiling::{Ceiling, Options};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ceiling = Ceiling::bind(&Options::parse(&args)?).await?;
    ceiling.run(CancellationToken::new()).await
}
