//! An autoscaler that runs, and what it answers.

use anyhow::{Result, ensure};
use e2e::http;
use e2e::process::Process;
use e2e::wait::{Level, wait_for};
use serde_json::Value;

use super::PATIENCE;

pub(crate) struct Autoscaler {
    pub(crate) process: Process,
    pub(crate) port: u16,
}

// === impl Autoscaler ===

impl Autoscaler {
    /// What it answers about itself.
    pub(crate) async fn status(&mut self) -> Result<Value> {
        self.process.ensure_alive()?;
        let answer = http::get(self.port, "/status").await?;
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.body);
        answer.json()
    }

    pub(crate) async fn explain(&self, name: &str) -> Result<String> {
        let answer = http::get(self.port, &format!("/explain/{name}")).await?;
        Ok(answer.body)
    }

    /// Waits until what it says of a name has these words.
    pub(crate) async fn wait_explained(&mut self, name: &str, words: &str) -> Result<String> {
        wait_for(&format!("{name} to be explained by {words}"), PATIENCE, async || {
            self.process.ensure_alive()?;
            // It may not listen yet.
            Ok(match self.explain(name).await {
                Ok(said) if said.contains(words) => Level::Reached(said),
                Ok(said) => Level::Below(said),
                Err(error) => Level::Below(format!("{error:#}")),
            })
        })
        .await
    }

    /// The value of a metric, summed over its labels; zero if it was never touched.
    pub(crate) async fn metric(&self, name: &str) -> Result<f64> {
        http::metric(self.port, name).await
    }

    /// Waits until a metric is as wanted.
    pub(crate) async fn wait_metric(
        &mut self,
        name: &str,
        wanted: impl Fn(f64) -> bool,
    ) -> Result<()> {
        wait_for(name, PATIENCE, async || {
            self.process.ensure_alive()?;
            let value = self.metric(name).await?;
            Ok(if wanted(value) { Level::Reached(()) } else { Level::Below(value.to_string()) })
        })
        .await
    }

    /// Waits until its status is as wanted.
    pub(crate) async fn wait_status(
        &mut self,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        wait_for(what, PATIENCE, async || {
            Ok(match self.status().await {
                Ok(status) if wanted(&status) => Level::Reached(status),
                Ok(status) => Level::Below(status.to_string()),
                Err(error) => {
                    self.process.ensure_alive()?;
                    Level::Below(format!("{error:#}"))
                }
            })
        })
        .await
    }

    pub(crate) async fn stop(self) -> Result<()> {
        let status = self.process.stop().await?;
        ensure!(status.success(), "the autoscaler ended with {status}");
        Ok(())
    }
}

/// A group's part of a status.
pub(crate) fn group<'a>(status: &'a Value, name: &str) -> &'a Value {
    let groups = status["nodeGroups"].as_array().map(Vec::as_slice).unwrap_or_default();
    groups.iter().find(|group| group["name"] == name).unwrap_or(&Value::Null)
}

/// How many nodes a group is meant to have; −1 if that is not known.
pub(crate) fn target(status: &Value, name: &str) -> i64 {
    group(status, name)["health"]["cloudProviderTarget"].as_i64().unwrap_or(-1)
}
