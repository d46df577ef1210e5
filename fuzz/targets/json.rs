//! Any text as the body of any call of the JSON gateway: it is read or refused, and what was read
//! is the same after it was written as JSON.
//!
//! The first byte chooses the message, the others are the body.
#![no_main]

use etcd_api::{etcdserverpb as pb, v3electionpb as election, v3lockpb as lock};
use libfuzzer_sys::fuzz_target;
use store::http::fuzz::{JsonMessage, read_body, write_body};

const MESSAGES: &[fn(&[u8])] = &[
    body::<pb::RangeRequest>,
    body::<pb::PutRequest>,
    body::<pb::DeleteRangeRequest>,
    body::<pb::TxnRequest>,
    body::<pb::CompactionRequest>,
    body::<pb::WatchRequest>,
    body::<pb::LeaseGrantRequest>,
    body::<pb::LeaseRevokeRequest>,
    body::<pb::LeaseKeepAliveRequest>,
    body::<pb::LeaseTimeToLiveRequest>,
    body::<pb::MemberAddRequest>,
    body::<pb::MemberUpdateRequest>,
    body::<pb::AlarmRequest>,
    body::<pb::HashKvRequest>,
    body::<pb::DowngradeRequest>,
    body::<pb::AuthenticateRequest>,
    body::<pb::AuthUserAddRequest>,
    body::<pb::AuthRoleGrantPermissionRequest>,
    body::<pb::AuthRoleRevokePermissionRequest>,
    body::<lock::LockRequest>,
    body::<election::CampaignRequest>,
    body::<election::ProclaimRequest>,
];

fuzz_target!(|input: &[u8]| {
    if let Some((choice, text)) = input.split_first() {
        MESSAGES[usize::from(*choice) % MESSAGES.len()](text);
    }
});

fn body<M: JsonMessage>(text: &[u8]) {
    let Ok(message) = read_body::<M>(text) else { return };
    let text = write_body(&message).expect("what was read can be written");
    let again = read_body::<M>(&text).expect("what was written can be read");
    assert!(again == message, "{message:?} came back as {again:?}");
}
