//! Commands that ask a store with authentication and TLS.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::running::{Running, failure, logged_address, post, succeed, windlass};

/// What the store says once clients are served.
const READY: &str = "ready to serve client requests";

/// A store that is served in plain text and with TLS.
struct Secured {
    child: Child,
    folder: TempDir,
    plain: String,
    encrypted: String,
}

// === impl Secured ===

impl Secured {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = windlass(["store", "serve", "--auto-tls", "--bcrypt-cost", "4"])
            .args(["--listen-client-urls", "http://127.0.0.1:0,https://127.0.0.1:0"])
            .args(["--advertise-client-urls", "http://127.0.0.1:0"])
            .arg("--data-dir")
            .arg(folder.path().join("data"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let log = log.lines().map(Result::unwrap).take_while(|line| !line.contains(READY));
        let mut addresses = log.filter_map(|line| Some(logged_address(&line)?.0.to_owned()));
        let (plain, encrypted) = (addresses.next().unwrap(), addresses.next().unwrap());
        assert_eq!(addresses.next(), None);
        drop(addresses);
        Self { child, folder, plain, encrypted: format!("https://{encrypted}") }
    }

    /// From here on only `root` with the password `secret` may ask.
    fn with_auth() -> Self {
        let store = Self::start();
        for (path, body) in [
            ("/v3/kv/put", r#"{"key":"YQ==","value":"Yg=="}"#),
            ("/v3/auth/user/add", r#"{"name":"root","password":"secret"}"#),
            ("/v3/auth/role/add", r#"{"name":"root"}"#),
            ("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#),
            ("/v3/auth/enable", "{}"),
        ] {
            let answer = post(&store.plain, path, body);
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        }
        store
    }

    /// The certificate is its own authority.
    fn cacert(&self) -> PathBuf {
        self.folder.path().join("data/fixtures/client/cert.pem")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn status(&self) -> Command {
        let mut command = windlass(["store", "status", "--endpoint", &self.encrypted, "--cacert"]);
        command.arg(self.cacert());
        command
    }

    fn save(&self, file: &Path) -> Command {
        let mut command = windlass(["store", "snapshot", "save", "--endpoint", &self.encrypted]);
        command.arg("--cacert").arg(self.cacert()).arg(file);
        command
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        // Fails if the process has ended, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_user_may_ask_and_nobody_may_not() {
    let store = Secured::with_auth();
    let file = store.path("snapshot");
    succeed(store.status().args(["--user", "root:secret"]));
    for (asked, words) in [
        (failure(&mut store.status()), "give --user"),
        (failure(&mut store.save(&file)), "give --user"),
        (failure(store.save(&file).args(["--user", "root:wrong"])), "check the name"),
    ] {
        assert_eq!(asked.0, Some(1), "{}", asked.1);
        assert!(asked.1.contains(words), "{}", asked.1);
        assert!(!asked.1.contains("wrong"), "a password is shown: {}", asked.1);
    }
    assert!(!file.exists());
    succeed(store.save(&file).args(["--user", "root", "--password", "secret"]));
    succeed(windlass(["store", "verify"]).arg(&file));
    succeed(store.save(&file).env("WINDLASS_USER", "root:secret"));
    succeed(store.save(&file).env("WINDLASS_USER", "root").env("WINDLASS_PASSWORD", "secret"));
}

#[test]
fn a_user_without_password_is_a_mistake() {
    let (code, words) = failure(
        windlass(["store", "import", "--from", "127.0.0.1:1", "--data-dir", "nowhere"])
            .args(["--password", "secret"]),
    );
    assert_eq!(code, Some(2), "{words}");
    let store = Secured::with_auth();
    let (code, words) = failure(store.status().args(["--user", "root"]));
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("the password of --user is missing"), "{words}");
}

#[test]
fn a_login_where_none_is_needed_is_no_mistake() {
    succeed(Secured::start().status().args(["--user", "root:secret"]));
}

#[test]
fn an_import_takes_users_along() {
    let store = Secured::with_auth();
    let imported = store.path("imported");
    let mut import = windlass(["store", "import", "--from", &store.encrypted, "--cacert"]);
    import.arg(store.cacert()).arg("--data-dir").arg(imported.join("store"));
    let (code, words) = failure(&mut import);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("give --user"), "{words}");
    succeed(import.args(["--user", "root:secret"]));

    let running = Running::start(&imported);
    let asked = ["store", "status", "--endpoint", &running.address];
    let (code, words) = failure(&mut windlass(asked));
    assert_eq!(code, Some(1), "{words}");
    succeed(windlass(asked).args(["--user", "root:secret"]));
}
