//! Who a node is: founding, joining, directories that are lost, and those that come back.

use crate::client::PgClient;
use crate::cluster::{command, id, lose, settled, specs, sql, start_all, state, status, try_sql, until};
use crate::process::{Node, Spec};
use crate::secure::{joiner, secure_specs, token};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_found_one_cluster_and_whoever_loses_its_directory_is_a_new_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs(dir.path(), 3);
    // The last one comes first: it waits, says for whom, and tells clients so.
    let early = specs[2].launch();
    until("a word of whom it waits for", async || {
        early.log().contains(&format!("waiting for {}, {}", specs[0].listen, specs[1].listen))
    })
    .await;
    assert!(early.log().contains(&format!("meridian init --node {}", specs[2].listen)), "{}", early.log());
    let refusal = PgClient::connect(&specs[2].sql_listen, "root", "defaultdb").await.err().expect("it does not serve");
    assert_eq!(refusal.sqlstate(), "57P03", "{refusal}");
    let (mut nodes, third) = tokio::join!(start_all(&specs[..2]), early.served());
    nodes.push(third);
    assert_eq!(status(&nodes[0]).len(), 3, "{:?}", status(&nodes[0]));
    sql(&nodes[0], "CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY, v INT8)").await;
    sql(&nodes[0], "INSERT INTO t SELECT g, 0 FROM generate_series(1, 100) AS s(g) ON CONFLICT (k) DO NOTHING").await;
    settled(&[&nodes[0], &nodes[1], &nodes[2]]).await;

    // One after the other, the founder too.
    for lost in [1, 0] {
        let (other, old) = ((lost + 1) % 3, id(&nodes[lost]));
        nodes.remove(lost).kill();
        lose(&specs[lost]);
        let new = specs[lost].start().await;
        nodes.insert(lost, new);
        assert!(id(&nodes[lost]) != old && id(&nodes[lost]) != "n1", "it is a new node");
        until("the old one to go", async || state(&nodes[other], &old) == "decommissioned").await;
        assert_eq!(sql(&nodes[lost], "SELECT count(*) FROM t").await, ["100"]);
    }

    // The directory that was lost is found again, but its node is no member any more.
    let found = Spec { dir: specs[1].dir.with_extension("lost"), listen: "127.0.0.1:0".into(), ..specs[1].clone() };
    let found = Spec { sql_listen: "127.0.0.1:0".into(), ..found };
    let said = found.refused().await;
    assert!(said.contains("was decommissioned"), "{said}");
    settled(&[&nodes[2], &nodes[0], &nodes[1]]).await;
    // Two of three are enough: the new nodes vote.
    nodes.remove(2).kill();
    sql(&nodes[0], "UPDATE t SET v = v + 1 WHERE k = 1").await;
    assert_eq!(sql(&nodes[1], "SELECT count(*) FROM t").await, ["100"]);
}

