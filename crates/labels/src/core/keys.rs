//! Every key the service writes or reads on its objects, in one place.

/// The label on all our objects, and its value.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
pub const MANAGER: &str = "windlass-labels";

/// On a restored node as a label, in a record as data: which snapshot it was given.
pub const MARKER: &str = "labels_restored";
/// The marker as an annotation of the node.
pub const MARKER_ANNOTATION: &str = "labels.windlass.dev/restored";

/// The label that takes a transaction out of the queue, with the reason as its value.
pub const QUARANTINED: &str = "labels.windlass.dev/quarantined";

/// The annotation on all our ConfigMaps that tells the size of their data to those who see only
/// metadata.
pub const DATA_BYTES: &str = "labels.windlass.dev/data-bytes";

/// Annotations of transactions and checkpoints.
pub const NODE: &str = "labels.windlass.dev/node";
pub const NODE_UID: &str = "labels.windlass.dev/node-uid";
pub const NODE_CREATED: &str = "labels.windlass.dev/node-created";
pub const SOURCE: &str = "labels.windlass.dev/source";
/// Annotations of checkpoints.
pub const RV: &str = "labels.windlass.dev/rv";
pub const DIGEST: &str = "labels.windlass.dev/digest";

/// Annotations of records: the incarnation that the labels came from.
pub const STORED_UID: &str = "labels.windlass.dev/stored-uid";
pub const STORED_RV: &str = "labels.windlass.dev/stored-rv";
pub const STORED_AT: &str = "labels.windlass.dev/stored-at";
/// Annotations of records: the incarnation that they were given to.
pub const RESTORED_UID: &str = "labels.windlass.dev/restored-uid";
pub const RESTORED_RV: &str = "labels.windlass.dev/restored-rv";
pub const RESTORED_AT: &str = "labels.windlass.dev/restored-at";
/// The node's resource version that the restore was decided on. A snapshot from before it cannot
/// show what was restored.
pub const RESTORED_NODE_RV: &str = "labels.windlass.dev/restored-node-rv";

/// Data.
pub const TYPE: &str = "type";
pub const SNAPSHOT: &str = "snapshot.json";
pub const HISTORY: &str = "history.json";

/// Data of an earlier implementation.
pub const EARLIER_TYPE: &str = "transaction_type";
pub const EARLIER_NODE: &str = "node_name";
pub const EARLIER_RV: &str = "last_store_resource_version";
pub const EARLIER_VERSION: &str = "label_version";

/// Data keys that are never labels.
pub const RESERVED: [&str; 8] =
    [TYPE, SNAPSHOT, HISTORY, MARKER, EARLIER_TYPE, EARLIER_NODE, EARLIER_RV, EARLIER_VERSION];
