//! Golden tables: `expression => result`, one per line, in `tests/types/*.txt`.
//!
//! `\zone Name` sets the time zone for the lines after it. `.ci/run postgres` asks the same tables
//! of a real PostgreSQL, through `psql`; it is at `MERIDIAN_POSTGRES` (`host:port` or `socket
//! directory:port`, user `postgres`, trusted). With `MERIDIAN_GOLDEN=rewrite` its answers replace
//! what the files say. Lines that start with `!` differ from PostgreSQL on purpose and are only run
//! here.

use super::eval::eval;
use crate::types::EvalContext;
use crate::types::zone::Zone;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/types")
}

fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).expect("the folder of golden tables");
    let mut files: Vec<PathBuf> =
        entries.map(|e| e.expect("an entry").path()).filter(|p| p.extension().is_some_and(|e| e == "txt")).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn ours(expression: &str, ctx: &EvalContext) -> String {
    match eval(expression, ctx) {
        Ok((v, _)) if v.is_null() => "NULL".to_string(),
        Ok((v, ty)) => v.to_text(&ty, ctx).replace('\n', "\\n"),
        Err(e) => format!("ERROR {}: {}", e.sqlstate(), e.message()),
    }
}

/// An expression and its result; `None` for comments and blank lines.
fn cut(line: &str) -> Option<(&str, &str)> {
    if line.starts_with('#') || line.trim().is_empty() || line.starts_with('\\') {
        return None;
    }
    Some(line.split_once(" => ").map_or((line.trim(), ""), |(e, r)| (e.trim(), r)))
}

#[test]
fn golden_tables_hold() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in files() {
        let mut ctx = EvalContext::default();
        for (i, line) in std::fs::read_to_string(&file).expect("a golden table").lines().enumerate() {
            if let Some(zone) = line.strip_prefix("\\zone ") {
                ctx.zone = Zone::parse(zone).expect("a time zone");
            }
            let Some((expression, expected)) = cut(line) else { continue };
            let got = ours(expression.trim_start_matches('!'), &ctx);
            count += 1;
            if got != expected {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                wrong.push(format!("{name}:{}: {expression}\n  expected {expected}\n  got      {got}", i + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} lines are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 300, "the tables are there");
}

/// PostgreSQL's answers to the expressions of a table, in order.
fn ask_postgres(address: &str, lines: &[&str]) -> Vec<String> {
    let (host, port) = address.split_once(':').expect("MERIDIAN_POSTGRES=host:port");
    let mut script = String::from(
        "create function pg_temp.answer(e text) returns text language plpgsql as $f$
         declare r text; n bool; begin
           execute 'select x is null, format(''%s'', x) from (select (' || e || ') as x) s' into n, r;
           return case when n then 'NULL' else replace(r, chr(10), '\\n') end;
         exception when others then return 'ERROR ' || sqlstate || ': ' || sqlerrm; end $f$;\nset timezone = 'UTC';\n",
    );
    for line in lines {
        if let Some(zone) = line.strip_prefix("\\zone ") {
            script.push_str(&format!("set timezone = '{zone}';\n"));
        } else if let Some((e, _)) = cut(line)
            && !e.starts_with('!')
        {
            script.push_str(&format!("select pg_temp.answer($m${e}$m$);\n"));
        }
    }
    let mut psql = Command::new("psql")
        .args(["-h", host, "-p", port, "-U", "postgres", "-d", "postgres"])
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("psql runs");
    let mut stdin = psql.stdin.take().expect("piped");
    let writer = script.into_bytes();
    let feed = std::thread::Builder::new().spawn(move || stdin.write_all(&writer)).expect("a thread to feed psql");
    let output = psql.wait_with_output().expect("psql ends");
    feed.join().expect("the feeder ends").expect("psql reads it all");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect()
}

#[test]
#[ignore = "needs a PostgreSQL: .ci/run postgres"]
fn golden_tables_agree_with_postgresql() {
    let address = std::env::var("MERIDIAN_POSTGRES").expect("MERIDIAN_POSTGRES=host:port names a server to compare with");
    let rewrite = std::env::var("MERIDIAN_GOLDEN").is_ok_and(|v| v == "rewrite");
    for file in files() {
        let text = std::fs::read_to_string(&file).expect("a golden table");
        let lines: Vec<&str> = text.lines().collect();
        let mut answers = ask_postgres(&address, &lines).into_iter();
        let mut out = String::new();
        for line in &lines {
            match cut(line) {
                Some((e, expected)) if !e.starts_with('!') => {
                    let answer = answers.next().expect("an answer per expression");
                    assert!(rewrite || answer == expected, "{e}\n  the table says   {expected}\n  PostgreSQL says  {answer}");
                    out.push_str(&format!("{e} => {answer}\n"));
                }
                _ => out.push_str(&format!("{line}\n")),
            }
        }
        if rewrite {
            std::fs::write(&file, out).expect("the table is written");
        }
    }
}
