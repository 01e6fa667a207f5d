//! Joins, subqueries, sorts and groups on both sides, with the same rows and equal answers.

use super::side::{Side, Sides};
use super::{Args, csv_of, verdict, write};
use crate::bench::report::{self, Spread};
use crate::client::PgClient;
use meridian_base::{Error, Result};
use meridian_workload::client::{Client, Rows};
use std::fmt::Write;
use std::time::Duration;
use tokio::time::Instant;

mod statements;

pub use statements::{Kind, Statement};

/// No statement may run longer, not even while data is loaded.
const TIMEOUT: &str = "120s";
/// A turn ends when so much time has passed and the statement has run a few times.
const TURN: Duration = Duration::from_millis(150);
const LEAST: usize = 3;
/// One that takes so long runs once.
const LONG: Duration = Duration::from_millis(500);
const MOST: usize = 200;
/// How many times as long as PostgreSQL's joins and subqueries may take.
const BUDGET: f64 = 3.0;

/// What one side took for a statement, in all rounds.
#[derive(Clone, Debug, Default)]
struct Taken {
    executions: Vec<Duration>,
    /// The median of each round, in milliseconds.
    rounds: Vec<f64>,
    cpu: Duration,
}

impl Taken {
    fn spread(&self) -> Spread {
        Spread::of(self.executions.iter().map(|d| d.as_secs_f64() * 1e3))
    }
    fn cpu_millis(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e3 / self.executions.len().max(1) as f64
    }
}

/// Statements, and the tables that they read.
pub struct Subject {
    /// Of its database, and of its file.
    pub name: &'static str,
    pub title: String,
    /// Separated by semicolons, as what follows.
    pub tables: &'static str,
    /// How each table is filled, from number `$first` to number `$last`, and up to which number.
    pub rows: Vec<(String, usize)>,
    /// Numbers of one transaction.
    pub part: usize,
    /// Made once there are rows.
    pub indexes: &'static [&'static str],
    /// What is said at both sides before statements are measured.
    pub settings: [&'static [&'static str]; 2],
    pub warm_ups: u32,
    pub statements: Vec<Statement>,
}

/// What came out.
pub struct Judged {
    /// By statement: how many times as long as PostgreSQL it took.
    pub ratios: Vec<(String, f64)>,
    /// Whether all answers were equal.
    pub is_equal: bool,
}

/// A statement on both sides.
struct Compared<'s> {
    statement: &'s Statement,
    taken: [Taken; 2],
}

impl Compared<'_> {
    fn ratio(&self) -> Spread {
        let [postgres, meridian] = &self.taken;
        Spread::of(meridian.rounds.iter().zip(&postgres.rounds).map(|(m, p)| m / p.max(1e-6)))
    }
}

/// All statements; whether all answers were equal.
pub async fn run(args: &Args, sides: &Sides) -> Result<bool> {
    let subject = Subject {
        name: "joins",
        title: "Joins, subqueries, sorts and groups: 1,500 users, 15,000 orders, 150,000 items, 2,000 products".into(),
        tables: statements::TABLES,
        rows: statements::ROWS.iter().map(|(sql, rows)| ((*sql).to_string(), *rows)).collect(),
        part: statements::PART,
        indexes: &[],
        settings: [&[], &[]],
        warm_ups: 3,
        statements: statements::ALL.to_vec(),
    };
    let Judged { ratios, is_equal } = compare(args, sides, &subject).await?;
    let of_joins = ratios.iter().zip(&subject.statements).filter(|(_, statement)| statement.kind == Kind::Join);
    let judged: Vec<&(String, f64)> = of_joins.map(|(ratio, _)| ratio).collect();
    let missed: Vec<&str> = judged.iter().filter(|(_, ratio)| *ratio > BUDGET).map(|(name, _)| name.as_str()).collect();
    let what = format!("joins and subqueries take no more than {BUDGET:.0} x PostgreSQL's time");
    say!("{}", verdict(missed.is_empty(), &what));
    if !missed.is_empty() {
        say!("          {} of {} take longer: {}", missed.len(), judged.len(), missed.join("; "));
    }
    Ok(is_equal)
}

/// Runs the statements on both sides in turn, and says what they took.
pub async fn compare(args: &Args, sides: &Sides, subject: &Subject) -> Result<Judged> {
    say!("\n{}", subject.title);
    let mut clients = Vec::new();
    for (side, settings) in sides.both.iter().zip(subject.settings) {
        let started = Instant::now();
        let mut client = set_up(side, subject).await?;
        say!("{}: loaded and analyzed in {:.1} s", side.name, started.elapsed().as_secs_f64());
        for setting in settings {
            client.execute(setting).await?;
        }
        clients.push(client);
    }
    let mut all = Vec::new();
    let mut unequal = Vec::new();
    for statement in &subject.statements {
        let mut answers = Vec::new();
        for (side, client) in sides.both.iter().zip(&mut clients) {
            let named = |e: Error| e.context(format!("{}: {}", side.name, statement.name));
            answers.push(answer(client.execute(&statement.text()).await.map_err(named)?));
            for _ in 1..subject.warm_ups {
                execute(client, statement, &statement.text()).await.map_err(named)?;
            }
        }
        if answers[0] != answers[1] {
            unequal.push(format!("{}:\n{}\n{}", statement.name, head(&answers[0]), head(&answers[1])));
        }
        let mut compared = Compared { statement, taken: [Taken::default(), Taken::default()] };
        for round in 0..args.rounds {
            for (n, side) in sides.in_turn(round) {
                let before = side.cpu();
                let times = turn(&mut clients[n], statement).await?;
                let taken = &mut compared.taken[n];
                taken.cpu += side.cpu().saturating_sub(before);
                taken.rounds.push(Spread::of(times.iter().map(|d| d.as_secs_f64() * 1e3)).median);
                taken.executions.extend(times);
            }
        }
        say!("{}", line(&compared));
        all.push(compared);
        write(&csv_of(args, subject.name), &csv(&all))?;
    }
    say!("\n{HEAD}");
    all.iter().for_each(|compared| say!("{}", line(compared)));
    unequal.iter().for_each(|found| say!("ANSWERS DIFFER: {found}"));
    say!("{}", verdict(unequal.is_empty(), "all answers are equal"));
    let ratios = all.iter().map(|c| (c.statement.name.to_string(), c.ratio().median)).collect();
    Ok(Judged { ratios, is_equal: unequal.is_empty() })
}

