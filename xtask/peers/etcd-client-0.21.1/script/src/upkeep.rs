//! Maintenance and members.

use anyhow::Result;
use etcd_client::{AlarmAction, AlarmType, Client};

use crate::transcript::{Transcript, revision};

pub(crate) async fn run(client: &mut Client, transcript: &mut Transcript) -> Result<()> {
    let status = client.status().await?;
    let is_led = status.leader() == status.header().map_or(0, |header| header.member_id());
    transcript.say(
        "status",
        format!("{} at {}, leads: {is_led}", status.version(), revision(status.header())),
    );
    let alarms = client.alarm(AlarmAction::Get, AlarmType::None, None).await?;
    transcript.say("alarms", alarms.alarms().len());
    client.defragment().await?;
    let hash = client.hash_kv(0).await?;
    transcript.say("hash", format!("{} compacted {}", hash.hash(), hash.compact_version()));
    transcript.say("snapshot ends", snapshot(client).await?);
    let members = client.member_list().await?;
    let learners = members.members().iter().filter(|member| member.is_learner()).count();
    transcript.say("members", format!("{}, {learners} learn", members.members().len()));
    transcript.refused("remove a stranger", client.member_remove(1).await)?;
    transcript.refused("lead to a stranger", client.move_leader(1).await)
}

/// Whether the parts of a snapshot add up to what was announced.
async fn snapshot(client: &mut Client) -> Result<bool> {
    let mut stream = client.snapshot().await?;
    let (mut bytes, mut left) = (0, 1);
    while let Some(part) = stream.message().await? {
        bytes += part.blob().len();
        left = part.remaining_bytes();
    }
    Ok(bytes > 0 && left == 0)
}
