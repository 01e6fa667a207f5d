//! psql, pgbench and pg_dumpall, where they are installed.

use super::{Running, start};
use std::process::{Output, Stdio};

/// The path of one of PostgreSQL's programs, or `None` with a line that says so.
fn find(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|d| d.join(program)).find(|p| p.is_file());
    if found.is_none() {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

async fn run(program: &str, running: &Running, arguments: &[&str]) -> Option<Output> {
    let program = find(program)?;
    let mut command = tokio::process::Command::new(program);
    command.args(["-h", "127.0.0.1", "-p", &running.port.to_string(), "-U", "root"]).args(arguments);
    command.env("PGCONNECT_TIMEOUT", "5").stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(std::time::Duration::from_secs(120), command.output());
    Some(output.await.expect("it ends in time").expect("it starts"))
}

/// Runs a script in psql and returns what it prints, errors included, in their order.
async fn psql(running: &Running, script: &[&str]) -> Option<String> {
    let mut arguments = vec!["-X", "-A", "-t", "-d", "postgres", "-v", "VERBOSITY=verbose"];
    for statement in script {
        arguments.extend(["-c", statement]);
    }
    let output = run("psql", running, &arguments).await?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Some(format!("{stdout}{stderr}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_settings_and_blocks() {
    let running = start().await;
    let script = [
        "SHOW server_version_num",
        "SET statement_timeout = '90s'",
        "SHOW statement_timeout",
        "BEGIN; SAVEPOINT a; ROLLBACK TO a; COMMIT",
        "COMMIT",
        "SHOW TRANSACTION ISOLATION LEVEL",
        "SET search_path TO Foo, \"Bar\"; SHOW search_path",
        "nonsense",
    ];
    let Some(said) = psql(&running, &script).await else { return };
    assert!(
        said.starts_with("150000\nSET\n90s\nBEGIN\nSAVEPOINT\nROLLBACK\nCOMMIT\nCOMMIT\nserializable\nSET\nfoo, \"Bar\"\n"),
        "{said}"
    );
    assert!(said.contains("WARNING:  25P01: there is no transaction in progress"), "{said}");
    assert!(said.contains("ERROR:  42601: syntax error at or near \"nonsense\"\nLINE 1: nonsense\n        ^"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_queries_and_errors() {
    let running = start().await;
    let script = [
        "CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL, price numeric(8,2))",
        "INSERT INTO t VALUES (1, 'one', 1.5), (2, 'two', NULL)",
        "SELECT * FROM t ORDER BY id",
        "UPDATE t SET price = 2 WHERE id = 2 RETURNING price",
        "INSERT INTO t VALUES (1, 'again', 0)",
        "INSERT INTO t VALUES (3, NULL, 0)",
        "BEGIN; INSERT INTO t VALUES (3, 'three', 3); SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; COMMIT; SELECT count(*) FROM t",
        "INSERT INTO t VALUES (4, 'four', 4); SELECT 1/0; INSERT INTO t VALUES (5, 'five', 5)",
        "SELECT count(*) FROM t",
        "PREPARE p AS SELECT name FROM t WHERE id = $1",
        "EXECUTE p(3)",
        "SELECT nope FROM t",
        "COPY t TO STDOUT",
        "EXPLAIN SELECT * FROM t WHERE id = 1",
        "VACUUM",
    ];
    let Some(said) = psql(&running, &script).await else { return };
    let expected = "CREATE TABLE\nINSERT 0 2\n1|one|1.50\n2|two|\n2.00\nUPDATE 1\nBEGIN\nINSERT 0 1\nSAVEPOINT\nDELETE 3\nROLLBACK\nCOMMIT\n3\n3\nPREPARE\nthree\n1\tone\t1.50\n2\ttwo\t2.00\n3\tthree\t3.00\n";
    assert!(said.starts_with(expected), "{said}");
    for error in [
        "ERROR:  23505: duplicate key value violates unique constraint \"t_pkey\"\nDETAIL:  Key (id)=(1) already exists.",
        "ERROR:  23502: null value in column \"name\"",
        "ERROR:  22012: division by zero",
        "ERROR:  42703: column \"nope\" does not exist\nLINE 1: SELECT nope FROM t\n               ^",
    ] {
        assert!(said.contains(error), "{error}\nin\n{said}");
    }
    assert!(said.contains("\nVACUUM\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pgbench_in_all_modes() {
    let running = start().await;
    let Some(init) = run("pgbench", &running, &["-i", "-q", "-s", "1", "postgres"]).await else { return };
    let said = String::from_utf8_lossy(&init.stderr).into_owned();
    assert!(init.status.success() && said.contains("done in"), "{said}");
    let count = psql(&running, &["SELECT count(*), sum(abalance) FROM pgbench_accounts"]).await;
    assert_eq!(count.as_deref(), Some("100000|0\n"));
    for mode in ["simple", "extended", "prepared"] {
        for script in ["select-only", "simple-update", "tpcb-like"] {
            let arguments = ["-n", "-c", "2", "-j", "1", "-T", "1", "-M", mode, "-b", script, "--max-tries=100", "postgres"];
            let bench = run("pgbench", &running, &arguments).await.expect("pgbench is there");
            let (out, err) = (String::from_utf8_lossy(&bench.stdout), String::from_utf8_lossy(&bench.stderr));
            assert!(bench.status.success() && !err.contains("ERROR") && !err.contains("aborted"), "{mode} {script}\n{out}{err}");
            let tps = out.lines().find(|l| l.starts_with("tps")).unwrap_or_default();
            eprintln!("{mode} {script}: {tps}");
        }
    }
    // Every account's balance moved with its teller's and branch's, or not at all.
    let sums = "SELECT (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(bbalance) FROM pgbench_branches)";
    assert_eq!(psql(&running, &[sums]).await.as_deref(), Some("t\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_describes_what_is_there() {
    let running = start().await;
    let script = [
        "CREATE TABLE parent (id int PRIMARY KEY, name text UNIQUE)",
        "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent, CHECK (id > 0))",
        "CREATE INDEX child_parent ON child (parent)",
        "\\dt",
        // Without its footer a table's description is half of it.
        "\\t off",
        "\\d child",
        "\\t on",
        "\\l",
        "\\dn",
        "\\di",
        "\\du",
        "\\df lower",
    ];
    let Some(said) = psql(&running, &script).await else { return };
    assert!(!said.contains("ERROR"), "{said}");
    for expected in
        ["public|child|table|", "public|child_parent|index|", "FOREIGN KEY (parent) REFERENCES parent(id)", "postgres|"]
    {
        assert!(said.contains(expected), "{expected}\nin\n{said}");
    }
}

/// The roles that a server has, as `pg_dumpall` writes them: without what differs from run to run.
async fn dumped_roles(connection: &[&str]) -> Option<String> {
    let program = find("pg_dumpall")?;
    let mut command = tokio::process::Command::new(program);
    command.args(connection).arg("--roles-only").stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(std::time::Duration::from_secs(120), command.output());
    let output = output.await.expect("it ends in time").expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect::<Vec<_>>();
    let is_constant = |line: &&String| !line.is_empty() && !line.starts_with("--") && !line.contains("restrict ");
    Some(lines.iter().filter(is_constant).map(|line| format!("{line}\n")).collect())
}

/// Loads a dump, whatever is there already; what psql says of it.
async fn load(connection: &[&str], dump: &str) -> String {
    let program = find("psql").expect("pg_dumpall is there");
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("roles.sql");
    std::fs::write(&file, dump).expect("writes");
    let mut command = tokio::process::Command::new(program);
    command.args(connection).args(["-X", "-q", "-d", "postgres", "-f"]).arg(&file).kill_on_drop(true);
    let output = command.output().await.expect("it starts");
    String::from_utf8_lossy(&output.stderr).lines().map(|l| format!("{}\n", l.split_once("ERROR: ").map_or(l, |e| e.1))).collect()
}

const ROLES: [&str; 7] = [
    "CREATE ROLE dump_a LOGIN PASSWORD 'a secret' CONNECTION LIMIT 3 VALID UNTIL '2040-01-02 03:04:05+00'",
    "CREATE ROLE dump_b CREATEDB CREATEROLE NOINHERIT REPLICATION BYPASSRLS",
    "CREATE ROLE \"Dump C\" SUPERUSER LOGIN",
    "GRANT dump_b TO dump_a WITH ADMIN OPTION",
    "GRANT dump_a TO \"Dump C\"",
    "GRANT pg_monitor TO dump_b",
    "COMMENT ON ROLE dump_b IS 'it''s a group'",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_are_dumped_and_loaded() {
    let (from, to) = (start().await, start().await);
    let (from_port, to_port) = (from.port.to_string(), to.port.to_string());
    let [from_here, to_here] = [&from_port, &to_port].map(|port| ["-h", "127.0.0.1", "-p", port, "-U", "root"]);
    if psql(&from, &ROLES).await.is_none() {
        return;
    }
    let Some(dump) = dumped_roles(&from_here).await else { return };
    for line in ["LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 3 PASSWORD 'SCRAM-SHA-256$4096:", "VALID UNTIL '2040-01-02"] {
        assert!(dump.contains(line), "{dump}");
    }
    assert_eq!(load(&to_here, &dump).await, " role \"root\" already exists\n");
    assert_eq!(dumped_roles(&to_here).await.expect("it is there"), dump);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a PostgreSQL: .ci/run postgres"]
async fn roles_go_to_postgres_and_come_back() {
    let address = std::env::var("MERIDIAN_POSTGRES").expect("MERIDIAN_POSTGRES=host:port names a server");
    let (host, port) = address.split_once(':').expect("MERIDIAN_POSTGRES=host:port");
    let there = ["-h", host, "-p", port, "-U", "postgres"];
    let (from, to) = (start().await, start().await);
    let (from_port, to_port) = (from.port.to_string(), to.port.to_string());
    let [from_here, to_here] = [&from_port, &to_port].map(|port| ["-h", "127.0.0.1", "-p", port, "-U", "root"]);
    psql(&from, &ROLES).await.expect("psql is there");
    let dump = dumped_roles(&from_here).await.expect("pg_dumpall is there");
    let said = load(&there, &dump).await;
    let dump_of_theirs = dumped_roles(&there).await.expect("it is there");
    let cleaned = load(&there, "DROP ROLE dump_a, dump_b, \"Dump C\", root;").await;
    assert_eq!((said.as_str(), cleaned.as_str()), ("", ""));
    let missing: Vec<&str> = dump.lines().filter(|line| !dump_of_theirs.lines().any(|theirs| theirs == *line)).collect();
    assert!(missing.is_empty(), "{missing:?} are not in\n{dump_of_theirs}");
    assert_eq!(load(&to_here, &dump_of_theirs).await, " role \"root\" already exists\n");
    let came_back = dumped_roles(&to_here).await.expect("it is there");
    let missing: Vec<&str> = dump.lines().filter(|line| !came_back.lines().any(|here| here == *line)).collect();
    assert!(missing.is_empty(), "{missing:?} are not in\n{came_back}");
}
