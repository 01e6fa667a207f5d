//! `meridian sql` and `meridian node status` against a node.

use crate::process::{Node, Spec, meridian, run};
use std::process::Output;

fn sql(node: &Node, arguments: &[&str], input: &str) -> Output {
    let mut command = meridian();
    command.arg("sql").arg(node.url()).args(arguments);
    run(command, input)
}

fn status(node: &Node, input: &str) -> Option<i32> {
    sql(node, &[], input).status.code()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exit_status_says_whether_every_statement_succeeded() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = Spec::alone(&dir.path().join("node")).start().await;

    assert_eq!(
        status(&node, "CREATE TABLE t (id INT8 PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'one;'), (2, NULL);"),
        Some(0)
    );
    let out = sql(&node, &[], "SELECT * FROM t ORDER BY id");
    assert_eq!(out.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&out.stdout), " id |  v   \n----+------\n  1 | one;\n  2 | \n(2 rows)\n\n");

    let out = sql(&node, &[], "SELECT nope FROM t; INSERT INTO t VALUES (3, 'three');");
    assert_eq!(out.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        complaint.starts_with("ERROR:  column \"nope\" does not exist\nLINE 1: SELECT nope FROM t\n               ^\n"),
        "{complaint}"
    );
    let out = sql(&node, &[], "SELECT count(*) FROM t;");
    assert!(String::from_utf8_lossy(&out.stdout).contains("     2\n"), "it stopped at the error: {out:?}");

    assert_eq!(status(&node, "\\set ON_ERROR_STOP off\nSELECT nope FROM t;\nINSERT INTO t VALUES (4, 'four');"), Some(0));
    let out = sql(&node, &["-c", "SELECT v FROM t WHERE id = 4", "-c", "\\dt"], "");
    assert_eq!(out.status.code(), Some(0));
    let shown = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(shown.contains(" four\n") && shown.contains(" public | t "), "{shown}");
    assert_eq!(sql(&node, &["-c", "SELECT 1; SELECT nope"], "").status.code(), Some(1));

    let url = node.url();
    node.kill();
    let mut command = meridian();
    command.arg("sql").arg(url);
    assert_eq!(run(command, "SELECT 1;").status.code(), Some(2), "nobody is there");
}

/// As `meridian node status | grep -q …` ends, whose exit code a script looks at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_reader_has_left_says_what_it_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = Spec::alone(&dir.path().join("node")).start().await;
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = meridian();
    command.args(["node", "status", "--node", &node.addr]).stdout(writer);
    let out = command.stderr(std::process::Stdio::piped()).output().expect("it runs");
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_status_has_a_line_per_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = Spec::alone(&dir.path().join("node")).start().await;
    let mut command = meridian();
    command.args(["node", "status", "--node", &node.addr]);
    let out = run(command, "");
    let shown = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{out:?}");
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert_eq!(shown.lines().last(), Some("cluster version 2"));
    assert!(shown.lines().any(|l| l.contains(" eu ") && l.contains(&node.sql_addr) && l.contains(" yes ")), "{shown}");
}
