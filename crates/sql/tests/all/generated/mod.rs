//! Queries that are generated, and answered as PostgreSQL does.
//!
//! A number makes a query, and the thousand it belongs to makes the rows of the tables. Each is
//! asked of a PostgreSQL, and here with keys alone, with secondary indexes, and with those and
//! statistics. A difference is shrunk, and told with the number that makes it.
//!
//! * `MERIDIAN_QUERIES_SEED`: the first number; else `CI_SLICE` chooses a thousand.
//! * `MERIDIAN_QUERIES_COUNT`: how many follow.
//! * `MERIDIAN_QUERIES_SHOW`: writes every query and what came of it.
//!
//! It needs a [`Postgres`]; `.ci/run postgres` starts one.

mod change;
mod choices;
mod compare;
mod expr;
mod query;
mod schema;

use crate::postgres::Postgres;
use choices::Choices;
use compare::{Comparison, Servers};
use expr::Generator;
use query::Query;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Queries of one set of rows.
const ROUND: u64 = 1_000;
/// So many are asked at once.
const BATCH: u64 = 50;
/// How many differences are shrunk and told.
const TOLD_MAX: usize = 20;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |v| v.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
#[ignore = "needs a PostgreSQL: .ci/run postgres"]
fn generated_queries_are_answered_as_postgres_does() {
    let postgres = Postgres::alone();
    // Another slice with every commit, if there is one.
    let first = number("MERIDIAN_QUERIES_SEED", number("CI_SLICE", 0) % 1_000_000 * ROUND);
    let count = number("MERIDIAN_QUERIES_COUNT", 500);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let is_shown = std::env::var_os("MERIDIAN_QUERIES_SHOW").is_some();
    let mut differences = Vec::new();
    let mut too_large = 0;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    runtime.block_on(async {
        let mut servers = Servers::connect(postgres.config()).await;
        let mut next = first;
        while next < first + count {
            if next == first || next.is_multiple_of(ROUND) {
                servers.fill(next / ROUND).await;
            }
            let end = (next + BATCH).min((next / ROUND + 1) * ROUND).min(first + count);
            let mut made: Vec<Generator> = (next..end).map(|seed| Generator::of(Choices::of_seed(seed))).collect();
            let queries: Vec<Query> = made.iter_mut().map(Generator::query).collect();
            let answers = servers.answers(&queries).await;
            for (((seed, generator), query), answer) in (next..end).zip(made).zip(&queries).zip(answers) {
                let outcome = servers.compare_with(query, answer).await;
                if is_shown {
                    println!("-- {seed}: {}\n{};", outcome.name(), query.sql);
                }
                *seen.entry(outcome.name()).or_default() += 1;
                too_large += u64::from(outcome.is_too_large());
                if let Comparison::Differ(_) = outcome {
                    let told = match differences.len() < TOLD_MAX {
                        true => shrink(&mut servers, generator.r.into_made()).await,
                        false => format!("{};\n", query.sql),
                    };
                    println!("seed {seed}\n{told}");
                    differences.push(format!("MERIDIAN_QUERIES_SEED={seed} MERIDIAN_QUERIES_COUNT=1\n{told}"));
                }
            }
            next = end;
        }
        servers.close().await;
    });
    let mut told = String::new();
    for (what, n) in seen {
        let _ = writeln!(told, "{n:6} {what}");
    }
    println!("{count} queries from {first} on\n{told}");
    assert!(too_large <= 2 + count / 200, "{too_large} of {count} queries are refused for want of memory");
    assert!(differences.is_empty(), "{} of {count} queries differ\n\n{}", differences.len(), differences.join("\n"));
}

/// The simplest query that is found by taking decisions out, or making them smaller, and still
/// differs; and how.
async fn shrink(servers: &mut Servers, mut list: Vec<u32>) -> String {
    let mut best = String::new();
    let mut left = 600;
    let mut size = (list.len() / 2).max(1);
    loop {
        let mut at = 0;
        let mut smaller = false;
        while at < list.len() && left > 0 {
            let mut tries = Vec::new();
            let end = (at + size).min(list.len());
            tries.push([&list[..at], &list[end..]].concat());
            if list[at..end].iter().any(|c| *c != 0) {
                tries.push([&list[..at], &vec![0; end - at], &list[end..]].concat());
            }
            if size == 1 && list[at] > 1 {
                tries.push([&list[..at], &[list[at] / 2], &list[at + 1..]].concat());
            }
            let mut taken = false;
            for t in tries {
                left -= 1;
                let mut generator = Generator::of(Choices::of_list(t));
                let query = generator.query();
                if let Comparison::Differ(how) = servers.compare(&query).await {
                    let made = generator.r.into_made();
                    if made.len() < list.len() || (made.len() == list.len() && made < list) {
                        list = made;
                        best = format!("{};\n{how}", query.sql);
                        (taken, smaller) = (true, true);
                        break;
                    }
                }
            }
            if !taken {
                at += size;
            }
        }
        if left <= 0 || (size == 1 && !smaller) {
            break;
        }
        size = (size / 2).max(1);
    }
    if best.is_empty() {
        let query = Generator::of(Choices::of_list(list)).query();
        let Comparison::Differ(how) = servers.compare(&query).await else { return format!("{}; differed once", query.sql) };
        best = format!("{};\n{how}", query.sql);
    }
    best
}
