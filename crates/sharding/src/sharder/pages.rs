//! Going through the objects of a ring page by page, one kind after the other.

use crate::core::names::Names;
use crate::core::sharder::Selector;
use crate::kubernetes::{Error, Meaning, Objects, Page};

/// A kind, and what else its objects have to have.
#[derive(Clone)]
pub(super) struct Listed {
    pub(super) objects: Objects,
    pub(super) narrowing: Option<String>,
}

/// Where a pass stands.
#[derive(Clone)]
pub(super) struct Cursor {
    /// The present kind, and those after it.
    kinds: Vec<Listed>,
    selector: Selector,
    token: Option<String>,
}

// === impl Cursor ===

impl Cursor {
    pub(super) fn new(mut kinds: Vec<Listed>, selector: Selector) -> Self {
        kinds.reverse();
        Self { kinds, selector, token: None }
    }

    /// The resource whose turn it is.
    pub(super) fn resource(&self) -> String {
        self.kinds.last().map(|it| it.objects.served().resource.to_string()).unwrap_or_default()
    }

    pub(super) fn is_last(&self) -> bool {
        self.kinds.is_empty()
    }

    /// One request. A kind that went away, or that we may not see any more, is passed over: other
    /// kinds must not wait for it, and what it has stays with its owner.
    pub(super) async fn next(&mut self, names: &Names) -> Result<Option<Page>, Error> {
        let Some(kind) = self.kinds.last() else { return Ok(None) };
        let query = query(names, &self.selector, kind.narrowing.as_deref());
        match kind.objects.page(&query, self.token.as_deref()).await {
            Ok(page) => {
                self.token.clone_from(&page.token);
                if self.token.is_none() {
                    self.kinds.pop();
                }
                Ok(Some(page))
            }
            Err(error) if matches!(error.meaning(), Meaning::Gone | Meaning::Forbidden) => {
                self.token = None;
                self.kinds.pop();
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// In the words of a request. What an instance has is looked for without narrowing: the instance may
/// have labelled it.
pub(super) fn query(names: &Names, selector: &Selector, narrowing: Option<&str>) -> String {
    let shard = names.shard_label();
    let own = match selector {
        Selector::Of(id) => return format!("{shard}={id}"),
        Selector::NotOf(ids) if !ids.is_empty() => {
            let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
            Some(format!("{shard} notin ({})", ids.join(",")))
        }
        Selector::NotOf(_) | Selector::All => None,
    };
    let both = own.into_iter().chain(narrowing.map(ToOwned::to_owned));
    both.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::names::Dialect;

    #[track_caller]
    fn check(selector: Selector, narrowing: Option<&str>, expected: &str) {
        let dialect = Dialect::Own { prefix: "windlass.dev".to_owned() };
        let names = Names::new("sites".parse().unwrap(), dialect);
        assert_eq!(query(&names, &selector, narrowing), expected);
    }

    #[test]
    fn selectors_are_written_as_the_server_reads_them() {
        let id = |text: &str| text.parse().unwrap();
        check(Selector::All, None, "");
        check(Selector::All, Some("app=web"), "app=web");
        check(Selector::Of(id("a")), Some("app=web"), "shard.windlass.dev/sites=a");
        let both = [id("a"), id("b")].into();
        check(Selector::NotOf(both), None, "shard.windlass.dev/sites notin (a,b)");
        let one = [id("a")].into();
        let expected = "shard.windlass.dev/sites notin (a),app=web";
        check(Selector::NotOf(one), Some("app=web"), expected);
        check(Selector::NotOf([].into()), None, "");
    }
}
