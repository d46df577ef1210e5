//! How the page looks. Text in, text out; everything that somebody else wrote is escaped.

use std::fmt::Write;

use jiff::Timestamp;

use super::snapshot::{Counts, ServiceFacts, Snapshot, StoreFacts, TaskFacts, Told};
use crate::{
    commands::{
        nodes,
        task::describe::{Described, age, shortened},
    },
    config::size,
};

const STYLE: &str = include_str!("style.css");

/// How often a browser asks again.
const REFRESH_SECONDS: u32 = 2;

/// Enough of an id to name the task by.
const ID_CHARACTERS: usize = 13;

pub(super) fn write(snapshot: &Snapshot, now: Timestamp) -> String {
    let Snapshot { version, at, .. } = snapshot;
    let mut body = format!(
        "<h1>windlass <small>{} · {}</small></h1>\n",
        escaped(version),
        at.strftime("%Y-%m-%d %H:%M:%S UTC")
    );
    section(&mut body, "Store", &snapshot.store, store);
    section(&mut body, "Tasks", &snapshot.tasks, |facts| tasks(facts, now));
    if !snapshot.services.is_empty() {
        body += "<h2>Kubernetes</h2>\n";
        body += &services(&snapshot.services);
    }
    frame(&body)
}

fn frame(body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width\">\n\
         <meta http-equiv=refresh content={REFRESH_SECONDS}>\n\
         <title>windlass</title>\n<style>\n{STYLE}</style>\n<body>\n{body}\n"
    )
}

fn section<T>(body: &mut String, title: &str, told: &Told<T>, show: impl FnOnce(&T) -> String) {
    let shown = match told {
        Told::Known(facts) => show(facts),
        Told::Unknown(why) => format!("<p class=bad>{}</p>\n", escaped(why)),
    };
    *body += &format!("<h2>{title}</h2>\n{shown}");
}

fn store(facts: &StoreFacts) -> String {
    let bytes = |bytes: i64| size::show(u64::try_from(bytes).unwrap_or(0));
    let mut shown = figures(&[
        ("endpoint", &format!("<code>{}</code>", escaped(&facts.endpoint))),
        ("revision", &facts.revision.to_string()),
        ("keys", &facts.keys.to_string()),
        ("on disk", &bytes(facts.bytes)),
        ("in use", &bytes(facts.bytes_in_use)),
    ]);
    for error in &facts.errors {
        shown += &format!("<p class=bad>{}</p>\n", escaped(error));
    }
    shown
}

fn tasks(facts: &TaskFacts, now: Timestamp) -> String {
    let Counts { queued, running, complete, canceled, failed } = facts.counts;
    let counts = [
        ("running", running),
        ("queued", queued),
        ("complete", complete),
        ("canceled", canceled),
        ("failed", failed),
    ]
    .map(|(name, count)| (name, count.to_string()));
    let counts: Vec<(&str, &str)> =
        counts.iter().map(|(name, count)| (*name, count.as_str())).collect();
    let mut shown = figures(&counts);
    shown += &nodes_table(&facts.nodes);
    let kinds =
        [("Running", &facts.running), ("Queued", &facts.queued), ("Ended last", &facts.ended)];
    for (title, tasks) in kinds.into_iter().filter(|(_, tasks)| !tasks.is_empty()) {
        shown += &format!("<h3>{title}</h3>\n{}", tasks_table(tasks, now));
    }
    if kinds.iter().all(|(_, tasks)| tasks.is_empty()) {
        shown += "<p class=soft>Nothing yet. Try <code>windlass run -- ls -l</code></p>\n";
    }
    shown
}

fn nodes_table(nodes: &[nodes::Described]) -> String {
    let rows = nodes.iter().map(|node| {
        let (taken, has) = (node.reserved, node.capacity);
        let cpus = (size::show_cpus(taken.cpu_millis), size::show_cpus(has.cpu_millis));
        let memory = (size::show(taken.memory_bytes), size::show(has.memory_bytes));
        vec![
            escaped(&node.name),
            state(if node.draining { "draining" } else { "ready" }, !node.draining),
            share(taken.cpu_millis, has.cpu_millis, &cpus),
            share(taken.memory_bytes, has.memory_bytes, &memory),
            escaped(&node.runtime),
            state(
                if node.limits_enforced { "enforced" } else { "not enforced" },
                node.limits_enforced,
            ),
        ]
    });
    table(&["node", "state", "CPUs", "memory", "runtime", "limits"], rows)
}

fn tasks_table(tasks: &[Described], now: Timestamp) -> String {
    let rows = tasks.iter().map(|task| {
        let is_bad = task.state.is_final() && !task.state.is_success();
        vec![
            format!("<code>{}</code>", escaped(&prefix(&task.id))),
            escaped(&task.name),
            state(task.state.word(), !is_bad),
            escaped(&task.state.detail()),
            escaped(task.state.node().unwrap_or("–")),
            age(now.duration_since(task.submitted_at)),
            format!("<code>{}</code>", escaped(&shortened(&task.command.join(" ")))),
        ]
    });
    table(&["id", "name", "state", "", "node", "age", "command"], rows)
}

fn services(services: &[ServiceFacts]) -> String {
    let rows = services.iter().map(|service| {
        let (is_ready, detail) = match &service.ready {
            Told::Known(()) => (true, String::new()),
            Told::Unknown(why) => (false, escaped(why).replace('\n', "<br>")),
        };
        vec![
            escaped(service.name),
            state(if is_ready { "ready" } else { "not ready" }, is_ready),
            format!("<code>{}</code>", escaped(&service.address)),
            detail,
        ]
    });
    table(&["service", "state", "answers at", ""], rows)
}

