//! Any bytes as any message a client can send: they are decoded or refused, and what was decoded
//! is the same after a trip over the wire. Key-values and events besides, which are kept encoded.
//!
//! The first byte chooses the message, the others are its encoding.
#![no_main]

use std::fmt::Debug;

use bytes::Bytes;
use etcd_api::mvccpb::{Event, KeyValue};
use etcd_api::{etcdserverpb as pb, health, v3electionpb as election, v3lockpb as lock};
use libfuzzer_sys::fuzz_target;
use mvcc::check;
use prost::Message;

/// etcd's default.
const TXN_OPS_MAX: usize = 128;

/// Decodes one message and checks that it survives.
type Read = fn(&[u8]);

const MESSAGES: &[Read] = &[
    key_value,
    event,
    transaction,
    request::<pb::RangeRequest>,
    request::<pb::PutRequest>,
    request::<pb::DeleteRangeRequest>,
    request::<pb::CompactionRequest>,
    request::<pb::WatchRequest>,
    request::<pb::LeaseGrantRequest>,
    request::<pb::LeaseRevokeRequest>,
    request::<pb::LeaseKeepAliveRequest>,
    request::<pb::LeaseTimeToLiveRequest>,
    request::<pb::LeaseLeasesRequest>,
    request::<pb::MemberAddRequest>,
    request::<pb::MemberRemoveRequest>,
    request::<pb::MemberUpdateRequest>,
    request::<pb::MemberListRequest>,
    request::<pb::MemberPromoteRequest>,
    request::<pb::AlarmRequest>,
    request::<pb::StatusRequest>,
    request::<pb::DefragmentRequest>,
    request::<pb::HashRequest>,
    request::<pb::HashKvRequest>,
    request::<pb::SnapshotRequest>,
    request::<pb::MoveLeaderRequest>,
    request::<pb::DowngradeRequest>,
    request::<pb::AuthEnableRequest>,
    request::<pb::AuthDisableRequest>,
    request::<pb::AuthStatusRequest>,
    request::<pb::AuthenticateRequest>,
    request::<pb::AuthUserAddRequest>,
    request::<pb::AuthUserGetRequest>,
    request::<pb::AuthUserListRequest>,
    request::<pb::AuthUserDeleteRequest>,
    request::<pb::AuthUserChangePasswordRequest>,
    request::<pb::AuthUserGrantRoleRequest>,
    request::<pb::AuthUserRevokeRoleRequest>,
    request::<pb::AuthRoleAddRequest>,
    request::<pb::AuthRoleGetRequest>,
    request::<pb::AuthRoleListRequest>,
    request::<pb::AuthRoleDeleteRequest>,
    request::<pb::AuthRoleGrantPermissionRequest>,
    request::<pb::AuthRoleRevokePermissionRequest>,
    request::<lock::LockRequest>,
    request::<lock::UnlockRequest>,
    request::<election::CampaignRequest>,
    request::<election::ProclaimRequest>,
    request::<election::LeaderRequest>,
    request::<election::ResignRequest>,
    request::<health::HealthCheckRequest>,
];

fuzz_target!(|input: &[u8]| {
    if let Some((choice, encoded)) = input.split_first() {
        MESSAGES[usize::from(*choice) % MESSAGES.len()](encoded);
    }
});

fn request<M: Message + Default + PartialEq + Debug>(encoded: &[u8]) {
    if let Ok(message) = M::decode(encoded) {
        survives(&message);
    }
}

fn transaction(encoded: &[u8]) {
    let Ok(txn) = pb::TxnRequest::decode(encoded) else { return };
    survives(&txn);
    // Any verdict is right here; what it must be is the other target's question.
    let _verdict = check::txn(&txn, TXN_OPS_MAX);
}

fn key_value(encoded: &[u8]) {
    let Ok(kv) = KeyValue::try_from_encoded(Bytes::copy_from_slice(encoded)) else { return };
    survives(&kv);
    assert_eq!(KeyValue::new(&kv.parts()), kv, "what is kept is canonical");
    assert_eq!(kv.without_value().parts().key, kv.key());
}

fn event(encoded: &[u8]) {
    let Ok(event) = Event::decode(encoded) else { return };
    survives(&event);
    // An unknown kind is kept as it is and reads as a put.
    if let Some(prev) = event.prev_kv() {
        survives(&prev);
    }
    survives(&event.kv());
}

fn survives<M: Message + Default + PartialEq + Debug>(message: &M) {
    let encoded = message.encode_to_vec();
    assert_eq!(encoded.len(), message.encoded_len());
    let again = M::decode(&*encoded).expect("what was encoded can be decoded");
    assert!(again == *message, "{message:?} came back as {again:?}");
}
