//! The audit log of an API server: what it was asked, by whom, and what it answered.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::scene::Scene;

/// How every record begins.
const OPENING: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","#;

/// The audit log of one API server.
#[derive(Clone, Debug)]
pub struct Audit {
    policy: PathBuf,
    log: PathBuf,
}

/// A place in the log.
#[derive(Debug)]
pub struct Reader {
    log: BufReader<File>,
    line: String,
}

// === impl Audit ===

impl Audit {
    /// `rules` are those of an audit policy: which requests are kept, and how much of each.
    pub fn new(scene: &Scene, rules: &Value) -> Result<Self> {
        let folder = scene.folder("kube")?;
        let audit = Self { policy: folder.join("audit.json"), log: folder.join("audit.log") };
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": rules,
        });
        fs::write(&audit.policy, policy.to_string()).context("write the audit policy")?;
        Ok(audit)
    }

    /// What makes an API server write it.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        vec![
            format!("--audit-policy-file={}", self.policy.display()),
            format!("--audit-log-path={}", self.log.display()),
            // A storm writes more than the default of 100 MB; a rotated log would be counted short.
            "--audit-log-maxsize=4096".to_owned(),
        ]
    }

    /// Every answered request so far, in the order of their answers.
    pub fn events(&self) -> Result<Vec<Value>> {
        self.read()?.collect()
    }

    /// The same one by one, for logs that are too long to be held.
    pub fn read(&self) -> Result<Reader> {
        let log = File::open(&self.log).context("read the audit log")?;
        Ok(Reader { log: BufReader::new(log), line: String::new() })
    }
}

// === impl Reader ===

impl Iterator for Reader {
    type Item = Result<Value>;

    /// Nothing if no more is written yet; what is written later comes when asked again.
    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.log.read_line(&mut self.line) {
            return Some(Err(error).context("read the audit log"));
        }
        // The rest of a line that is being written comes next time.
        if !self.line.ends_with('\n') {
            return None;
        }
        let event =
            serde_json::from_str(last_record(&self.line)).context("read a line of the audit log");
        self.line.clear();
        Some(event)
    }
}

/// A server that is killed may leave half a record, and its successor goes on in the same line.
fn last_record(line: &str) -> &str {
    line.rfind(OPENING).map_or(line, |start| &line[start..])
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A record as a server writes it.
    fn record(id: &str) -> String {
        format!("{OPENING}\"auditID\":\"{id}\"}}\n")
    }

    #[test]
    fn half_a_record_of_a_killed_server_is_passed_over() {
        let mut log = tempfile::NamedTempFile::new().expect("a file");
        let torn = record("b");
        let text =
            [record("a").as_str(), &torn[..torn.len() / 2], &record("c"), &torn[..9]].concat();
        log.write_all(text.as_bytes()).expect("write");
        let audit = Audit { policy: PathBuf::new(), log: log.path().to_owned() };
        let ids: Vec<_> = audit
            .events()
            .expect("whole records")
            .iter()
            .map(|e| e["auditID"].to_string())
            .collect();
        assert_eq!(ids, ["\"a\"", "\"c\""]);
    }
}
