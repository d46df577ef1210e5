//! The writer between a queue that the test fills and a committer that the test plays.

use etcd_api::etcdserverpb::PutRequest;
use journal::{EmbeddedJournal, embedded};
use tokio::sync::oneshot;

use super::*;

const QUEUE_MAX: usize = 2 * BATCH_COMMANDS_MAX;

/// A writer with one batch in flight.
struct Bench {
    writer: Writer,
    commands: mpsc::Sender<Command>,
    batches: std_mpsc::Receiver<Batch>,
    durable: std_mpsc::SyncSender<()>,
    _superseded: std_mpsc::Receiver<Superseded>,
    _folder: tempfile::TempDir,
}

// === impl Bench ===

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = EmbeddedJournal::open(folder.path(), embedded::Options::default()).unwrap();
        let (commands, command_queue) = mpsc::channel(QUEUE_MAX);
        let (batch_sender, batches) = std_mpsc::sync_channel(1);
        let (durable, durable_signal) = std_mpsc::sync_channel(1);
        let (superseded_sender, superseded) = std_mpsc::sync_channel(1);
        let channels = Channels {
            commands: command_queue,
            batches: batch_sender,
            durable: durable_signal,
            superseded: superseded_sender,
            given_up: None,
        };
        let state = Loaded {
            keyspace: Keyspace::new(),
            alarms: alarm::Alarms::default(),
            auth: auth::State::default(),
        };
        let kept = Arc::new(KeptValues::new(Arc::new(journal), 1 << 20));
        let writer = Writer::new(state, Epoch(1), 0, kept, channels);
        let (_superseded, _folder) = (superseded, folder);
        let mut bench = Self { writer, commands, batches, durable, _superseded, _folder };
        bench.ask(1);
        bench.writer.step().unwrap();
        assert_eq!(bench.batches.recv().unwrap().answers.len(), 1);
        bench
    }

    /// Asks for a lease that is not there, so many times; nobody waits for the answers.
    fn ask(&self, times: usize) {
        for _ in 0..times {
            let (reply, _answer) = oneshot::channel();
            let command = Command::Lease { id: LeaseId(1), reply };
            self.commands.try_send(command).unwrap_or_else(|_| panic!("the queue has room"));
        }
    }
}

/// A disk that stalls lets nothing be answered, and the queue was emptied all the same: every command
/// of clients that gave up and tried again was kept until memory was used up.
#[test]
fn a_stalled_disk_gathers_commands_without_end() {
    let mut bench = Bench::new();
    bench.ask(BATCH_COMMANDS_MAX + 7);
    // The disk recovers, once the writer waits for it.
    bench.durable.send(()).unwrap();
    bench.writer.step().unwrap();
    assert_eq!(bench.batches.recv().unwrap().answers.len(), BATCH_COMMANDS_MAX);
    assert_eq!(bench.writer.channels.commands.len(), 7);
}

#[test]
fn what_changes_only_the_meta_table_counts_as_bytes() {
    let mut bench = Bench::new();
    let before = bench.writer.gathered.bytes;
    bench.writer.gathered.change_meta([meta::lease_granted(LeaseId(1), 5)]);
    assert!(bench.writer.gathered.bytes > before);
}

/// The keys of a lease are copied for whoever asks, and were no bytes: on a disk that stalls, those of a
/// large one were kept as often as it was asked for.
#[test]
fn answers_about_leases_were_no_bytes() {
    let mut bench = Bench::new();
    let keyspace = &mut bench.writer.state.keyspace;
    keyspace.grant(LeaseId(1), 60).unwrap();
    let put = PutRequest { key: vec![b'k'; 1000].into(), lease: 1, ..Default::default() };
    keyspace.put(&put, &*bench.writer.kept).unwrap();
    let mut bytes = bench.writer.gathered.bytes;
    let (lease, _answer) = oneshot::channel();
    let (leased, _answer) = oneshot::channel();
    for command in
        [Command::Lease { id: LeaseId(1), reply: lease }, Command::LeasedKeys { reply: leased }]
    {
        bench.writer.evaluate(command);
        bytes += 1000;
        assert!(bench.writer.gathered.bytes > bytes, "{}", bench.writer.gathered.bytes);
    }
}

/// A committer that is gone was taken for one that is busy: the writer went on gathering, and clients
/// waited for the end of the store instead of being told.
#[test]
fn a_failed_commit_leaves_clients_waiting() {
    let Bench { mut writer, commands, batches, durable, .. } = Bench::new();
    drop((batches, durable));
    let (reply, mut answer) = oneshot::channel();
    commands.blocking_send(Command::Lease { id: LeaseId(1), reply }).ok().unwrap();
    assert!(writer.step().is_none(), "the thread ends");
    drop(writer);
    assert_eq!(answer.try_recv().err(), Some(oneshot::error::TryRecvError::Closed));
}
