//! One log line as zap writes it: `{"level":"info","ts":"…","caller":"store","msg":"…",…}`.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormattedFields,
        format::{JsonFields, Writer},
    },
    registry::LookupSpan,
};

const TIMESTAMP: &str = "%Y-%m-%dT%H:%M:%S%.6fZ";
const MESSAGE: &str = "message";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON object.
    Json,
    /// Columns between tabs, then the fields as a JSON object.
    Console,
}

/// Gathers the fields of an event, the message apart from the rest.
#[derive(Default)]
struct Fields {
    message: String,
    rest: Map<String, Value>,
}

/// What a line says besides its fields.
struct Line<'a> {
    timestamp: String,
    level: &'static str,
    target: &'a str,
    fields: Fields,
}

/// zap's order of keys, which people read and scripts match.
#[derive(Serialize)]
struct JsonLine<'a> {
    level: &'a str,
    ts: &'a str,
    caller: &'a str,
    msg: &'a str,
    #[serde(flatten)]
    rest: &'a Map<String, Value>,
}

// === impl Format ===

impl<S> FormatEvent<S, JsonFields> for Format
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(formatted) = span.extensions().get::<FormattedFields<JsonFields>>() {
                fields.add_span(&formatted.fields);
            }
        }
        event.record(&mut fields);
        let line = Line {
            timestamp: jiff::Timestamp::now().strftime(TIMESTAMP).to_string(),
            level: zap_level(*event.metadata().level()),
            target: event.metadata().target(),
            fields,
        };
        writeln!(writer, "{}", line.render(*self))
    }
}

// === impl Line ===

impl Line<'_> {
    fn render(self, format: Format) -> String {
        let Fields { message, rest } = self.fields;
        match format {
            Format::Json => {
                let line = JsonLine {
                    level: self.level,
                    ts: &self.timestamp,
                    caller: self.target,
                    msg: &message,
                    rest: &rest,
                };
                serde_json::to_string(&line).expect("a map with text keys is JSON")
            }
            Format::Console => {
                let head = [&self.timestamp, self.level, self.target, &message].join("\t");
                if rest.is_empty() { head } else { format!("{head}\t{}", Value::Object(rest)) }
            }
        }
    }
}

// === impl Fields ===

impl Fields {
    /// Takes the fields of an enclosing span, which the subscriber keeps as a JSON object.
    fn add_span(&mut self, json: &str) {
        if let Ok(Value::Object(fields)) = serde_json::from_str(json) {
            self.rest.extend(fields);
        }
    }

    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.rest.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == MESSAGE {
            self.message = format!("{value:?}");
        } else {
            self.add(field, format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut chain = value.to_string();
        let mut cause = value.source();
        while let Some(source) = cause {
            chain = format!("{chain}: {source}");
            cause = source.source();
        }
        self.add(field, chain);
    }
}

fn zap_level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG | Level::TRACE => "debug",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(format: Format, expected: Expect) {
        let mut fields = Fields { message: "it's ready".into(), ..Fields::default() };
        fields.add_span(r#"{"revision":7}"#);
        let timestamp = "2026-01-02T03:04:05.000006Z".into();
        let line = Line { timestamp, level: zap_level(Level::INFO), target: "store", fields };
        expected.assert_eq(&line.render(format));
    }

    #[test]
    fn lines_look_like_zaps() {
        check(
            Format::Json,
            expect![[
                r#"{"level":"info","ts":"2026-01-02T03:04:05.000006Z","caller":"store","msg":"it's ready","revision":7}"#
            ]],
        );
        check(
            Format::Console,
            expect![[r#"2026-01-02T03:04:05.000006Z	info	store	it's ready	{"revision":7}"#]],
        );
    }
}
