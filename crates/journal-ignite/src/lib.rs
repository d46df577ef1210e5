//! The journal on Apache Ignite 3.
//!
//! Owns the tables and what a row of them means, the fence, and the refusal of settings that could
//! lose an acknowledged write. It keeps nothing beside the grid: any process may open it, and the last
//! that claimed it writes. It knows nothing of requests, watches or clients.

mod answers;
mod append;
mod claim;
mod density;
mod error;
mod follow;
mod forget;
mod grid;
mod head;
mod init;
mod journal;
mod layout;
mod lifecycle;
mod options;
mod read;
mod rows;
mod settings;
mod tls;
mod url;
mod verify;

pub use error::{Error, Unsafe};
pub use init::init;
pub use journal::IgniteJournal;
pub use options::Options;
pub use tls::{OwnFiles, TlsFiles};
pub use url::{SCHEME, UrlError};
pub use verify::Verified;
