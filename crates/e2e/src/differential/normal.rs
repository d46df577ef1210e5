//! Answers in a form that can be compared: JSON, without what two correct stores may say
//! differently. Everything else, to the last error text, must be equal.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tonic::Status;

/// Fields that tell of one machine's disk, clock or log.
const OWN_FIELDS: [&str; 6] =
    ["dbSize", "dbSizeInUse", "raftIndex", "raftTerm", "raftAppliedIndex", "remaining_bytes"];

/// Fields of bytes that are read more easily as text.
const TEXT_FIELDS: [&str; 4] = ["key", "value", "range_end", "keys"];

/// What a side calls itself: the numbers that stand for it in its answers.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub cluster: Option<String>,
    pub member: Option<String>,
    /// Leases named by the server, in the order they were granted.
    pub chosen_leases: Vec<i64>,
}

/// A gRPC error: code and message are both compared.
#[must_use]
pub fn error(status: &Status) -> Value {
    json!({"error": {"code": format!("{:?}", status.code()), "message": status.message()}})
}

// === impl Names ===

impl Names {
    /// An answer, with this side's own numbers replaced by what they stand for.
    pub fn answer(&mut self, message: &impl Serialize) -> Value {
        let mut value =
            serde_json::to_value(message).expect("every message of the API has a JSON form");
        if let Some(header) = value.get("header") {
            self.learn(header);
        }
        self.normalise(&mut value);
        value
    }

    /// The first header says who this side is; a later one that says otherwise will show.
    fn learn(&mut self, header: &Value) {
        let text = |field: &str| header[field].as_str().map(ToOwned::to_owned);
        self.cluster = self.cluster.take().or_else(|| text("cluster_id"));
        self.member = self.member.take().or_else(|| text("member_id"));
    }

    fn normalise(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => self.normalise_fields(fields),
            Value::Array(items) => items.iter_mut().for_each(|item| self.normalise(item)),
            Value::String(text) => {
                if let Some(name) = self.name(text) {
                    *text = name;
                }
            }
            _ => {}
        }
    }

    fn normalise_fields(&self, fields: &mut Map<String, Value>) {
        fields.retain(|name, _| !OWN_FIELDS.contains(&name.as_str()));
        for (name, value) in fields {
            match name.as_str() {
                // Non-zero is all that is promised.
                "raft_term" => *value = json!("term"),
                name if TEXT_FIELDS.contains(&name) => readable(value),
                _ => self.normalise(value),
            }
        }
    }

    fn name(&self, text: &str) -> Option<String> {
        if self.cluster.as_deref() == Some(text) {
            return Some("own cluster".to_owned());
        }
        if self.member.as_deref() == Some(text) {
            return Some("own member".to_owned());
        }
        let is_this = |id: &i64| id.to_string() == text;
        self.chosen_leases.iter().position(is_this).map(|at| format!("chosen lease {at}"))
    }
}

fn readable(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(readable),
        Value::String(text) => {
            if let Ok(bytes) = STANDARD.decode(&*text) {
                *text = bytes.escape_ascii().to_string();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use etcd_api::etcdserverpb::{DeleteRangeResponse, ResponseHeader};

    use super::*;

    #[test]
    fn own_numbers_become_names_and_strange_ones_stay() {
        let header =
            |member_id| ResponseHeader { cluster_id: 7, member_id, revision: 3, raft_term: 2 };
        let answer = |member_id| DeleteRangeResponse {
            header: Some(header(member_id)),
            deleted: 1,
            prev_kvs: Vec::new(),
        };
        let mut names = Names::default();
        let own = names.answer(&answer(8));
        assert_eq!(own["header"]["member_id"], "own member");
        assert_eq!(own["header"]["revision"], "3");
        assert_eq!(names.answer(&answer(9))["header"]["member_id"], "9");
    }
}
