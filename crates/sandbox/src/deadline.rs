//! The moment by which everything must be dead: one page of memory that a daemon writes and all its
//! shims read, so that no shim needs a living daemon to know when its time is over.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    ptr::{self, NonNull},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create},
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

use crate::Boottime;

const PAGE_BYTES: usize = 4096;

/// The daemon's end. Has passed until it is [set](Self::set) for the first time.
#[derive(Debug)]
pub struct Deadline {
    page: Page,
    memory: OwnedFd,
}

/// A shim's end: reads only.
#[derive(Debug)]
pub struct DeadlineView {
    page: Page,
}

/// A mapping of the one page; its first word is the deadline in nanoseconds.
#[derive(Debug)]
struct Page(NonNull<AtomicU64>);

// === impl Deadline ===

impl Deadline {
    /// # Errors
    ///
    /// If the system has no memory for it.
    pub fn new() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("windlass-deadline", flags)?;
        ftruncate(&memory, PAGE_BYTES as u64)?;
        let page = Page::map(memory.as_fd(), ProtFlags::READ | ProtFlags::WRITE)?;
        // From here on nobody else can map it for writing: a shim is not the one to move deadlines.
        let seals = SealFlags::FUTURE_WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&memory, seals)?;
        Ok(Self { page, memory })
    }

    /// Moves the deadline on; never back, since whoever sets it need not be the only one, and may be
    /// behind another. A shim that sleeps towards an earlier one looks again then. Stop what must end
    /// sooner.
    pub fn set(&self, at: Boottime) {
        self.page.word().fetch_max(at.as_nanos(), Ordering::AcqRel);
    }

    #[must_use]
    pub fn get(&self) -> Boottime {
        self.page.get()
    }

    /// What a shim is given.
    pub(crate) fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

// === impl DeadlineView ===

impl DeadlineView {
    pub(crate) fn map(memory: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self { page: Page::map(memory, ProtFlags::READ)? })
    }

    #[must_use]
    pub fn get(&self) -> Boottime {
        self.page.get()
    }
}

// === impl Page ===

impl Page {
    #[expect(unsafe_code, reason = "memory is shared between processes by mapping it")]
    fn map(memory: BorrowedFd<'_>, access: ProtFlags) -> io::Result<Self> {
        // SAFETY: the kernel chooses a free range, so no memory in use is replaced.
        let start =
            unsafe { mmap(ptr::null_mut(), PAGE_BYTES, access, MapFlags::SHARED, memory, 0)? };
        Ok(Self(NonNull::new(start.cast()).expect("the kernel maps nothing at zero by itself")))
    }

    fn get(&self) -> Boottime {
        Boottime::from_nanos(self.word().load(Ordering::Acquire))
    }

    #[expect(unsafe_code, reason = "memory is shared between processes by mapping it")]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped as long as `self` lives, is aligned and zeroed, cannot shrink
        // (it is sealed), and every process touches the word atomically. A view only loads it.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Page {
    #[expect(unsafe_code, reason = "memory is shared between processes by mapping it")]
    fn drop(&mut self) {
        // SAFETY: this is the mapping of `map`, and nothing borrowed from it outlives `self`.
        let unmapped = unsafe { munmap(self.0.as_ptr().cast(), PAGE_BYTES) };
        debug_assert!(unmapped.is_ok(), "a mapping of our own can be removed");
    }
}

// SAFETY: the page is shared between processes, hence also between threads; all access is atomic.
#[expect(unsafe_code, reason = "the pointer stands for memory that is shared by design")]
unsafe impl Send for Page {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "the pointer stands for memory that is shared by design")]
unsafe impl Sync for Page {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_follows_the_deadline_and_nobody_else_moves_it() {
        let deadline = Deadline::new().unwrap();
        let view = DeadlineView::map(deadline.memory()).unwrap();
        assert_eq!(view.get(), Boottime::default(), "passed until it is set");
        for nanos in [7, 9] {
            let at = Boottime::from_nanos(nanos);
            deadline.set(at);
            assert_eq!((view.get(), deadline.get()), (at, at));
        }
        let writable = Page::map(deadline.memory(), ProtFlags::READ | ProtFlags::WRITE);
        assert!(writable.is_err(), "the memory is sealed");
        assert!(ftruncate(deadline.memory(), 0).is_err(), "the memory is sealed");
    }

    /// The daemon's agent was slower than the thread that keeps the lease, and took back what that had
    /// gained: healthy attempts died.
    #[test]
    fn whoever_is_behind_does_not_take_the_deadline_back() {
        let deadline = Deadline::new().unwrap();
        for (set, stands) in [(9, 9), (7, 9), (10, 10)] {
            deadline.set(Boottime::from_nanos(set));
            assert_eq!(deadline.get(), Boottime::from_nanos(stands));
        }
    }
}
