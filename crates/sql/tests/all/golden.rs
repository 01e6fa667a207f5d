//! Golden scripts: statements and what they answer, in plain text files whose names are sentences.
//!
//! ```text
//! select 1 + 1 as sum;
//! ----
//! sum
//! 2
//! (SELECT 1)
//!
//! ```
//!
//! A statement ends with a semicolon at the end of a line; its answer follows `----` and ends with
//! an empty line. Values of a row are separated by ` | `, `NULL` is `∅`. `MERIDIAN_REWRITE=1`
//! writes what is answered into the scripts; read the diff.
//!
//! In a script that says `-- notices: shown`, notices come before the rows and before an error.
//!
//! `-- session: europe-west1 movr` before a statement runs it and what follows through a gateway in
//! that region, in that database.
//!
//! A script whose first line is `-- postgres: same` claims PostgreSQL's behaviour. Its errors are
//! compared by SQLSTATE, message, detail and hint.
//! [`scripts_that_claim_postgres_behaviour_have_it`] runs it there too. That test is ignored unless
//! it is asked for, as `.ci/run postgres` does: it needs a [`Postgres`].

use crate::postgres::Postgres;
use futures::FutureExt;
use meridian_base::SessionId;
use meridian_sql::session::{ClientSession, Session, SessionOptions};
use meridian_sql::testing::{MemEnvironment, with_batches_of};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A statement and its answer.
struct Step {
    /// As written, comments included.
    text: String,
    answer: String,
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).expect("tests/scripts").map(|f| f.expect("a file").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "sql"));
    files.sort();
    assert!(!files.is_empty(), "there are no scripts");
    files
}

fn read(path: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(path).expect("a readable script");
    let mut steps = Vec::new();
    let mut lines = text.lines().peekable();
    while lines.peek().is_some() {
        let mut step = Step { text: String::new(), answer: String::new() };
        for line in lines.by_ref() {
            step.text.push_str(line);
            step.text.push('\n');
            if line.trim_end().ends_with(';') && !line.trim_start().starts_with("--") {
                break;
            }
        }
        if lines.peek() == Some(&"----") {
            lines.next();
            for line in lines.by_ref() {
                if line.is_empty() {
                    break;
                }
                step.answer.push_str(line);
                step.answer.push('\n');
            }
        }
        steps.push(step);
    }
    steps
}

fn write(path: &Path, steps: &[Step]) {
    let mut text = String::new();
    for s in steps {
        let statement = s.text.trim_start_matches('\n');
        if statement.trim().is_empty() {
            continue;
        }
        let _ = write!(text, "{statement}----\n{}\n", s.answer);
    }
    std::fs::write(path, text).expect("a writable script");
}

/// Whether a script shows notices.
fn shows_notices(steps: &[Step]) -> bool {
    steps.first().is_some_and(|s| s.text.contains("-- notices: shown\n"))
}

fn show_message(severity: &str, code: &str, message: &str, detail: Option<&str>, hint: Option<&str>) -> String {
    let mut out = format!("{severity} {code}: {message}\n");
    for (name, value) in [("DETAIL", detail), ("HINT", hint)] {
        if let Some(value) = value {
            let _ = writeln!(out, "{name}: {value}");
        }
    }
    out
}

fn show_error(code: &str, message: &str, detail: Option<&str>, hint: Option<&str>, position: Option<u32>) -> String {
    let mut out = show_message("ERROR", code, message, detail, hint);
    if let Some(position) = position {
        let _ = writeln!(out, "POSITION: {position}");
    }
    out
}

fn show_rows(columns: &[String], rows: Vec<Vec<Option<String>>>) -> String {
    let mut out = String::new();
    if !columns.is_empty() {
        let _ = writeln!(out, "{}", columns.join(" | "));
        for row in rows {
            let values: Vec<String> = row.into_iter().map(|v| v.unwrap_or_else(|| "∅".into())).collect();
            // An empty line would end the answer.
            let line = values.join(" | ");
            let _ = writeln!(out, "{}", if line.is_empty() { "''" } else { &line });
        }
    }
    out
}

async fn run_here(session: &mut Session<MemEnvironment>, text: &str, shows_notices: bool) -> String {
    let session: &mut dyn ClientSession = session;
    let (results, ended) = session.query_told(text).await;
    let mut out = String::new();
    for r in results {
        for n in r.notices.iter().filter(|_| shows_notices) {
            out.push_str(&show_message(n.severity, n.sqlstate, &n.message, n.detail.as_deref(), n.hint.as_deref()));
        }
        if ended.is_ok() {
            out.push_str(&show_rows(&r.columns, r.rows));
            let _ = writeln!(out, "({})", r.tag);
        }
    }
    if let Err(e) = ended {
        out.push_str(&show_error(e.sqlstate(), e.message(), e.get_detail(), e.get_hint(), e.get_position()));
    }
    out
}

/// Sessions by gateway region and database.
struct Sessions {
    env: MemEnvironment,
    open: BTreeMap<(String, String), Session<MemEnvironment>>,
    current: (String, String),
}

