//! One call to the provider. The intent is saved before it, over the state that this term knows: so a
//! crash neither repeats nor loses it, and who no longer leads cannot make it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use registry::{GroupId, Outcome, RemovalReason, Step, Targets};

use super::Driver;
use super::term::{Term, TermError};
use crate::cluster::Cluster;
use crate::core::{Call, Effect, Machine, World};
use crate::facts;
use crate::options::Mode;
use crate::provider::{Error, NodeRef, Provider};
use crate::record::Entry;

// === impl Term ===

impl Term {
    pub(super) async fn call<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        call: &Call,
        world: &World,
    ) -> Result<Effect, TermError> {
        let words = words(call);
        let read = match self.fresh_target(driver, call.group()).await {
            Ok(read) => read,
            Err(error) => return Ok(Effect::Failed(refused(&error, &words))),
        };
        let intent = match call.intent(read) {
            Ok(intent) => intent,
            Err(stale) => {
                tracing::info!(%stale, words, "not done: something has changed");
                return Ok(Effect::Stale);
            }
        };
        if driver.options.mode != Mode::Act {
            self.foresee(&words);
            return Ok(Effect::Stale);
        }
        // An intent that is saved and not carried out would be waited for by whoever comes next.
        self.may_begin(driver)?;
        let requested = Outcome { action: intent.clone(), step: Step::Requested };
        if let Err(message) = self.record(driver, requested) {
            return Ok(Effect::Failed(message));
        }
        let both = (&self.registry, &self.memory);
        let written = self.keeper.write(&*driver.cluster, both, (driver.clock)()).await;
        written.map_err(TermError::Save)?;
        // Saving may have taken its time.
        self.may_begin(driver)?;
        let effect = match perform(driver.reader.provider(), call, world).await {
            Ok(()) => {
                tracing::info!(words, "done");
                driver.metrics.on_called(call);
                Effect::Done
            }
            Err(error) => {
                driver.metrics.on_refused_call();
                effect(&error, refused(&error, &words))
            }
        };
        if let Some(outcome) = effect.outcome(intent)
            && let Err(message) = self.record(driver, outcome)
        {
            tracing::error!(message, words, "what came of it is not remembered");
        }
        Ok(effect)
    }

    fn record<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        outcome: Outcome,
    ) -> Result<(), String> {
        let now = (driver.clock)();
        match self.registry.record(now, &outcome) {
            Ok(notices) => {
                self.log.enter(|| Entry::Recorded { now, outcome });
                self.tell_notices(driver, notices);
                Ok(())
            }
            Err(error) => {
                tracing::error!(%error, ?outcome, "it cannot be remembered");
                Err(error.to_string())
            }
        }
    }

    /// The target as it is now; it is shown from now on.
    async fn fresh_target<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        group: &GroupId,
    ) -> Result<u32, Error> {
        let target = driver.reader.provider().target(group).await?;
        let target = u32::try_from(target).unwrap_or(0);
        let targets = Targets(BTreeMap::from([(group.clone(), target)]));
        self.registry.refresh_targets(&targets);
        self.log.enter(|| Entry::TargetsRead(targets));
        Ok(target)
    }
}

async fn perform<P: Provider>(provider: &P, call: &Call, world: &World) -> Result<(), Error> {
    match call {
        Call::Increase { group, delta, .. } => match NonZeroU32::new(*delta) {
            Some(by) => provider.increase(group, by).await,
            None => Ok(()),
        },
        Call::Decrease { group, delta, .. } => match NonZeroU32::new(*delta) {
            Some(by) => provider.decrease(group, by).await,
            None => Ok(()),
        },
        Call::Delete { group, machine, .. } => {
            provider.delete(group, &[named(machine, world)]).await
        }
    }
}

/// What names a machine to the provider: its Node, if it has one.
fn named(machine: &Machine, world: &World) -> NodeRef {
    let node = machine.node.as_ref().and_then(|name| world.nodes.get(name));
    let read = node.and_then(|node| facts::node_ref(node));
    match (read, machine.reason) {
        // A Node without an id is known to us by its machine's.
        (Some(node), _) => NodeRef { provider_id: machine.instance.0.clone(), ..node },
        (None, RemovalReason::CreateFailed) => NodeRef::create_failed(&machine.instance),
        (None, _) => NodeRef::unregistered(&machine.instance),
    }
}

/// What is not answered, or with something unreadable, may have been done.
fn effect(error: &Error, message: String) -> Effect {
    match error {
        Error::Rejected { .. } | Error::Unsupported { .. } => Effect::Failed(message),
        Error::Unknown { .. } | Error::Unreadable { .. } => Effect::Unknown,
    }
}

fn refused(error: &Error, words: &str) -> String {
    let message = super::chain(error);
    tracing::warn!(error = message, words, "the provider did not do it");
    message
}

fn words(call: &Call) -> String {
    match call {
        Call::Increase { group, delta, target } => {
            format!("raise the target of {group} by {delta} from {target}")
        }
        Call::Decrease { group, delta, .. } => format!("lower the target of {group} by {delta}"),
        Call::Delete { group, machine: Machine { instance, node, reason }, .. } => {
            let what = node.as_ref().map_or_else(|| instance.to_string(), ToString::to_string);
            format!("delete {what} of {group}: {reason:?}")
        }
    }
}
