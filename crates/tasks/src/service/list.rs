//! List: pages of one revision, read from the records.

use prost::Message;

use super::error::{Error, Field};
use super::filter::Filter;
use super::page::Token;
use super::{Service, view};
use crate::core::id::{Revision, TaskId};
use crate::core::record::Record;
use crate::wire;

const PAGE_TASKS_MAX: usize = 1000;
/// Below what a client takes in one message, with room for one more task.
const PAGE_BYTES_MAX: usize = 3 << 20;
/// Records looked at for one page. A filter that few pass would otherwise make one call read
/// everything.
const LOOKED_AT_MAX: usize = 10_000;

/// A page that is being filled.
struct Page {
    filter: Filter,
    tasks_max: usize,
    tasks: Vec<wire::TaskView>,
    bytes: usize,
    looked_at: usize,
}

/// What to do after a record.
enum Next {
    Record,
    /// The page is full: a further one goes on from here.
    Page(TaskId),
    /// No task from here on passes.
    Nothing,
}

// === impl Service ===

impl Service {
    pub(super) async fn list_page(
        &self,
        request: wire::ListRequest,
    ) -> Result<wire::ListResponse, Error> {
        let filter = Filter::new(request.filter)?;
        let (mut after, mut at) = match Token::read(&request.token)? {
            Some(token) => (Some(token.after), Some(token.at)),
            None => (filter.begins_after()?, None),
        };
        let mut page = Page::new(filter, tasks_max(request.limit)?);
        loop {
            let read = self.node().store().page(after, at, page.tasks_max).await;
            let read = read.map_err(Error::Store)?;
            at = Some(read.revision);
            // What cannot be read is for fsck to tell.
            for record in read.tasks.iter().flatten() {
                match page.on_record(record) {
                    Next::Record => {}
                    Next::Page(id) => return Ok(page.finish(read.revision, Some(id))),
                    Next::Nothing => return Ok(page.finish(read.revision, None)),
                }
            }
            after = read.next_after;
            if after.is_none() {
                return Ok(page.finish(read.revision, None));
            }
        }
    }
}

fn tasks_max(limit: u32) -> Result<usize, Error> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit > PAGE_TASKS_MAX {
        let (value, max) = (limit as u64, PAGE_TASKS_MAX as u64);
        return Err(Error::field("limit", Field::TooLarge { value, max }));
    }
    Ok(if limit == 0 { PAGE_TASKS_MAX } else { limit })
}

// === impl Page ===

impl Page {
    fn new(filter: Filter, tasks_max: usize) -> Self {
        Self { filter, tasks_max, tasks: Vec::new(), bytes: 0, looked_at: 0 }
    }

    fn on_record(&mut self, record: &Record) -> Next {
        if !self.filter.goes_beyond(record.id()) {
            return Next::Nothing;
        }
        self.looked_at += 1;
        if self.filter.passes(record) {
            let task = view::task(record);
            self.bytes += task.encoded_len();
            self.tasks.push(task);
        }
        let is_full = self.tasks.len() >= self.tasks_max
            || self.bytes >= PAGE_BYTES_MAX
            || self.looked_at >= LOOKED_AT_MAX;
        if is_full { Next::Page(record.id()) } else { Next::Record }
    }

    fn finish(self, at: Revision, next_after: Option<TaskId>) -> wire::ListResponse {
        let next = next_after.map(|after| Token { at, after }.to_string());
        wire::ListResponse {
            tasks: self.tasks,
            next_token: next.unwrap_or_default(),
            revision: at.0,
        }
    }
}
