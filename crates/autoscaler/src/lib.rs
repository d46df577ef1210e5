//! Makes node groups follow the pods. A shell: what decides is in `registry`.
//!
//! | module | owns |
//! |---|---|
//! | [`provider`] | the way to the provider of machines, and what was read there |

pub mod provider;
