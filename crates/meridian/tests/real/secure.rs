//! Secure clusters: the first start, joining with a token, refused nodes, and decommissioned ones.

use crate::cluster::{command, id, specs, sql, until};
use crate::process::{Node, Spec};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub fn text(out: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

pub fn shown(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Has a node make a token, and puts it into a file beside its directory.
pub fn token(of: &Spec, name: &str, life: u64) -> PathBuf {
    let out = command(&["token", "create", "--data-dir", shown(&of.dir), "--life", &life.to_string()]);
    assert!(out.status.success(), "{}", text(&out));
    let file = of.dir.with_extension(name);
    std::fs::write(&file, out.stdout).expect("a file");
    file
}

/// A node that joins with a token.
pub fn joiner(spec: &Spec, addr: &str, token: &Path) -> Spec {
    let options = ["--join-token-file", shown(token)].map(String::from).into();
    Spec { join: vec![addr.to_string()], options, ..spec.clone() }
}

/// `count` nodes that have not been started, each in a region of its own.
pub fn secure_specs(dir: &Path, count: usize) -> Vec<Spec> {
    let secure = |(n, spec): (usize, Spec)| Spec {
        locality: format!("region=r{n},zone=a"),
        options: Vec::new(),
        join: Vec::new(),
        ..spec
    };
    specs(dir, count).into_iter().enumerate().map(secure).collect()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).permissions().mode() & 0o777
}

/// The state of a node, as the node of a directory says it over its socket.
fn state(of: &Spec, id: &str) -> String {
    let out = command(&["node", "status", "--data-dir", shown(&of.dir)]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = text.lines().find(|l| l.split_whitespace().next() == Some(id)).map(str::to_string);
    line.and_then(|l| l.split_whitespace().nth(6).map(str::to_string)).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_regions_are_started_securely_by_five_commands() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = secure_specs(dir.path(), 3);
    let first = specs[0].start().await;
    let tokens = [token(&specs[0], "token1", 600), token(&specs[0], "token2", 600)];
    let second = joiner(&specs[1], &first.addr, &tokens[0]);
    let third = joiner(&specs[2], &first.addr, &tokens[1]);
    let nodes = [first, second.start().await, third.start().await];

    // Files that the founder alone has. Other users cannot read them.
    let certs = specs[0].dir.join("certs");
    for secret in
        [certs.join("ca.key"), certs.join("node.key"), certs.join("client.root.key"), specs[0].dir.join("root.password")]
    {
        assert_eq!(mode(&secret), 0o600, "{}", secret.display());
    }
    assert_eq!((mode(&certs), mode(&specs[0].dir.join("node.sock"))), (0o700, 0o600));
    for spec in &specs[1..] {
        let certs = spec.dir.join("certs");
        assert!(certs.join("node.key").exists() && !certs.join("ca.key").exists() && !certs.join("joining.key").exists());
        assert!(!spec.dir.join("root.password").exists());
    }
    sql(&nodes[2], "CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY, v INT8)").await;
    sql(&nodes[1], "INSERT INTO t VALUES (1, 7) ON CONFLICT (k) DO NOTHING").await;
    assert_eq!(sql(&nodes[0], "SELECT v FROM t WHERE k = 1").await, ["7"]);
    assert_eq!(nodes.each_ref().map(id), ["n1", "n2", "n3"]);

    // Operators: over the socket, with the certificate of a role, and with nothing.
    let listed = command(&["node", "status", "--data-dir", shown(&specs[2].dir)]);
    assert!(listed.status.success() && text(&listed).contains("n3"), "{}", text(&listed));
    let listed = command(&["node", "status", "--node", &nodes[1].addr, "--certs-dir", shown(&certs)]);
    assert!(listed.status.success(), "{}", text(&listed));
    let refused = command(&["node", "status", "--node", &nodes[1].addr]);
    assert!(!refused.status.success(), "{}", text(&refused));
    let listed = command(&["cert", "list", "--data-dir", shown(&specs[0].dir)]);
    assert!(listed.status.success() && text(&listed).contains("node 1 of cluster"), "{}", text(&listed));

    // A token made by a node that does not sign, used at it.
    let made = token(&specs[1], "token3", 600);
    let fourth = Spec { locality: "region=r1,zone=b".into(), ..secure_specs(dir.path(), 4).remove(3) };
    let fourth = joiner(&fourth, &nodes[1].addr, &made);
    assert_eq!(id(&fourth.start().await), "n4");

    // What a secret is is in no log.
    let written: Vec<String> = nodes.iter().map(Node::log).collect();
    let password = std::fs::read_to_string(specs[0].dir.join("root.password")).expect("readable");
    let secrets = tokens.iter().map(|file| std::fs::read_to_string(file).expect("readable")).chain([password]);
    for secret in secrets {
        assert!(secret.trim().len() >= 24 && written.iter().all(|log| !log.contains(secret.trim())), "a secret was logged");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_tokens_let_nobody_in() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = secure_specs(dir.path(), 4);
    let first = specs[0].start().await;
    let used = token(&specs[0], "used", 600);
    drop(joiner(&specs[1], &first.addr, &used).start().await);
    let refused = async |token: &Path| {
        let _ = std::fs::remove_dir_all(&specs[2].dir);
        joiner(&specs[2], &first.addr, token).refused().await
    };

    let said = refused(&used).await;
    assert!(said.contains("refuses this one") && first.log().contains("was used already: it made node 2"), "{said}");
    let brief = token(&specs[0], "brief", 1);
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    let said = refused(&brief).await;
    assert!(said.contains("refuses this one") && first.log().contains("has expired"), "{said}");

    let good = std::fs::read_to_string(token(&specs[0], "good", 600)).expect("readable");
    let changed = |name: &str, text: String| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).expect("a file");
        file
    };
    let said = refused(&changed("cut", good[..60].to_string())).await;
    assert!(said.contains("was cut"), "{said}");
    let mistyped = good.replacen(|c: char| c == good.as_bytes()[20] as char, "_", 1);
    let said = refused(&changed("mistyped", mistyped)).await;
    assert!(said.contains("join token"), "{said}");

    // Another cluster's: nothing is sent.
    let other = specs[3].start().await;
    let said = refused(&token(&specs[3], "other", 600)).await;
    assert!(said.contains("was told nothing"), "{said}");
    // No token at all.
    let said = Spec { join: vec![other.addr.clone()], ..specs[2].clone() }.refused().await;
    assert!(said.contains("--join-token-file"), "{said}");
    // With the good one it is let in after all that.
    let _ = std::fs::remove_dir_all(&specs[2].dir);
    let last = joiner(&specs[2], &first.addr, &changed("again", good)).start().await;
    assert_eq!(id(&last), "n3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decommissioned_node_is_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = secure_specs(dir.path(), 3);
    let first = specs[0].start().await;
    let second = joiner(&specs[1], &first.addr, &token(&specs[0], "token", 600));
    let node = second.start().await;
    // The node is the only one of its region, so no other node can take its vote for the catalog.
    let third = joiner(&specs[2], &first.addr, &token(&specs[0], "token3", 600)).start().await;
    until("three votes for the catalog", async || {
        let ranges = sql(&first, "SHOW RANGES").await;
        ranges.chunks(10).any(|row| row[0].trim_start_matches('g') == "1" && row[6].split(',').count() == 3)
    })
    .await;
    let out = command(&["node", "decommission", "3", "--data-dir", shown(&specs[0].dir), "--timeout", "60"]);
    assert!(out.status.success() && text(&out).contains("The catalog has one voter"), "{}", text(&out));
    until("the node to end", async || third.log().contains("was decommissioned")).await;
    drop(third);
    let out = command(&["node", "decommission", "2", "--data-dir", shown(&specs[0].dir)]);
    assert!(out.status.success(), "{}", text(&out));
    until("the node to end", async || node.log().contains("was decommissioned")).await;
    drop(node);
    assert_eq!(state(&specs[0], "n2"), "decommissioned");
    let said = second.refused().await;
    assert!(said.contains("was decommissioned"), "{said}");
    assert_eq!(sql(&first, "SELECT 1").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insecure_cluster_is_upgraded_by_one_command_for_each_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let insecure = specs(dir.path(), 2);
    let nodes = futures::future::join_all(insecure.iter().map(Spec::start)).await;
    sql(&nodes[0], "CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY)").await;
    for node in nodes {
        node.terminate().await;
    }
    let secure: Vec<Spec> = insecure.iter().map(|spec| Spec { options: Vec::new(), ..spec.clone() }).collect();
    let said = secure[0].refused().await;
    assert!(said.contains("cert upgrade"), "{said}");
    let upgraded = command(&["cert", "upgrade", "--data-dir", shown(&secure[0].dir)]);
    assert!(upgraded.status.success(), "{}", text(&upgraded));
    let authority = secure[0].dir.join("certs");
    let upgraded = command(&["cert", "upgrade", "--data-dir", shown(&secure[1].dir), "--authority", shown(&authority)]);
    assert!(upgraded.status.success(), "{}", text(&upgraded));
    let said = insecure[0].refused().await;
    assert!(said.contains("without --insecure"), "{said}");
    let nodes = futures::future::join_all(secure.iter().map(Spec::start)).await;
    assert_eq!(sql(&nodes[1], "SELECT count(*) FROM t").await, ["0"]);
}

/// Commands with the certificate of a role do what the role may do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_operate_the_cluster_as_far_as_they_may() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = secure_specs(dir.path(), 1);
    let node = specs[0].start().await;
    let certs = specs[0].dir.join("certs");
    let ask = |role: &str, args: &[&str]| {
        let with = ["--node", &node.addr, "--certs-dir", shown(&certs), "--user", role];
        let out = command(&[args, &with[..]].concat());
        (out.status.success(), text(&out))
    };
    for role in ["ops", "watch", "app", "nobody", "chief"] {
        let made = command(&["cert", "create-client", role, "--certs-dir", shown(&certs)]);
        assert!(made.status.success(), "{}", text(&made));
    }
    for statement in [
        "CREATE ROLE ops LOGIN",
        "CREATE ROLE watch LOGIN",
        "CREATE ROLE app LOGIN",
        "CREATE ROLE chief LOGIN SUPERUSER",
        "GRANT pg_meridian_nodes TO ops",
        "GRANT pg_monitor TO watch",
    ] {
        sql(&node, statement).await;
    }
    let (look, drain, back, make) =
        (["node", "status"], ["node", "drain", "1"], ["node", "recommission", "1"], ["token", "create"]);
    for (role, may) in [
        ("ops", [true, true, false]),
        ("watch", [true, false, false]),
        ("app", [false, false, false]),
        ("nobody", [false, false, false]),
        ("chief", [true, true, true]),
    ] {
        let done = [ask(role, &look), ask(role, &back), ask(role, &make)];
        assert_eq!(done.each_ref().map(|(is_done, _)| *is_done), may, "{role}: {done:?}");
        assert!(done.iter().all(|(is_done, said)| *is_done || said.contains("may not do that")), "{role}: {done:?}");
    }
    assert!(!ask("watch", &drain).0);
    sql(&node, "REVOKE pg_meridian_nodes FROM ops").await;
    until("the newest privileges", async || !ask("ops", &back).0).await;
    assert!(node.log().contains("event=\"operator\" role=\"chief\""), "{}", node.log());
    // What else is done with statements.
    for statement in ["CREATE TABLE given (k INT PRIMARY KEY)", "ALTER TABLE given OWNER TO ops", "SELECT pg_reload_conf()"] {
        sql(&node, statement).await;
    }
    for event in ["role_changed", "owner_changed", "reload_asked"] {
        let line = format!("event=\"{event}\" user=\"root\" acting=\"root\"");
        assert!(node.log().contains(&line), "{line}: {}", node.log());
    }
}

/// The shell on another machine: by a URL, over TLS.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shell_connects_over_tls() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = secure_specs(dir.path(), 2);
    let (node, _other) = (specs[0].start().await, specs[1].start().await);
    let url = text(&command(&["url", "--data-dir", shown(&specs[0].dir)])).trim().to_string();
    let ask = |url: &str| {
        let out = command(&["sql", url, "-c", "SELECT current_user"]);
        (out.status.success(), text(&out))
    };
    assert!(url.contains("sslmode=verify-full"), "{url}");
    let (is_done, said) = ask(&url);
    assert!(is_done && said.contains("root"), "{said}");
    let (place, _) = url.split_once('?').expect("it has parameters");
    for parameters in ["", "?sslmode=prefer", "?sslmode=require"] {
        let (is_done, said) = ask(&format!("{place}{parameters}"));
        assert!(is_done && said.contains("root"), "{parameters}: {said}");
    }
    // Without TLS, a password that is wrong, none, another cluster's authority, no authority.
    let (_, at) = place.split_once('@').expect("a user");
    let (wrong, none) = (format!("postgresql://root:x@{at}"), format!("postgresql://root@{at}"));
    let other = specs[1].dir.join("certs/ca.crt");
    for (refused, why) in [
        (format!("{place}?sslmode=disable"), "no pg_hba.conf entry"),
        (wrong, "password authentication failed"),
        (none, "wants a password"),
        (format!("{place}?sslmode=verify-full&sslrootcert={}", shown(&other)), "not signed by an authority"),
        (format!("{place}?sslmode=verify-full"), "no authority"),
    ] {
        let (is_done, said) = ask(&refused);
        assert!(!is_done && said.contains(why), "{why}: {said}");
    }
    // So does a workload.
    let work = |url: &str| command(&["workload", "bank", "--url", url, "--for", "2s", "--clients", "2", "--check"]);
    let worked = work(&url);
    assert!(worked.status.success() && text(&worked).contains(": 0 violated"), "{}", text(&worked));
    let refused = work(&format!("postgresql://root:x@{at}"));
    assert!(!refused.status.success() && text(&refused).contains("password authentication failed"), "{}", text(&refused));
    // By certificate.
    let certs = specs[0].dir.join("certs");
    let made = command(&["cert", "create-client", "app", "--certs-dir", shown(&certs)]);
    assert!(made.status.success(), "{}", text(&made));
    sql(&node, "CREATE ROLE app LOGIN").await;
    sql(&node, "ALTER SYSTEM SET hba_rules = 'hostssl all app all cert'").await;
    let host = place.split_once('@').expect("a user").1;
    let file = |name: &str| shown(&certs.join(name)).to_string();
    let parameters = format!(
        "sslmode=verify-full&sslrootcert={}&sslcert={}&sslkey={}",
        file("ca.crt"),
        file("client.app.crt"),
        file("client.app.key")
    );
    let (is_done, said) = ask(&format!("postgresql://app@{host}?{parameters}"));
    assert!(is_done && said.contains("app"), "{said}");
}

/// An operator's own certificates: no node has the authority's key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_made_outside_of_the_cluster() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = secure_specs(dir.path(), 2);
    let authority = dir.path().join("authority");
    let made = command(&["cert", "create-ca", "--certs-dir", shown(&authority)]);
    assert!(made.status.success(), "{}", text(&made));
    let mut nodes: Vec<Node> = Vec::new();
    for (at, spec) in specs.iter().enumerate() {
        let (certs, number) = (dir.path().join(format!("certs{at}")), (at + 1).to_string());
        let made = command(&["cert", "create-node", "--certs-dir", shown(&authority), "--into", shown(&certs), "--id", &number]);
        assert!(made.status.success(), "{}", text(&made));
        let options = ["--certs-dir", shown(&certs)].map(String::from).into();
        let join = nodes.iter().map(|n| n.addr.clone()).collect();
        nodes.push(Spec { options, join, ..spec.clone() }.start().await);
        assert!(!certs.join("ca.key").exists());
    }
    assert_eq!(nodes.iter().map(id).collect::<Vec<_>>(), ["n1", "n2"]);
    assert_eq!(sql(&nodes[1], "SELECT 1").await, ["1"]);
}
