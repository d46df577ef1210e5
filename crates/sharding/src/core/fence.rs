//! What the API server refuses, whoever asks: writes of former owners, and labels that are not the
//! writer's to change. The rules stand here twice, as a function and as an admission policy; a test
//! holds one against the other.
//!
//! The server judges an update inside its compare-and-swap, against the object as it is: there is no
//! gap in which a former owner slips through. A *new* child of a former owner has no old object to be
//! judged by; deterministic names of children make it fail as existing.

mod compare;
mod policy;
#[cfg(test)]
mod tests;

pub use compare::covers;
pub use policy::{Options, name, objects};

/// How long after its last change a policy is trusted to be in force on every API server.
pub const ACTIVE_AFTER: std::time::Duration = std::time::Duration::from_secs(30);

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer<'a> {
    /// An account of instances, and the id its token proves, if any.
    Instance(Option<&'a str>),
    Sharder,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Main,
    Controlled,
}

/// The two labels of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels<'a> {
    pub shard: Option<&'a str>,
    pub drain: Option<&'a str>,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    pub writer: Writer<'a>,
    pub operation: Operation,
    pub part: Part,
    /// Nothing for a creation.
    pub before: Labels<'a>,
    /// Nothing for a deletion.
    pub after: Labels<'a>,
    /// Whether the object has an owner that controls it.
    pub has_controller: bool,
    /// Whether it goes to the object's scale, which the server shows without the object's labels.
    pub is_scale: bool,
}

/// Why a request is refused. The words are those of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("this instance does not own the object: its shard label names another, or nobody")]
    NotOwner,
    #[error(
        "an instance sets the replicas of an object in the object itself: a scale has no labels"
    )]
    ScaleOfInstance,
    #[error("an instance may only remove both labels together, from an object that is draining")]
    NotAnAcknowledgement,
    #[error(
        "an object is created without shard and drain labels; strip them, the sharder sets them"
    )]
    LabelledAtCreation,
    #[error("only the sharder changes shard and drain labels")]
    NotYours,
}

/// Whether the fence lets the request pass.
pub fn admit(write: &Write<'_>) -> Result<(), Refusal> {
    match (write.operation, write.writer) {
        (Operation::Create, writer) => admit_creation(write, writer),
        (_, Writer::Sharder) => Ok(()),
        (_, Writer::Instance(id)) => admit_instance(write, id),
        (Operation::Delete, Writer::Other) => Ok(()),
        (Operation::Update, Writer::Other) if write.before == write.after => Ok(()),
        (Operation::Update, Writer::Other) => Err(Refusal::NotYours),
    }
}

fn admit_creation(write: &Write<'_>, writer: Writer<'_>) -> Result<(), Refusal> {
    let is_stamped = matches!(writer, Writer::Instance(Some(id)) if write.after.shard == Some(id));
    let may_be_labelled = is_stamped && write.has_controller;
    let is_clean = write.after.drain.is_none() && (write.after.shard.is_none() || may_be_labelled);
    if is_clean { Ok(()) } else { Err(Refusal::LabelledAtCreation) }
}

fn admit_instance(write: &Write<'_>, id: Option<&str>) -> Result<(), Refusal> {
    if write.is_scale {
        return Err(Refusal::ScaleOfInstance);
    }
    let is_owner = id.is_some() && write.before.shard == id;
    let is_free = write.part == Part::Controlled && write.before.shard.is_none();
    if !is_owner && !is_free {
        return Err(Refusal::NotOwner);
    }
    let is_acknowledgement = write.before.drain.is_some() && write.after == Labels::default();
    let is_untouched = write.operation == Operation::Delete || write.before == write.after;
    if is_untouched || is_acknowledgement { Ok(()) } else { Err(Refusal::NotAnAcknowledgement) }
}
