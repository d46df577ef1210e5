//! Creating the tables, once.

use ignite_client::Client;

use crate::{
    Error, Options,
    error::Step,
    grid::Attempts,
    head::Head,
    layout::{Layout, check_schema, script},
    lifecycle::Engine,
    settings::too_few_replicas,
};

/// Creates schema, zone and tables where they are missing, and leaves what is there. Blocks.
///
/// # Errors
///
/// If it is to keep too few replicas, unless that is allowed, or the grid cannot be reached, or holds something else under these names.
pub fn init(options: &Options) -> Result<(), Error> {
    check_schema(&options.schema)?;
    check_replicas(options)?;
    let options = options.clone().with_certificates()?;
    Engine::start()?.wait(async move { create(&options).await })
}

/// Before anything is made: a zone that is there keeps its number.
fn check_replicas(options: &Options) -> Result<(), Error> {
    match too_few_replicas(&options.schema, options.replicas.into()) {
        Some(few) if !options.is_unsafe_allowed => {
            Err(Error::UnsafeSettings { unsafe_settings: vec![few] })
        }
        _ => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The zone was made, and only then refused, and could not be made anew.
    #[test]
    fn too_few_replicas_are_refused_before_anything_is_made() {
        let mut options = Options::from_url("ignite://127.0.0.1:1").unwrap();
        options.replicas = 2;
        let refused = init(&options).unwrap_err();
        assert!(matches!(refused, Error::UnsafeSettings { .. }), "{refused}");
        options.is_unsafe_allowed = true;
        check_replicas(&options).unwrap();
    }
}
