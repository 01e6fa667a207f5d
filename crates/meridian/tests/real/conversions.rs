//! The files of docs/multi-region against a cluster, and their statements counted: Table 2 of
//! CockroachDB's multi-region paper.

use crate::process::meridian;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

/// A schema, and the most statements of its own that the paper has: from the beginning, and to
/// convert it.
struct Schema {
    name: &'static str,
    new_max: usize,
    convert_max: usize,
    /// The paper seems not to have counted those on the database: with them there would be more
    /// than its one.
    counts_database: bool,
    /// What asks where the rows are, and the answer.
    question: &'static str,
    homes: &'static [&'static str],
}

const SCHEMAS: [Schema; 3] = [
    Schema {
        name: "movr",
        new_max: 12,
        convert_max: 14,
        counts_database: true,
        question: "SELECT city || ' in ' || {}::TEXT FROM users;",
        homes: &["boston in us-east1", "paris in europe-west2", "tokyo in asia-northeast1"],
    },
    Schema {
        name: "tpcc",
        new_max: 18,
        convert_max: 20,
        counts_database: true,
        question: "SELECT w_id::TEXT || ' in ' || {}::TEXT FROM warehouse;",
        homes: &["0 in us-east1", "1 in europe-west2", "2 in asia-northeast1"],
    },
    Schema {
        name: "ycsb",
        new_max: 1,
        convert_max: 1,
        counts_database: false,
        question: "SELECT ycsb_key || ' in ' || {}::TEXT FROM usertable;",
        homes: &["user1 in us-east1", "user2 in us-east1"],
    },
];

fn file(schema: &str, name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/multi-region").join(schema).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The statements of a file, of which each ends a line.
fn statements(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("--") && !line.starts_with('\\'));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    text.split(";\n").map(str::trim).filter(|s| !s.is_empty()).map(String::from).collect()
}

fn counted(schema: &Schema, name: &str) -> usize {
    let is_counted = |s: &&String| schema.counts_database || !s.contains(" DATABASE ");
    statements(&file(schema.name, name)).iter().filter(is_counted).count()
}

#[test]
fn conversions_take_no_more_statements_than_the_papers() {
    for schema in &SCHEMAS {
        assert!(counted(schema, "after.sql") <= schema.new_max, "{}", schema.name);
        assert!(counted(schema, "convert.sql") <= schema.convert_max, "{}", schema.name);
        for name in ["add-region.sql", "drop-region.sql"] {
            assert_eq!(statements(&file(schema.name, name)).len(), 1, "{}", schema.name);
        }
    }
    // The table in the documents says the same.
    let page = file("", "README.md");
    for schema in &SCHEMAS {
        let row = format!("| {} | {} | {} |", schema.name, counted(schema, "after.sql"), counted(schema, "convert.sql"));
        assert!(page.contains(&row), "{row} is missing");
    }
}

/// What a cluster of four regions says to a script; it stops at the first error.
fn said(script: &str) -> String {
    let mut command = meridian();
    command.args(["demo", "--regions", "us-east1,europe-west2,asia-northeast1,us-west1", "--zones", "1", "--no-workload"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn converted_schemas_keep_their_rows_and_new_ones_home_them() {
    for schema in &SCHEMAS {
        let of = |name: &str| file(schema.name, name);
        let after = of("after.sql");
        let column = if after.contains("BY ROW AS region") { "region" } else { "crdb_region" };
        let script = [
            of("before.sql"),
            of("rows.sql"),
            of("convert.sql"),
            of("add-region.sql"),
            of("drop-region.sql"),
            schema.question.replace("{}", column),
            format!("\n\\c postgres\nDROP DATABASE {};\n\\echo anew\n", schema.name),
            after,
            of("rows.sql"),
            schema.question.replace("{}", column),
        ];
        let text = said(&script.concat());
        let (converted, anew) = text.split_once("\nanew\n").expect("it came to the second part");
        for home in schema.homes {
            assert!(converted.contains(home) && anew.contains(home), "{home} is missing in\n{text}");
        }
    }
}