/// Tables with rows and statistics, and a connection to them.
async fn set_up(side: &Side, subject: &Subject) -> Result<PgClient> {
    side.create_database(subject.name).await?;
    let mut client = side.connect(subject.name).await?;
    client.execute(&format!("SET statement_timeout = '{TIMEOUT}'")).await?;
    for sql in subject.tables.split(';').map(str::trim).filter(|sql| !sql.is_empty()) {
        client.execute(sql).await?;
    }
    for (sql, rows) in &subject.rows {
        // In parts, so that no transaction is large.
        for first in (1..=*rows).step_by(subject.part) {
            let last = (first + subject.part - 1).min(*rows);
            client.execute(&sql.replace("$first", &first.to_string()).replace("$last", &last.to_string())).await?;
        }
    }
    for sql in subject.indexes {
        client.execute(sql).await?;
    }
    client.execute("ANALYZE").await?;
    Ok(client)
}

async fn execute(client: &mut PgClient, statement: &Statement, text: &str) -> Result<()> {
    match statement.prepared {
        Some((sql, params)) => {
            let params: Vec<_> = params.iter().map(|p| (*p).into()).collect();
            client.query(sql, &params).await.map(drop)
        }
        None => client.execute(text).await.map(drop),
    }
}

/// Runs a statement again and again.
async fn turn(client: &mut PgClient, statement: &Statement) -> Result<Vec<Duration>> {
    let text = statement.text();
    let started = Instant::now();
    let mut times = Vec::new();
    while times.is_empty()
        || (started.elapsed() < LONG && (times.len() < LEAST || started.elapsed() < TURN) && times.len() < MOST)
    {
        let before = Instant::now();
        execute(client, statement, &text).await?;
        times.push(before.elapsed());
    }
    Ok(times)
}

/// The rows as text, and how many were written.
fn answer(rows: Rows) -> Vec<String> {
    let text = |row: &Vec<_>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
    let mut lines: Vec<String> = rows.rows.iter().map(text).collect();
    lines.push(format!("{} rows", rows.affected));
    lines
}

/// The first lines of an answer.
fn head(lines: &[String]) -> String {
    lines[..lines.len().min(5)].join("; ")
}

const HEAD: &str = concat!(
    "                                                 PostgreSQL  Meridian  longest     time ratio (spread)       CPU\n",
    "statement                                                ms        ms       ms                             ratio"
);

fn line(compared: &Compared<'_>) -> String {
    let [postgres, meridian] = &compared.taken;
    let cpu = match postgres.cpu_millis() {
        // Less than the kernel's clock tells.
        none if none < 1e-6 => "-".to_string(),
        some => format!("{:.1} x", meridian.cpu_millis() / some),
    };
    format!(
        "{:<48}{:>11.2}{:>10.2}{:>9.2}  {:^27}{cpu:>8}",
        compared.statement.name,
        postgres.spread().median,
        meridian.spread().median,
        meridian.spread().max,
        report::ratio(compared.ratio())
    )
}

fn csv(all: &[Compared<'_>]) -> String {
    let mut out = String::from("statement,system,executions,median_millis,min_millis,max_millis,cpu_millis\n");
    for compared in all {
        for (system, taken) in ["postgresql", "meridian"].iter().zip(&compared.taken) {
            let Spread { median, min, max } = taken.spread();
            let _ = writeln!(
                out,
                "\"{}\",{system},{},{median:.3},{min:.3},{max:.3},{:.3}",
                compared.statement.name,
                taken.executions.len(),
                taken.cpu_millis()
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_the_medians_of_rounds() {
        let taken = |rounds: &[f64]| Taken {
            executions: rounds.iter().map(|ms| Duration::from_secs_f64(ms / 1e3)).collect(),
            rounds: rounds.to_vec(),
            cpu: Duration::from_millis(30),
        };
        let compared = Compared { statement: &statements::ALL[0], taken: [taken(&[1.0, 2.0, 1.0]), taken(&[2.0, 2.0, 9.0])] };
        assert_eq!(compared.ratio(), Spread { median: 2.0, min: 1.0, max: 9.0 });
        assert!(line(&compared).contains("2.00 x (1.00 to 9.00)"), "{}", line(&compared));
        assert_eq!(csv(&[compared]).lines().count(), 3);
    }

    #[test]
    fn statements_have_names_of_their_own_that_fit() {
        let mut names: Vec<&str> = statements::ALL.iter().map(|s| &*s.name).collect();
        assert!(names.iter().all(|name| name.len() < 48 && !name.contains('"')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), statements::ALL.len());
    }
}