impl Sessions {
    fn new() -> Sessions {
        let env = MemEnvironment::new(&["us-east1", "europe-west1", "asia-northeast1"]);
        Sessions { env, open: BTreeMap::new(), current: ("us-east1".into(), "postgres".into()) }
    }
    /// The session that a statement says it runs in, or the last one.
    fn of(&mut self, text: &str) -> &mut Session<MemEnvironment> {
        let named = text.lines().find_map(|l| l.strip_prefix("-- session: ")).and_then(|l| l.split_once(' '));
        if let Some((region, database)) = named {
            self.current = (region.into(), database.into());
        }
        let (region, database) = self.current.clone();
        let env = self.env.at(&region).expect("a region of the script's cluster");
        let id = SessionId(self.open.len() as u64 + 1);
        self.open.entry((region, database.clone())).or_insert_with(|| {
            let options = SessionOptions { id, user: "root".into(), database, ..SessionOptions::default() };
            Session::new(env.clone(), options, env.shared()).expect("a session")
        })
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn every_script_answers_as_written() {
    check_scripts(1_024, std::env::var_os("MERIDIAN_REWRITE").is_some());
}

#[test]
fn every_script_answers_so_in_batches_of_one() {
    check_scripts(1, false);
}

#[test]
fn every_script_answers_so_in_batches_of_three() {
    check_scripts(3, false);
}

/// `rows`: of a batch.
fn check_scripts(rows: usize, rewrite: bool) {
    let mut differences = String::new();
    for path in scripts() {
        let mut steps = read(&path);
        let shows_notices = shows_notices(&steps);
        runtime().block_on(with_batches_of(rows, async {
            let mut sessions = Sessions::new();
            for s in &mut steps {
                let run = std::panic::AssertUnwindSafe(run_here(sessions.of(&s.text), &s.text, shows_notices)).catch_unwind();
                let Ok(answer) = run.await else { panic!("{}: panicked in\n{}", path.display(), s.text) };
                if answer != s.answer {
                    let name = path.file_name().expect("a file").to_string_lossy();
                    let _ = writeln!(differences, "{name}:\n{}---- expected\n{}---- answered\n{answer}", s.text, s.answer);
                    s.answer = answer;
                }
            }
        }));
        if rewrite {
            write(&path, &steps);
        }
    }
    assert!(rewrite || differences.is_empty(), "\n{differences}");
}

/// Whether an answer's line is about something PostgreSQL's simple protocol does not tell its
/// drivers.
fn is_tag(line: &str) -> bool {
    line.ends_with(')') && line.strip_prefix('(').is_some_and(|l| l.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// What a server says besides its answers.
type Said = Arc<Mutex<String>>;

/// A connection to a server, and the notices that it has sent.
async fn connect(config: &str) -> (tokio_postgres::Client, Said, tokio::task::JoinHandle<()>) {
    let (client, mut connection) = tokio_postgres::connect(config, tokio_postgres::NoTls).await.expect("a PostgreSQL server");
    let said = Said::default();
    let heard = said.clone();
    let connection = tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            if let tokio_postgres::AsyncMessage::Notice(n) = message {
                let text = show_message(n.severity(), n.code().code(), n.message(), n.detail(), n.hint());
                heard.lock().expect("no panic").push_str(&text);
            }
        }
    });
    (client, said, connection)
}

async fn run_there(client: &tokio_postgres::Client, text: &str) -> String {
    use tokio_postgres::SimpleQueryMessage as M;
    let messages = match client.simple_query(text).await {
        Ok(messages) => messages,
        Err(e) => {
            let e = e.as_db_error().expect("an error of the server's");
            let position = match e.position() {
                Some(tokio_postgres::error::ErrorPosition::Original(p)) => Some(*p),
                _ => None,
            };
            return show_error(e.code().code(), e.message(), e.detail(), e.hint(), position);
        }
    };
    let (mut columns, mut rows) = (Vec::new(), Vec::new());
    for m in messages {
        match m {
            M::RowDescription(d) => columns = d.iter().map(|c| c.name().to_string()).collect(),
            M::Row(r) => rows.push((0..r.len()).map(|i| r.get(i).map(str::to_string)).collect()),
            _ => {}
        }
    }
    show_rows(&columns, rows)
}

#[test]
#[ignore = "needs a PostgreSQL: .ci/run postgres"]
fn scripts_that_claim_postgres_behaviour_have_it() {
    let postgres = Postgres::alone();
    let mut compared = 0;
    let mut differences = String::new();
    runtime().block_on(async {
        let (client, said, connection) = connect(postgres.config()).await;
        for path in scripts() {
            let steps = read(&path);
            if !steps.first().is_some_and(|s| s.text.starts_with("-- postgres: same")) {
                continue;
            }
            compared += 1;
            let clean = "drop schema if exists public cascade; create schema public; set timezone = 'UTC'";
            client.simple_query(clean).await.expect("an empty schema");
            said.lock().expect("no panic").clear();
            let shows_notices = shows_notices(&steps);
            for s in &steps {
                let ours: String = s.answer.lines().filter(|l| !is_tag(l)).map(|l| format!("{l}\n")).collect();
                let answer = run_there(&client, &s.text).await;
                let mut theirs = std::mem::take(&mut *said.lock().expect("no panic"));
                if !shows_notices {
                    theirs.clear();
                }
                theirs.push_str(&answer);
                if !ours.contains("POSITION: ")
                    && let Some(at) = theirs.find("POSITION: ")
                {
                    // An error without a place is less helpful, not wrong.
                    theirs.truncate(at);
                }
                if ours != theirs {
                    let name = path.file_name().expect("a file").to_string_lossy();
                    let _ = writeln!(differences, "{name}:\n{}---- here\n{ours}---- PostgreSQL\n{theirs}", s.text);
                }
            }
        }
        drop(client);
        let _ = connection.await;
    });
    assert!(differences.is_empty(), "\n{differences}");
    println!("{compared} scripts answer as PostgreSQL does");
    assert!(compared > 20, "the scripts that claim it are there");
}
