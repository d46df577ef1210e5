//! Daemons are told, do what they decide, pause and die.

use std::time::Duration;

use tasks::core::agent::{Command, Event};

use super::{Happening, Request, World};
use crate::sim::runtime::{KILL_MAX, ProcessId};

// === impl World ===

impl World {
    pub(super) fn start(&mut self, host: usize) {
        if self.hosts[host].daemon.is_some() {
            return;
        }
        self.hosts[host].start();
        self.relist(host);
        self.tell(host, Event::Tick);
    }

    /// Gives an event to the daemon and carries out what it says, or dies over it.
    pub(super) fn tell(&mut self, index: usize, event: Event) {
        let host = &mut self.hosts[index];
        if host.paused_until > self.now {
            return host.waiting.push_back(event);
        }
        let now = host.now(self.now);
        let Some(agent) = &mut host.daemon else { return };
        let commands = agent.on(now, event);
        let wake = agent.wake_at();
        let wake = host.at(wake).max(self.now + Duration::from_micros(1));
        host.wakes = wake;
        if !commands.is_empty() {
            self.steps += 1;
        }
        let is_last =
            self.plot.crash_at.is_some_and(|at| at + 1 == self.steps) && !commands.is_empty();
        let carried_out =
            if is_last { self.chance.below(commands.len() + 1) } else { commands.len() };
        for command in commands.into_iter().take(carried_out) {
            self.carry_out(index, command);
        }
        if is_last {
            // Once: the steps go on counting.
            self.plot.crash_at = None;
            return self.crash(index);
        }
        let wait = wake - self.now;
        self.after(wait, Happening::Wake { host: index });
    }

    fn carry_out(&mut self, index: usize, command: Command) {
        let sent = self.hosts[index].boot(self.now);
        match command {
            Command::Register(node) => self.send(index, Request::Register { node, sent }),
            Command::KeepAlive(lease) => self.send(index, Request::KeepAlive { lease, sent }),
            Command::Revoke(lease) => self.send(index, Request::Revoke(lease)),
            Command::Send { token, txn } => {
                let incarnation = self.hosts[index].incarnation;
                let is_first = self.sent.insert((index, incarnation, token));
                let fault = self.plot.fault;
                let txn = fault.map_or_else(|| txn.clone(), |fault| fault.tamper(&txn, is_first));
                self.send(index, Request::Txn { token, txn });
            }
            Command::SetDeadline(at) => {
                let host = &mut self.hosts[index];
                host.runtime.deadline = host.runtime.deadline.max(at);
                let wait = host.at(at).saturating_sub(self.now);
                self.after(wait, Happening::Deadline { host: index });
            }
            Command::Start(start) => {
                let process = (start.task, start.attempt);
                self.hosts[index].runtime.prepare(&start);
                let wait = self.chance.micros(2_000..60_000);
                self.after(wait, Happening::Begin { host: index, process });
            }
            Command::Stop { task, attempt, grace } => self.stop(index, (task, attempt), grace),
            Command::Left => {
                self.hosts[index].crash(false);
                let wait = self.chance.micros(10_000..10_000_000);
                self.after(wait, Happening::Start { host: index });
            }
        }
    }

    fn stop(&mut self, index: usize, process: ProcessId, grace: Duration) {
        let processes = &mut self.hosts[index].runtime.processes;
        let Some(stopped) = processes.get_mut(&process) else { return };
        stopped.is_stopping = true;
        let most = grace.min(Duration::from_secs(10)) + KILL_MAX;
        let wait = self.chance.micros(100..u64::try_from(most.as_micros()).expect("small"));
        self.after(wait, Happening::End { host: index, process, ending: None });
    }

    pub(super) fn resume(&mut self, index: usize) {
        if self.hosts[index].paused_until > self.now {
            return;
        }
        while let Some(event) = self.hosts[index].waiting.pop_front() {
            self.tell(index, event);
        }
    }

    fn crash(&mut self, index: usize) {
        let is_machine = self.chance.once_in(3);
        self.hosts[index].crash(is_machine);
        let wait = self.chance.micros(10_000..25_000_000);
        self.after(wait, Happening::Start { host: index });
    }

    pub(super) fn trouble(&mut self) {
        let index = self.chance.below(self.hosts.len());
        match self.chance.below(5) {
            0 => self.crash(index),
            4 => self.tell(index, Event::Drain),
            1 => {
                let pause = self.chance.micros(1_000_000..30_000_000);
                self.hosts[index].paused_until = self.now + pause;
                self.after(pause, Happening::Resume { host: index });
            }
            2 => {
                let cut = self.chance.micros(500_000..25_000_000);
                self.hosts[index].cut_until = self.now + cut;
                self.break_streams(index, cut);
            }
            _ => self.break_streams(index, Duration::from_millis(1)),
        }
    }
}
