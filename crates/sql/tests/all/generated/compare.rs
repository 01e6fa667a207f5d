//! Who is asked, and whether they say the same.

use super::query::Query;
use super::schema;
use futures::FutureExt;
use meridian_base::SessionId;
use meridian_sql::session::{Session, SessionOptions};
use meridian_sql::testing::MemEnvironment;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::AssertUnwindSafe;
use tokio_postgres::{Client, SimpleQueryMessage};

/// Rows, or an error's code and what it says.
pub type Answer = Result<Vec<Vec<Option<String>>>, (String, String)>;

pub enum Comparison {
    Same,
    /// Both failed, with this code.
    Failed(String),
    /// What cannot be compared, for a reason.
    Skipped(&'static str),
    Differ(String),
}

/// Why a query is skipped that is refused for want of memory; few may be.
const TOO_LARGE: &str = "it needs more memory than a statement may hold";

impl Comparison {
    pub fn is_too_large(&self) -> bool {
        matches!(self, Comparison::Skipped(TOO_LARGE))
    }
    pub fn name(&self) -> String {
        match self {
            Comparison::Same => "same rows".into(),
            Comparison::Failed(code) => format!("failed alike with {code}"),
            Comparison::Skipped(why) => format!("skipped: {why}"),
            Comparison::Differ(_) => "DIFFER".into(),
        }
    }
}

/// A way of storing the same rows, and a session there.
struct Here {
    name: &'static str,
    session: Session<MemEnvironment>,
}

pub struct Servers {
    postgres: Client,
    connection: tokio::task::JoinHandle<Result<(), tokio_postgres::Error>>,
    here: Vec<Here>,
}

/// A query for which PostgreSQL takes longer is not compared: few are as large, and here nothing
/// would end them.
const TIMEOUT: &str = "set statement_timeout = '2s'";

impl Servers {
    pub async fn connect(config: &str) -> Servers {
        let (postgres, connection) = tokio_postgres::connect(config, tokio_postgres::NoTls).await.expect("a PostgreSQL server");
        Servers { postgres, connection: tokio::spawn(connection), here: Vec::new() }
    }
    pub async fn close(self) {
        drop(self.postgres);
        let _ = self.connection.await;
    }
    /// Makes the tables everywhere, with the rows of a seed.
    pub async fn fill(&mut self, seed: u64) {
        let clean = "drop schema if exists public cascade; create schema public; set timezone = 'UTC'";
        let all =
            [vec![clean.to_string(), TIMEOUT.to_string()], schema::statements(seed, false), vec!["analyze".into()]].concat();
        for s in all {
            self.postgres.simple_query(&s).await.unwrap_or_else(|e| panic!("{s}: {e}"));
        }
        self.here.clear();
        for (name, with_indexes, with_statistics) in
            [("keys alone", false, false), ("indexes", true, false), ("indexes and statistics", true, true)]
        {
            let env = MemEnvironment::new(&["us-east1"]);
            let options = SessionOptions {
                id: SessionId(1),
                user: "root".into(),
                database: "postgres".into(),
                ..SessionOptions::default()
            };
            let mut session = Session::new(env.clone(), options, env.shared()).expect("a session");
            let mut all = schema::statements(seed, with_indexes);
            if with_statistics {
                all.push("analyze".into());
            }
            for s in all {
                session.query_text(&s).await.unwrap_or_else(|e| panic!("{s}: {e}"));
            }
            self.here.push(Here { name, session });
        }
    }
    /// What PostgreSQL answers; it is asked for all of them before the first answer is waited for.
    pub async fn answers(&self, queries: &[Query]) -> Vec<Answer> {
        futures::future::join_all(queries.iter().map(|q| self.answer(q))).await
    }
    async fn answer(&self, query: &Query) -> Answer {
        let Some(then) = &query.then else { return ask(&self.postgres, &query.sql).await };
        // They are sent in this order, with nothing between them.
        let all = ["begin", &query.sql, then, "rollback"].map(|s| ask(&self.postgres, s));
        let [_, first, second, _] = futures::future::join_all(all).await.try_into().expect("four answers");
        if first.is_ok() { both(first, second) } else { first }
    }
    pub async fn compare(&mut self, query: &Query) -> Comparison {
        let theirs = self.answer(query).await;
        self.compare_with(query, theirs).await
    }
    /// The same, with what PostgreSQL answers.
    pub async fn compare_with(&mut self, query: &Query, theirs: Answer) -> Comparison {
        if matches!(&theirs, Err((code, _)) if code == "57014") {
            return Comparison::Skipped("PostgreSQL takes too long");
        }
        let mut told: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let mut skipped = None;
        for h in &mut self.here {
            let ours = match &query.then {
                None => h.ask(&query.sql).await,
                Some(then) => {
                    h.ask("begin").await.expect("a transaction");
                    let first = h.ask(&query.sql).await;
                    let second = if first.is_ok() { h.ask(then).await } else { Ok(Vec::new()) };
                    h.ask("rollback").await.expect("the end of a transaction");
                    both(first, second)
                }
            };
            match verdict(&ours, &theirs, query.is_ordered) {
                Comparison::Differ(how) => {
                    told.entry(how).or_default().push(h.name);
                }
                Comparison::Skipped(why) => skipped = Some(why),
                _ => {}
            }
        }
        match (told.is_empty(), skipped, theirs) {
            (false, ..) => {
                Comparison::Differ(told.into_iter().map(|(how, who)| format!("---- with {}\n{how}", who.join(", "))).collect())
            }
            (true, Some(why), _) => Comparison::Skipped(why),
            (true, None, Err((code, _))) => Comparison::Failed(code),
            (true, None, Ok(_)) => Comparison::Same,
        }
    }
}

impl Here {
    async fn ask(&mut self, sql: &str) -> Answer {
        let answer = AssertUnwindSafe(self.session.query_text(sql)).catch_unwind().await;
        match answer {
            Err(_) => Err(("panic".into(), String::new())),
            Ok(Err(e)) => Err((e.sqlstate().to_string(), e.message().to_string())),
            Ok(Ok(results)) => Ok(results.into_iter().flat_map(|r| r.rows).collect()),
        }
    }
}

async fn ask(client: &Client, sql: &str) -> Answer {
    match client.simple_query(sql).await {
        Err(e) => {
            let e = e.as_db_error().expect("an error of the server's");
            Err((e.code().code().to_string(), e.message().to_string()))
        }
        Ok(messages) => {
            let row = |m| match m {
                SimpleQueryMessage::Row(r) => Some((0..r.len()).map(|i| r.get(i).map(str::to_string)).collect()),
                _ => None,
            };
            Ok(messages.into_iter().filter_map(row).collect())
        }
    }
}

/// What a change returned, and what was there afterwards.
fn both(first: Answer, second: Answer) -> Answer {
    let mut rows = first?;
    let mark = |mut row: Vec<Option<String>>| {
        row.insert(0, Some("then".into()));
        row
    };
    rows.extend(second?.into_iter().map(mark));
    Ok(rows)
}

fn verdict(ours: &Answer, theirs: &Answer, is_ordered: bool) -> Comparison {
    match (ours, theirs) {
        // Running aggregates of texts, of thousands of rows (docs/limitations.md).
        (Err((code, _)), Ok(_)) if code == "53200" => Comparison::Skipped(TOO_LARGE),
        (Ok(ours), Ok(theirs)) => {
            let (mut x, mut y) = (ours.clone(), theirs.clone());
            if !is_ordered {
                x.sort();
                y.sort();
            }
            if x == y { Comparison::Same } else { Comparison::Differ(rows_that_differ(&x, &y)) }
        }
        // It joins in full only what it can merge or hash.
        (_, Err((_, message))) if message.starts_with("FULL JOIN is only supported") => {
            Comparison::Skipped("a full join that PostgreSQL refuses")
        }
        (Err((ours, _)), Err((theirs, _))) if ours == theirs => Comparison::Failed(theirs.clone()),
        (ours, theirs) => Comparison::Differ(format!("here: {}\nPostgreSQL: {}\n", brief(ours), brief(theirs))),
    }
}

fn brief(a: &Answer) -> String {
    match a {
        Ok(rows) => format!("{} rows", rows.len()),
        Err((code, message)) => format!("{code}: {message}"),
    }
}

fn line(row: &[Option<String>]) -> String {
    row.iter().map(|v| v.as_deref().unwrap_or("∅")).collect::<Vec<_>>().join(" | ")
}

/// The first rows that one side alone has.
fn rows_that_differ(ours: &[Vec<Option<String>>], theirs: &[Vec<Option<String>>]) -> String {
    let mut out = format!("{} rows here, {} there\n", ours.len(), theirs.len());
    for (mark, list, other) in [("here", ours, theirs), ("PostgreSQL", theirs, ours)] {
        let mut rest = other.to_vec();
        let mut alone = Vec::new();
        for row in list {
            match rest.iter().position(|r| r == row) {
                Some(i) => drop(rest.swap_remove(i)),
                None => alone.push(row),
            }
        }
        for row in alone.iter().take(3) {
            let _ = writeln!(out, "{mark} alone: {}", line(row));
        }
    }
    if let Some(i) = (0..ours.len().min(theirs.len())).find(|i| ours[*i] != theirs[*i]) {
        let _ = writeln!(out, "row {i} here: {}\nrow {i} PostgreSQL: {}", line(&ours[i]), line(&theirs[i]));
    }
    out
}
