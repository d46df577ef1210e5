//! Which pod fits which node, by the scheduler's rules, and how many nodes are needed.
//!
//! A core: synchronous, without I/O, clock or randomness. Whoever runs it reads nodes and pods, in
//! Kubernetes' own types, into a [`Cluster`]: [`Cluster::compile`] makes of a Pod the class of all pods
//! that are the same to every rule, or says which of its constraints are not understood, and
//! [`Cluster::fits`] and [`Cluster::explain`] answer for a class and a node. Preferences are ignored.
//!
//! | module | what it owns |
//! |---|---|
//! | `compile`, `class`, `requests`, `volumes` | from a Pod to its class |
//! | `cluster`, `node`, `topology` | what runs where, and counters that follow every change |
//! | `check`, `placement`, [`explain`](Refusal) | the filters, and the first that fails in words |
//! | `packing` | [pods onto nodes](Packing), the estimate of new nodes |
//! | [`expand`], `similar` | which group to expand, and how the increase is shared |
//! | `usage`, `relocate`, [`drain`], `budget` | whether a node is in use, whether its pods can go elsewhere, and may |
//!
//! ```
//! use fit::{Cluster, Volumes};
//! use k8s_openapi::api::core::v1::{Node, Pod};
//!
//! let node: Node = serde_saphyr::from_str(
//!     "{metadata: {name: a}, status: {allocatable: {cpu: 2, memory: 4Gi, pods: 110}}}",
//! )?;
//! let pod: Pod = serde_saphyr::from_str(
//!     "{metadata: {namespace: default}, spec: {containers: [{resources: {requests: {cpu: 1500m}}}]}}",
//! )?;
//!
//! let mut cluster = Cluster::new(&[("default".to_owned(), Default::default())].into());
//! let node = cluster.add_node(&node)?;
//! let class = cluster.compile(&pod, &Volumes::default())?;
//! assert!(cluster.fits(class, node));
//!
//! cluster.place(class, node);
//! let refusal = cluster.explain(class, node).expect("there is no room for another");
//! assert_eq!(refusal.to_string(), "Insufficient cpu: requested 1500m, used 1500m of 2000m");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod amounts;
mod budget;
mod check;
mod class;
mod cluster;
mod compile;
pub mod drain;
pub mod expand;
mod explain;
mod labels;
mod node;
mod packing;
mod placement;
mod ports;
pub mod quantity;
mod relocate;
mod requests;
mod similar;
mod table;
mod taints;
mod topology;
mod usage;
mod volumes;
mod words;

pub use budget::{Budgets, Spent};
pub use class::ClassId;
pub use cluster::{Cluster, Template};
pub use compile::Error as CompileError;
pub use explain::Refusal;
pub use node::NodeId;
pub use packing::{Left, Packed, Packing, Plan, Reason};
pub use relocate::{Mover, NoPlace};
pub use similar::{Profile, Size, balance};
pub use volumes::Volumes;