/// Of three voters one lags, two die, and one of these comes back without its directory: with its
/// vote the one that lags would lead, and what was acknowledged would be gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_directory_has_no_vote() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs(dir.path(), 3);
    let mut nodes = start_all(&specs).await;
    sql(&nodes[0], "CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY, v INT8)").await;
    sql(&nodes[0], "INSERT INTO t VALUES (1, 0) ON CONFLICT (k) DO NOTHING").await;
    settled(&[&nodes[0], &nodes[1], &nodes[2]]).await;
    nodes.remove(2).kill();
    sql(&nodes[0], "UPDATE t SET v = 777 WHERE k = 1").await;
    nodes.drain(..).for_each(Node::kill);
    lose(&specs[1]);
    let emptied = specs[1].launch();
    let lags = specs[2].launch();
    until("the emptied one to look for its cluster", async || emptied.log().contains("waiting to join the cluster")).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    for node in [&emptied, &lags] {
        let rows = try_sql(node, "SELECT v FROM t WHERE k = 1").await;
        assert!(rows.as_ref().is_none_or(|rows| *rows == ["777"]), "{rows:?}");
    }
    let first = specs[0].start().await;
    let (emptied, lags) = tokio::join!(emptied.served(), lags.served());
    for node in [&first, &emptied, &lags] {
        assert_eq!(sql(node, "SELECT v FROM t WHERE k = 1").await, ["777"]);
    }
    assert_eq!(id(&emptied), "n4");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_founded_without_those_who_stay_away_when_an_operator_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs(dir.path(), 3);
    let (first, second) = (specs[0].launch(), specs[1].launch());
    until("both to wait for the third", async || {
        [&first, &second].iter().all(|node| node.log().contains(&format!("waiting for {} (", specs[2].listen)))
    })
    .await;
    let init = |addr: &str| command(&["init", "--node", addr]);
    let out = init(&specs[1].listen);
    assert!(out.status.success(), "{out:?}");
    let (first, second) = tokio::join!(first.served(), second.served());
    assert_eq!((id(&second), id(&first)), ("n1".to_string(), "n2".to_string()));
    for spec in &specs[..2] {
        let out = init(&spec.listen);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains("already"), "{said}");
    }
    let third = specs[2].start().await;
    assert_eq!(id(&third), "n3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_added_again_after_its_node_was_decommissioned_and_the_last_node_stays() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs(dir.path(), 2);
    let alone = Spec { join: Vec::new(), ..specs[0].clone() }.start().await;
    let out = command(&["node", "decommission", "--node", &alone.addr, "1"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && said.contains("no other node would stay"), "{said}");
    assert_eq!(state(&alone, "n1"), "active");
    let second = specs[1].start().await;
    assert_eq!(id(&second), "n2");
    let out = command(&["node", "decommission", "--node", &alone.addr, "n2"]);
    assert!(out.status.success(), "{out:?}");
    drop(second);
    lose(&specs[1]);
    let again = specs[1].start().await;
    assert_eq!(id(&again), "n3");
    assert_eq!(state(&alone, "n2"), "decommissioned");
    sql(&again, "SELECT 1").await;
}

/// Its members still look for it where it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_node_that_lost_its_directory_founds_no_second_cluster() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = specs(dir.path(), 2);
    let first = Spec { join: Vec::new(), ..specs[0].clone() };
    let founder = first.start().await;
    let second = specs[1].start().await;
    founder.kill();
    lose(&first);
    let said = first.refused().await;
    assert!(said.contains("a cluster counts on this address") && said.contains(&second.addr), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_none_is_called_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let said = Spec { listen: "127.0.0.1:99999".into(), ..Spec::alone(&dir.path().join("node")) }.refused().await;
    assert!(said.contains("127.0.0.1:99999") && said.contains("HOST:PORT") && !said.contains("Another process"), "{said}");
}

/// Machines or pods that are made anew with the old disks: no catalog says where the nodes are. The
/// addresses of the second start were other nodes' before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_all_move_find_each_other() {
    let dir = tempfile::tempdir().expect("a directory");
    let before = specs(dir.path(), 3);
    let nodes = start_all(&before).await;
    sql(&nodes[0], "CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY, v INT8)").await;
    sql(&nodes[0], "INSERT INTO t VALUES (1, 7) ON CONFLICT (k) DO NOTHING").await;
    settled(&[&nodes[0], &nodes[1], &nodes[2]]).await;
    let mut ids: Vec<String> = nodes.iter().map(id).collect();
    nodes.into_iter().for_each(Node::kill);
    // Other addresses, and then the same ones in another order.
    let elsewhere = specs(dir.path(), 3);
    let rotated = |n: usize| {
        let at = &elsewhere[(n + 1) % 3];
        Spec { listen: at.listen.clone(), sql_listen: at.sql_listen.clone(), ..elsewhere[n].clone() }
    };
    for moved in [elsewhere.clone(), (0..3).map(rotated).collect()] {
        let nodes = start_all(&moved).await;
        assert_eq!(nodes.iter().map(id).collect::<Vec<_>>(), ids, "each is who it was");
        for node in &nodes {
            assert_eq!(sql(node, "SELECT v FROM t WHERE k = 1").await, ["7"]);
        }
        sql(&nodes[0], "UPDATE t SET v = 7 WHERE k = 1").await;
        ids = nodes.iter().map(id).collect();
        nodes.into_iter().for_each(Node::kill);
    }
}

/// As in containers: each node listens on every interface, and says which address reaches it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_reached_where_they_say() {
    let dir = tempfile::tempdir().expect("a directory");
    let reached = secure_specs(dir.path(), 2);
    let listening = |spec: &Spec| Spec { listen: spec.listen.replace("127.0.0.1", "0.0.0.0"), ..spec.clone() };
    let told = |spec: Spec, at: &Spec| {
        let told = ["--advertise", &at.listen, "--sql-advertise", &at.sql_listen].map(String::from);
        Spec { options: spec.options.into_iter().chain(told).collect(), ..spec }
    };
    let silent = Spec { join: vec![reached[1].listen.clone()], ..listening(&reached[0]) };
    let said = silent.refused().await;
    assert!(said.contains("--advertise"), "{said}");

    let first = told(listening(&reached[0]), &reached[0]).start().await;
    let joins = joiner(&listening(&reached[1]), &first.addr, &token(&reached[0], "token", 600));
    let nodes = [first, told(joins, &reached[1]).start().await];
    for (node, spec) in nodes.iter().zip(&reached) {
        let log = node.log();
        assert_eq!(node.addr, spec.listen, "it says where it is reached");
        assert!(log.contains(&format!("clients   postgresql://root@{}/", spec.sql_listen)), "{log}");
    }
    let listed = command(&["node", "status", "--data-dir", reached[0].dir.to_str().expect("in UTF-8")]);
    let known = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(!known.contains("0.0.0.0") && reached.iter().all(|spec| known.contains(&spec.listen)), "{known}");
    sql(&nodes[0], "CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY, v INT8)").await;
    sql(&nodes[0], "INSERT INTO t VALUES (1, 7) ON CONFLICT (k) DO NOTHING").await;
    assert_eq!(sql(&nodes[1], "SELECT v FROM t WHERE k = 1").await, ["7"]);
}
