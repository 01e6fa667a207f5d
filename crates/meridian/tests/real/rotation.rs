//! The cluster's authority is replaced while the cluster serves (`meridian cert rotate-ca`).

use crate::cluster::{command, id, sql, try_sql, until};
use crate::process::{Node, Spec, meridian};
use crate::secure::{joiner, secure_specs, shown, text, token};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs `meridian cert rotate-ca`; whether it succeeded, and what it said.
fn rotate(of: &Spec, step: &str, more: &[&str]) -> (bool, String) {
    let args = ["cert", "rotate-ca", step, "--data-dir", shown(&of.dir)];
    let out = command(&[&args[..], more].concat());
    (out.status.success(), text(&out))
}

fn done(of: &Spec, step: &str, more: &[&str]) -> String {
    let (is_done, said) = rotate(of, step, more);
    assert!(is_done, "{step}: {said}");
    said
}

/// The authorities that a node trusts, as its files say.
fn trusted(of: &Spec) -> Vec<String> {
    let listed = text(&command(&["cert", "list", "--data-dir", shown(&of.dir)]));
    let lines: Vec<&str> = listed.lines().collect();
    let of_authorities = lines.windows(2).filter(|pair| pair[0].contains("authority of cluster"));
    of_authorities.map(|pair| pair[1].trim().to_string()).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("readable").map(|entry| entry.expect("readable")) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

/// Writes all the time, at one node after the other, until it is told to end. A node that was
/// killed is not among them.
fn writing(nodes: &[&Node]) -> (Arc<AtomicBool>, tokio::task::JoinHandle<(usize, usize)>) {
    let stop = Arc::new(AtomicBool::new(false));
    let (ends, addrs) = (stop.clone(), nodes.iter().map(|node| node.sql_addr.clone()).collect::<Vec<_>>());
    let task = tokio::spawn(async move {
        let (mut written, mut failed) = (0, 0);
        for at in 0.. {
            if ends.load(Ordering::Relaxed) {
                break;
            }
            let insert = format!("INSERT INTO t VALUES ({at}, 0)");
            match crate::cluster::try_sql_at(&addrs[at % addrs.len()], "defaultdb", &insert).await {
                Some(_) => written += 1,
                None => failed += 1,
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        (written, failed)
    });
    (stop, task)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_authority_is_replaced_while_the_cluster_serves() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = secure_specs(dir.path(), 4);
    let first = specs[0].start().await;
    let tokens = ["one", "two", "three"].map(|name| token(&specs[0], name, 600));
    let second = joiner(&specs[1], &first.addr, &tokens[0]).start().await;
    let third = joiner(&specs[2], &first.addr, &tokens[1]).start().await;
    sql(&first, "CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY, v INT8)").await;
    let certs = specs[0].dir.join("certs");
    let before = dir.path().join("before");
    copy(&certs, &before);
    let [old] = &trusted(&specs[0])[..] else { panic!("one authority") };

    // What cannot be.
    let (is_done, said) = rotate(&specs[1], "begin", &[]);
    assert!(!is_done && said.contains("does not have the authority's key"), "{said}");
    let (is_done, said) = rotate(&specs[0], "sign", &[]);
    assert!(!is_done && said.contains("no rotation of the authority is under way"), "{said}");

    // A node is down. The operator's command ends, in any way, and is given again.
    third.kill();
    // It may have led the catalog.
    for node in [&first, &second] {
        sql(node, "INSERT INTO t VALUES (-1, 0) ON CONFLICT (k) DO NOTHING").await;
    }
    let (stop, task) = writing(&[&first, &second]);
    let args = ["cert", "rotate-ca", "begin", "--data-dir", shown(&specs[0].dir)];
    for millis in [30, 120, 400] {
        let mut killed = meridian().args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        tokio::time::sleep(Duration::from_millis(millis)).await;
        killed.kill().expect("a child that was not waited for");
        killed.wait().expect("a child");
    }
    let (is_done, said) = rotate(&specs[0], "begin", &["--timeout", "4"]);
    assert!(!is_done && said.contains("waits for node n3"), "{said}");
    let (is_done, said) = rotate(&specs[1], "sign", &["--timeout", "2"]);
    assert!(!is_done && said.contains("n3 is not ready"), "{said}");
    let status = done(&specs[1], "status", &[]);
    assert!(status.contains("is being replaced") && status.contains("n3: does not answer"), "{status}");
    let listed = text(&command(&["node", "status", "--data-dir", shown(&specs[1].dir)]));
    assert!(listed.contains("the rotation of the authority waits for it"), "{listed}");

    // It comes back as the node that it was, and the rotation goes on.
    let third = specs[2].start().await;
    done(&specs[0], "begin", &[]);
    assert!(specs[..3].iter().all(|spec| trusted(spec).len() == 2), "{:?}", trusted(&specs[2]));
    // A node that joins now trusts both authorities.
    let fourth = joiner(&specs[3], &second.addr, &tokens[2]).start().await;
    assert_eq!((id(&fourth), trusted(&specs[3]).len()), ("n4".into(), 2));
    let (is_done, said) = rotate(&specs[0], "finish", &[]);
    assert!(!is_done && said.contains("does not sign yet"), "{said}");

    done(&specs[1], "sign", &[]);
    done(&specs[1], "sign", &[]);
    let (is_done, said) = rotate(&specs[0], "cancel", &[]);
    assert!(!is_done && said.contains("signs already"), "{said}");
    // A process that starts again has what it had.
    let (ended, _) = third.terminate().await;
    assert!(ended.success());
    let third = specs[2].start().await;
    let status = done(&specs[2], "status", &[]);
    assert_eq!(status.matches("shows a certificate of the new one").count(), 4, "{status}");
    done(&specs[2], "finish", &[]);
    done(&specs[2], "finish", &[]);
    stop.store(true, Ordering::Relaxed);
    let (written, failed) = task.await.expect("it ends");
    assert!(written > 0 && failed == 0, "{failed} of {} statements failed", written + failed);

    for spec in &specs {
        let now = trusted(spec);
        assert!(now.len() == 1 && now[0] != *old, "{now:?}");
        assert!(!spec.dir.join("certs/ca.next.key").exists());
    }
    // What the old authority has signed is worth nothing; what the new one has, is.
    let asked = |certs: &Path| text(&command(&["node", "status", "--node", &fourth.addr, "--certs-dir", shown(certs)]));
    assert!(!asked(&before).contains("n1"), "{}", asked(&before));
    assert!(asked(&certs).contains("n1"), "{}", asked(&certs));
    for node in [&first, &second, &third, &fourth] {
        until("a statement", async || try_sql(node, "SELECT count(*) FROM t").await.is_some()).await;
    }
    let log = first.log();
    for event in ["event=authority_rotation phase=introduced", "event=authority_trusted", "event=authority_distrusted"] {
        assert!(log.contains(event), "{event}");
    }
    // And once more, with the authority that is the old one now.
    done(&specs[0], "begin", &[]);
    assert_eq!(trusted(&specs[3]).len(), 2);
    done(&specs[1], "cancel", &[]);
    done(&specs[1], "cancel", &[]);
    assert!(specs.iter().all(|spec| trusted(spec).len() == 1) && !certs.join("ca.next.key").exists());
}

/// The key was stolen, and a node is down: the others do not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stolen_key_is_replaced_without_waiting() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = secure_specs(dir.path(), 2);
    let first = specs[0].start().await;
    let second = joiner(&specs[1], &first.addr, &token(&specs[0], "token", 600)).start().await;
    let before = dir.path().join("before");
    let certs = specs.iter().map(|spec| spec.dir.join("certs")).collect::<Vec<_>>();
    copy(&certs[0], &before);
    second.kill();
    let (is_done, said) = rotate(&specs[0], "begin", &["--timeout", "3"]);
    assert!(!is_done && said.contains("waits for node n2"), "{said}");
    let said = done(&specs[0], "sign", &["--force"]);
    assert!(said.contains("node n2 was not ready"), "{said}");
    until("the first node's certificate", async || {
        done(&specs[0], "status", &[]).contains("n1: trusts both, shows a certificate of the new one")
    })
    .await;
    done(&specs[0], "finish", &["--force"]);
    until("the old authority to go", async || trusted(&specs[0]).len() == 1).await;
    let thief = command(&["node", "status", "--node", &first.addr, "--certs-dir", shown(&before)]);
    assert!(!thief.status.success(), "{}", text(&thief));

    // The node that missed it is refused, and gets another certificate from the one that signs.
    let refused = specs[1].launch();
    // The two nodes refuse each other. The one that looks first ends the handshake and logs why.
    let why = "not signed by an authority of this cluster";
    until("a refusal", async || first.log().contains(why) || refused.log().contains(why)).await;
    refused.kill();
    let made = command(&["cert", "create-node", "--certs-dir", shown(&certs[0]), "--into", shown(&certs[1]), "--id", "2"]);
    assert!(made.status.success(), "{}", text(&made));
    let second = specs[1].start().await;
    assert_eq!((id(&second), sql(&second, "SELECT 1").await), ("n2".into(), vec!["1".to_string()]));
    until("the old authority to go", async || trusted(&specs[1]) == trusted(&specs[0])).await;
}
