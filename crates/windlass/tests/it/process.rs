//! A real process over a real folder.

use std::os::unix::fs::{FileExt, PermissionsExt};

use journal::{EmbeddedJournal, Image, Journal, MetaChange};
use rustix::process::Signal;

use super::running::{Running, failure, succeed, up, windlass};

/// With a socket of its own it said `windlass run -- ls -l`, which looks for the node elsewhere.
#[test]
fn what_up_says_to_try_works() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path());
    let tried = running.welcome.lines().find_map(|line| line.strip_prefix("  windlass run "));
    let mut command = windlass(["run"]);
    succeed(command.args(tried.unwrap().split(' ')));
}

#[test]
fn a_second_start_finds_everything() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::INT, Signal::TERM] {
        let running = Running::start(folder.path());
        running.post("/v3/kv/put", r#"{"key":"YQ==","value":"Yg=="}"#);
        let (status, last_words) = running.stop(signal);
        assert!(status.success(), "{status}: {last_words}");
        assert!(last_words.contains("everything is kept in"), "{last_words}");
    }
    let found = Running::start(folder.path()).post("/v3/kv/range", r#"{"key":"YQ=="}"#);
    assert!(found.contains(r#""version":"2""#), "{found}");
}

#[test]
fn a_snapshot_is_saved_verified_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (file, restored) = (folder.path().join("snapshot"), folder.path().join("restored"));
    let running = Running::start(&folder.path().join("first"));
    running.post("/v3/kv/put", r#"{"key":"YQ==","value":"Yg=="}"#);
    succeed(windlass(["store", "status", "--endpoint", &running.address]));
    let save = ["store", "snapshot", "save", "--endpoint", &running.address];
    succeed(windlass(save).arg(&file));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "it is nobody else's");
    drop(running);
    succeed(windlass(["store", "verify"]).arg(&file));
    let store = restored.join("store");
    succeed(windlass(["store", "restore"]).arg(&file).arg("--data-dir").arg(&store));
    succeed(windlass(["store", "verify"]).arg(&store));
    let found = Running::start(&restored).post("/v3/kv/range", r#"{"key":"YQ=="}"#);
    assert!(found.contains(r#""value":"Yg==""#), "{found}");
}

/// It stayed beside the name that it could not be given, as large as the store.
#[test]
fn a_snapshot_that_cannot_be_saved_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start_store(folder.path());
    let taken = folder.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    let mut save = windlass(["store", "snapshot", "save", "--endpoint", &running.address]);
    let (code, words) = failure(save.arg(&taken));
    assert_eq!(code, Some(1));
    assert!(words.contains("cannot rename"), "{words}");
    assert!(!folder.path().join("taken.part").exists());
}

/// As a restore leaves it that is killed on its way.
#[test]
fn a_folder_that_is_half_restored_is_neither_sound_nor_served() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let journal = EmbeddedJournal::open(&store, Default::default()).unwrap();
    let mark = MetaChange { key: "restoring".into(), value: Some("".into()) };
    let last = journal.durable().unwrap();
    let image = Image { last, records: Vec::new(), meta: vec![mark] };
    journal.ingest(journal.claim().unwrap(), &image).unwrap();
    drop(journal);
    for ask in ["verify", "inspect"] {
        let (code, words) = failure(windlass(["store", ask]).arg(&store));
        assert_eq!(code, Some(1), "{ask}: {words}");
        assert!(words.contains("is not all there\nhint: import or restore again"), "{words}");
    }
    let (code, words) = failure(&mut up(folder.path(), "127.0.0.1:0"));
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("hint: remove the folder and restore the snapshot again"), "{words}");
}

#[test]
fn an_imported_store_goes_on_where_the_other_was() {
    let folder = tempfile::tempdir().unwrap();
    let imported = folder.path().join("imported");
    let running = Running::start_store(&folder.path().join("first"));
    running.post("/v3/lease/grant", r#"{"ID":"7","TTL":"600"}"#);
    for body in [r#"{"key":"YQ=="}"#, r#"{"key":"Yg=="}"#, r#"{"key":"YQ==","lease":"7"}"#] {
        running.post("/v3/kv/put", body);
    }
    let import = ["store", "import", "--from", &running.address, "--data-dir"];
    succeed(windlass(import).arg(imported.join("store")));
    drop(running);
    let running = Running::start_store(&imported);
    let found = running.post("/v3/kv/range", r#"{"key":"YQ=="}"#);
    let expected = r#""create_revision":"2","mod_revision":"4","version":"2","lease":"7""#;
    assert!(found.contains(expected), "{found}");
    let compacted = running.post("/v3/kv/range", r#"{"key":"YQ==","revision":"3"}"#);
    assert!(compacted.contains("required revision has been compacted"), "{compacted}");
    let written = running.post("/v3/kv/put", r#"{"key":"Yw=="}"#);
    assert!(written.contains(r#""revision":"5""#), "{written}");
}

#[test]
fn an_import_leaves_a_folder_with_something_in_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("something"), "").unwrap();
    let import = ["store", "import", "--from", "127.0.0.1:1", "--data-dir"];
    let (code, words) = failure(windlass(import).arg(folder.path()));
    assert_eq!(code, Some(1));
    assert!(words.contains("exists and is not empty\nhint: name a folder"), "{words}");
}

#[test]
fn inspecting_a_folder_tells_whether_it_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    Running::start_store(folder.path()).stop(Signal::TERM);
    let inspect = || windlass(["store", "inspect"]).arg(folder.path()).output().unwrap();
    let sound = inspect();
    let table = String::from_utf8(sound.stdout).unwrap();
    assert!(sound.status.success(), "{table}");
    let segment: Vec<&str> = table.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(segment[..2], ["1", "-"], "nothing was written: {table}");

    let log = folder.path().join("store/log/0000000000000001-00000001.seg");
    let file = std::fs::File::options().write(true).open(log).unwrap();
    file.write_all_at(b"?", 0).unwrap();
    let damaged = inspect();
    let (table, words) =
        (String::from_utf8_lossy(&damaged.stdout), String::from_utf8_lossy(&damaged.stderr));
    assert_eq!(damaged.status.code(), Some(1), "{table}");
    assert!(table.contains("damage: "), "{table}");
    assert!(words.contains("is damaged\nhint: restore a snapshot"), "{words}");
}

#[test]
fn a_damaged_snapshot_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("snapshot");
    std::fs::write(&file, "not a snapshot").unwrap();
    let (code, words) = failure(windlass(["store", "verify"]).arg(&file));
    assert_eq!(code, Some(1));
    assert!(words.contains("is not a good snapshot"), "{words}");
}

#[test]
fn nobody_at_the_endpoint_is_exit_code_3() {
    // A port that was free a moment ago, and that nobody else is told of.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let (code, words) = failure(&mut windlass(["store", "status", "--endpoint", &address]));
    assert_eq!(code, Some(3), "{words}");
    assert_eq!(words.lines().count(), 2, "{words}");
}

#[test]
fn a_folder_in_use_is_refused_in_two_lines() {
    let folder = tempfile::tempdir().unwrap();
    let _running = Running::start(folder.path());
    let (code, words) = failure(&mut up(folder.path(), "127.0.0.1:0"));
    assert_eq!(code, Some(1));
    assert_eq!(words.lines().count(), 2, "{words}");
    assert!(words.contains("is in use by another process\nhint: stop the process"), "{words}");
}

#[test]
fn a_port_in_use_is_refused_in_two_lines() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(&folder.path().join("first"));
    let (code, words) = failure(&mut up(&folder.path().join("second"), &running.address));
    assert_eq!(code, Some(1));
    assert_eq!(words.lines().count(), 2, "{words}");
    assert!(words.contains(&format!("{} is in use", running.address)), "{words}");
}

#[test]
fn a_certificate_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let serve = ["store", "serve", "--cert-file", "no-such.crt", "--key-file", "no-such.key"];
    let mut serve = windlass(serve);
    serve.args(["--listen-client-urls", "https://127.0.0.1:0"]);
    serve.args(["--advertise-client-urls", "https://127.0.0.1:2379", "--data-dir"]);
    let (code, words) = failure(serve.arg(folder.path()));
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("cannot look at no-such.crt: No such file"), "{words}");
    assert!(words.contains("hint: check the files of the certificate"), "{words}");
}

#[test]
fn the_folder_of_an_etcd_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("store/member/wal")).unwrap();
    let (code, words) = failure(&mut up(folder.path(), "127.0.0.1:0"));
    assert_eq!(code, Some(1));
    assert!(words.contains("holds the data of an etcd"), "{words}");
    assert!(!folder.path().join("store/LOCK").exists());
}
