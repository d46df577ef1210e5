//! All objects of a kind at one moment, read page by page.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::api::ListParams;

/// Objects in one page: some megabytes of transactions.
const PAGE: u32 = 500;

/// All objects of a kind at one moment.
#[derive(Clone, Debug)]
pub struct Listing<T> {
    pub items: Vec<T>,
    /// That moment; where a watch goes on.
    pub rv: String,
}

/// A list under way. Its first page is a quorum read, and the others show the same moment. A list
/// that takes too long fails with [`Kind::Expired`](super::Kind::Expired).
pub(super) struct Pages<T> {
    /// What to ask for next; nothing after the last page.
    next: Option<ListParams>,
    listing: Listing<T>,
}

// === impl Pages ===

impl<T> Pages<T> {
    pub(super) fn new() -> Self {
        let next = Some(ListParams::default().limit(PAGE));
        Self { next, listing: Listing { items: Vec::new(), rv: String::new() } }
    }

    pub(super) fn next(&mut self) -> Option<ListParams> {
        self.next.take()
    }

    pub(super) fn add(&mut self, items: impl IntoIterator<Item = T>, metadata: ListMeta) {
        self.listing.items.extend(items);
        self.listing.rv = metadata.resource_version.unwrap_or_default();
        let token = metadata.continue_.filter(|token| !token.is_empty());
        self.next = token.map(|token| ListParams::default().limit(PAGE).continue_token(&token));
    }

    pub(super) fn into_listing(self) -> Listing<T> {
        self.listing
    }
}
