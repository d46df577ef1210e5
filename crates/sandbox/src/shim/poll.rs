//! The one loop of a shim: waits for output, the daemon, the command's end and the clock, all at once.

use std::{io, os::fd::OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};

use super::{
    Error,
    control::{Control, Word},
    session::{Over, Session},
    streams::Pipes,
};
use crate::{
    Boottime, DeadlineView, Ended,
    boottime::wall_time,
    log::{Stream, Writer},
    runtime::Wake,
};

/// Everything a shim looks after while its attempt runs.
pub(super) struct Poller<'a> {
    control: &'a mut Control,
    deadline: &'a DeadlineView,
    session: Session,
    pipes: Pipes,
    log: Writer,
    timer: OwnedFd,
}

/// What became ready.
#[derive(Debug, Default)]
struct Ready {
    streams: Vec<Stream>,
    is_control: bool,
}

// === impl Poller ===

impl<'a> Poller<'a> {
    pub(super) fn new(
        control: &'a mut Control,
        deadline: &'a DeadlineView,
        session: Session,
        pipes: Pipes,
        log: Writer,
    ) -> Result<Self, Error> {
        // Counts suspension, unlike the timeout of `poll`: a machine that wakes up late must not take
        // its deadline for later.
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC);
        let timer = timer.map_err(|errno| Error::Poll(errno.into()))?;
        Ok(Self { control, deadline, session, pipes, log, timer })
    }

    /// Starts the command and stays until all of it is gone.
    pub(super) fn run(mut self) -> Result<Ended, Error> {
        self.hear()?;
        let over = self.session.start(Boottime::now(), &|| self.deadline.get());
        let over = match over.map_err(Error::Runtime)? {
            Some(over) => over,
            None => {
                self.control.tell(&Word::Started);
                self.watch()?
            }
        };
        self.pipes.drain(&mut self.log).map_err(Error::Poll)?;
        let log = self.log.end(wall_time());
        Ok(Ended { outcome: over.outcome, usage: over.usage, log })
    }

    fn watch(&mut self) -> Result<Over, Error> {
        loop {
            let turn = self.session.turn(Boottime::now(), self.deadline.get());
            if let Some(over) = turn.map_err(Error::Runtime)? {
                return Ok(over);
            }
            let ready = self.wait().map_err(Error::Poll)?;
            for stream in ready.streams {
                self.pipes.carry(stream, &mut self.log).map_err(Error::Poll)?;
            }
            if ready.is_control {
                self.hear()?;
            }
        }
    }

    /// Takes in what the daemon has said. When it is gone there is nobody to hear: the attempt goes on
    /// until its deadline.
    fn hear(&mut self) -> Result<(), Error> {
        for grace in self.control.stops().map_err(Error::Control)? {
            self.session.on_stop(grace, Boottime::now());
        }
        Ok(())
    }

    /// Waits until anything happens.
    fn wait(&mut self) -> io::Result<Ready> {
        let mut wake_at = self.session.wake_at(self.deadline.get());
        let mut streams = Vec::with_capacity(2);
        let mut fds = vec![PollFd::new(&self.timer, PollFlags::IN)];
        match self.session.wake() {
            Wake::Readable(ends) => {
                fds.extend(ends.iter().map(|end| PollFd::from_borrowed_fd(*end, PollFlags::IN)));
            }
            Wake::At(at) => wake_at = wake_at.min(at),
        }
        let control_at = self.control.listening().map(|fd| {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            fds.len() - 1
        });
        for (stream, fd) in self.pipes.open() {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            streams.push((stream, fds.len() - 1));
        }
        arm(&self.timer, wake_at)?;
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |at: usize| !fds[at].revents().is_empty();
        streams.retain(|(_, at)| is_ready(*at));
        Ok(Ready {
            streams: streams.into_iter().map(|(stream, _)| stream).collect(),
            is_control: control_at.is_some_and(is_ready),
        })
    }
}

/// Makes the timer readable from then on. Setting it again forgets that it went off.
fn arm(timer: &OwnedFd, at: Boottime) -> io::Result<()> {
    // All zeros would disarm it.
    let seconds = i64::try_from(at.0.as_secs()).unwrap_or(i64::MAX);
    let it_value = Timespec { tv_sec: seconds, tv_nsec: i64::from(at.0.subsec_nanos()).max(1) };
    let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
    Ok(())
}
