//! What happens to objects, in order. An end of the stream means nothing: the server ends every
//! watch after some minutes.

use futures::{Stream, StreamExt, stream::BoxStream};
use kube::core::WatchEvent;

use super::{Error, Verb};

/// A watch under way.
pub type Changes<T> = BoxStream<'static, Result<Change<T>, Error>>;

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Change<T> {
    /// Added or modified.
    Set(T),
    /// As it was at its end; or it no longer is what the watch selects.
    Left(T),
    /// Nothing happened up to here.
    Bookmark { rv: String },
}

/// An error that the server sends as an event is an error like any other, and the last thing said.
pub(super) fn changes<K: Send + 'static, T: 'static>(
    about: String,
    events: impl Stream<Item = kube::Result<WatchEvent<K>>> + Send + 'static,
    take: fn(K) -> T,
) -> Changes<T> {
    let change = move |event| match event {
        Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
            Ok(Change::Set(take(object)))
        }
        Ok(WatchEvent::Deleted(object)) => Ok(Change::Left(take(object))),
        Ok(WatchEvent::Bookmark(mark)) => {
            Ok(Change::Bookmark { rv: mark.metadata.resource_version })
        }
        Ok(WatchEvent::Error(status)) => {
            Err(Error::refused(Verb::Watch, &about, kube::Error::Api(status)))
        }
        Err(source) => Err(Error::refused(Verb::Watch, &about, source)),
    };
    events.map(change).boxed()
}