fn figures(figures: &[(&str, &str)]) -> String {
    let figure = |(name, value): &(&str, &str)| format!("<div><dt>{name}<dd>{value}</div>\n");
    format!("<dl>\n{}</dl>\n", figures.iter().map(figure).collect::<String>())
}

/// The cells are markup already.
fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut shown = String::from("<table>\n<tr>");
    for title in header {
        shown += &format!("<th>{title}");
    }
    for row in rows {
        shown += "\n<tr>";
        for cell in row {
            write!(shown, "<td>{cell}").expect("writing to a string cannot fail");
        }
    }
    shown + "\n</table>\n"
}

fn share(taken: u64, has: u64, (taken_text, has_text): &(String, String)) -> String {
    format!("<meter value={taken} max={has}></meter> {taken_text} of {has_text}")
}

fn state(word: &str, is_good: bool) -> String {
    format!("<span class={}>{word}</span>", if is_good { "good" } else { "bad" })
}

fn prefix(id: &str) -> String {
    id.chars().take(ID_CHARACTERS).collect()
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tasks::wire;

    use super::*;

    fn ended(name: &str, exit_code: i32) -> Described {
        let complete = wire::Complete { exit_code, epoch: 90, ..Default::default() };
        let task = wire::Task {
            id: "0190a7e6-8c00-7d3e-8000-00000000002a".to_owned(),
            status: Some(wire::Status { status: Some(wire::status::Status::Complete(complete)) }),
            submitted_at_ms: 60_000,
            ..Default::default()
        };
        let view = wire::TaskView { task: Some(task), ..Default::default() };
        let mut ended = Described::read(view).unwrap();
        ended.name = name.to_owned();
        ended.command = vec!["echo".to_owned(), "<script>alert(1)</script>".to_owned()];
        ended
    }

    fn snapshot() -> Snapshot {
        let store = StoreFacts {
            endpoint: "http://127.0.0.1:2379".to_owned(),
            revision: 7,
            keys: 3,
            bytes: 8 << 20,
            bytes_in_use: 4096,
            errors: vec!["alarm NOSPACE".to_owned()],
        };
        let tasks = TaskFacts {
            counts: Counts { complete: 2, ..Counts::default() },
            nodes: Vec::new(),
            running: Vec::new(),
            queued: Vec::new(),
            ended: vec![ended("a & b", 0), ended("c", 3)],
        };
        let labels = ServiceFacts {
            name: "labels",
            address: "127.0.0.1:9180".to_owned(),
            ready: Told::Unknown("[-]access failed\n[+]watch ok".to_owned()),
        };
        Snapshot {
            version: "0.1.0",
            at: Timestamp::from_second(120).unwrap(),
            store: Told::Known(store),
            tasks: Told::Known(tasks),
            services: vec![labels],
        }
    }

    /// The page without its head, which is the same for all.
    fn body(page: &str) -> String {
        page.split_once("<body>\n").unwrap().1.to_owned()
    }

    #[test]
    fn what_others_wrote_is_text() {
        let page = body(&write(&snapshot(), Timestamp::from_second(120).unwrap()));
        expect![[r#"
            <h1>windlass <small>0.1.0 · 1970-01-01 00:02:00 UTC</small></h1>
            <h2>Store</h2>
            <dl>
            <div><dt>endpoint<dd><code>http://127.0.0.1:2379</code></div>
            <div><dt>revision<dd>7</div>
            <div><dt>keys<dd>3</div>
            <div><dt>on disk<dd>8MiB</div>
            <div><dt>in use<dd>4KiB</div>
            </dl>
            <p class=bad>alarm NOSPACE</p>
            <h2>Tasks</h2>
            <dl>
            <div><dt>running<dd>0</div>
            <div><dt>queued<dd>0</div>
            <div><dt>complete<dd>2</div>
            <div><dt>canceled<dd>0</div>
            <div><dt>failed<dd>0</div>
            </dl>
            <table>
            <tr><th>node<th>state<th>CPUs<th>memory<th>runtime<th>limits
            </table>
            <h3>Ended last</h3>
            <table>
            <tr><th>id<th>name<th>state<th><th>node<th>age<th>command
            <tr><td><code>0190a7e6-8c00</code><td>a &amp; b<td><span class=good>complete</span><td>exit code 0<td>–<td>1m<td><code>echo &lt;script&gt;alert(1)&lt;/script&gt;</code>
            <tr><td><code>0190a7e6-8c00</code><td>c<td><span class=bad>complete</span><td>exit code 3<td>–<td>1m<td><code>echo &lt;script&gt;alert(1)&lt;/script&gt;</code>
            </table>
            <h2>Kubernetes</h2>
            <table>
            <tr><th>service<th>state<th>answers at<th>
            <tr><td>labels<td><span class=bad>not ready</span><td><code>127.0.0.1:9180</code><td>[-]access failed<br>[+]watch ok
            </table>

        "#]].assert_eq(&page);
    }

    #[test]
    fn a_silent_part_hides_no_other() {
        let silent = Snapshot { store: Told::Unknown("silent for 2 s".to_owned()), ..snapshot() };
        let page = body(&write(&silent, silent.at));
        assert!(page.contains("<p class=bad>silent for 2 s</p>"), "{page}");
        assert!(page.contains("a &amp; b"), "{page}");
    }
}
