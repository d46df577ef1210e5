//! Creating the tables, once.

use ignite_client::Client;

use crate::{
    Error, Options,
    error::Step,
    grid::Attempts,
    head::Head,
    layout::{Layout, check_schema, script},
    lifecycle::Engine,
};

/// Creates schema, zone and tables where they are missing, and leaves what is there. Blocks.
///
/// # Errors
///
/// If the grid cannot be reached, or holds something else under these names.
pub fn init(options: &Options) -> Result<(), Error> {
    check_schema(&options.schema)?;
    let options = options.clone().with_certificates()?;
    Engine::start()?.wait(async move { create(&options).await })
}

async fn create(options: &Options) -> Result<(), Error> {
    let client = Client::connect(options.client.clone()).await.step("connect to the grid")?;
    // A grid that has just started may drop connections. What is there already is left, so all of it
    // may be asked for again.
    let mut attempts = Attempts::default();
    while let Err(error) = client.execute_script(&script(options)).await {
        attempts.go_on(error.into(), "create the journal's tables").await?;
    }
    let name = format!("{}.HEAD", options.schema);
    let head = client.table(&name).await.step("find the journal's tables")?;
    // Whoever comes second finds the row and leaves it.
    match head.insert(None, &Head::EMPTY.to_row(&Layout::new())).await {
        Err(
            error @ (ignite_client::Error::NoColumn { .. }
            | ignite_client::Error::WrongType { .. }
            | ignite_client::Error::NoKey { .. }),
        ) => Err(Error::Foreign { schema: options.schema.clone(), what: error.to_string() }),
        inserted => inserted.step("write the first HEAD").map(drop),
    }
}
