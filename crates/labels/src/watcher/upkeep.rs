//! Writing checkpoints and the position to resume from. Each is tried once: whoever asked decides
//! when to try again.

use std::sync::Arc;

use super::{Context, reading, tell};
use crate::{
    core::{
        checkpoint::Checkpoint,
        names::NodeHash,
        object::{Document, LiveNode},
        rv::ResourceVersion,
        watch::{
            checkpoints::Saved,
            resume::{self, Step},
        },
    },
    kubernetes::{Error, Guard, Kind},
};

/// What became of a checkpoint.
pub(super) enum Upkept {
    Saved(Saved),
    /// Trying again may help.
    NotNow(NodeHash),
    /// The labels fit into no checkpoint.
    Never(NodeHash),
}

/// Saves the node's labels, over the checkpoint that is there if it is still that one.
pub(super) async fn save(context: Arc<Context>, live: LiveNode, over: Option<Saved>) -> Upkept {
    let node = NodeHash::of(&live.name);
    let document = match Checkpoint::of(&live).encode() {
        Ok(document) => document,
        Err(error) => {
            tracing::warn!(node = live.name, %error, "the labels of a node cannot be saved");
            tell::too_large(&context.events, &live.name, Some(&live.uid), error);
            return Upkept::Never(node);
        }
    };
    let written = match over {
        None => context.objects.checkpoints.create(&document).await,
        Some(Saved { object_uid: uid, object_rv: rv, .. }) => {
            context.objects.checkpoints.replace(&Document { uid, rv, ..document }).await
        }
    };
    match written {
        Ok(document) => {
            context.status.on_saved();
            reading::saved(&document).map_or(Upkept::NotNow(node), Upkept::Saved)
        }
        Err(error) => {
            on_failure(&context, &error);
            Upkept::NotNow(node)
        }
    }
}

/// Removes a checkpoint if it is still this one.
pub(super) async fn remove(context: Arc<Context>, saved: Saved) {
    let guard = Guard { uid: saved.object_uid.clone(), rv: saved.object_rv.clone() };
    let name = saved.node_hash().to_string();
    match context.objects.checkpoints.delete(&name, guard).await {
        Ok(()) => context.status.on_saved(),
        Err(error) => on_failure(&context, &error),
    }
}

/// Keeps the position, over the one that is there if it is still that one.
pub(super) async fn keep(context: Arc<Context>, step: Step, over: Option<Document>) {
    let kept = match step {
        Step::Nothing => Ok(()),
        Step::Write { position } => write(&context, &position, over).await,
        Step::Verify { kept, position } => match reading::position(&context.objects).await {
            Ok(server) if server < kept => {
                tracing::warn!(%kept, %server, %position, "the kept position is in the future");
                write(&context, &position, over).await
            }
            Ok(_) => Ok(()),
            Err(reading::Error::Read(error)) => Err(error),
            // The feed of nodes has met the same, and told.
            Err(reading::Error::Position(_)) => Ok(()),
        },
    };
    if let Err(error) = kept {
        on_failure(&context, &error);
    }
}

async fn write(
    context: &Context,
    position: &ResourceVersion,
    over: Option<Document>,
) -> Result<(), Error> {
    let document = resume::encode(position);
    let written = match over {
        None => context.objects.checkpoints.create(&document).await,
        Some(Document { uid, rv, .. }) => {
            context.objects.checkpoints.replace(&Document { uid, rv, ..document }).await
        }
    };
    written.map(|_| context.status.on_saved())
}

/// Another watcher was faster, as happens, or something is wrong.
fn on_failure(context: &Context, error: &Error) {
    context.status.on_save_failed(error);
    let is_usual = matches!(error.kind, Kind::Conflict | Kind::AlreadyExists | Kind::NotFound);
    let error = error as &dyn std::error::Error;
    if is_usual {
        tracing::debug!(error, "another watcher was faster");
    } else {
        tracing::warn!(error, "trying again later");
    }
}
