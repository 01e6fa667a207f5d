//! What the log and the store hold: truncation, snapshots, restarts, disks that are full or forget.

use super::*;

/// With nothing kept, the log ends where the store is durable.
#[tokio::test(start_paused = true)]
async fn the_log_is_truncated_up_to_what_the_store_holds() {
    let mut cluster = Cluster { net: Arc::default(), nodes: BTreeMap::new(), seed: 68 };
    let options = GroupOptions { entries_kept: 0, founders: vec![NodeId(1)], ..GroupOptions::new(G, NodeId(1)) };
    cluster.start_with(MemoryDisk::default(), Arc::default(), options).await;
    cluster.leader().await;
    for round in 0..5 {
        let position = cluster.propose(1, &format!("{round}")).await.unwrap();
        let node = &cluster.nodes[&1];
        node.group.set_truncatable(node.recorder.flush());
        sleep(Duration::from_millis(100)).await;
        assert_eq!(node.log.group(G).bounds(), (position, position));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lagging_replica_gets_a_snapshot() {
    let mut cluster = Cluster::new(3, 5).await;
    let leader = cluster.leader().await;
    let lagging = if leader == 1 { 2 } else { 1 };
    let (disk, recorder) = cluster.kill(lagging).await;
    let mut position = LogPosition::default();
    for i in 0..100 {
        position = cluster.propose(leader, &format!("{i}")).await.unwrap();
    }
    for node in cluster.nodes.values() {
        node.group.set_truncatable(node.recorder.flush());
    }
    sleep(Duration::from_secs(2)).await;
    cluster.start(lagging, disk, recorder).await;
    cluster.applied(lagging, position).await;
    assert_eq!(*cluster.nodes[&lagging].recorder.imports.lock(), 1);
    assert_eq!(texts(&cluster.nodes[&lagging].recorder).len(), 100);
    // And it goes on with the log.
    let position = cluster.propose(leader, "more").await.unwrap();
    cluster.applied(lagging, position).await;
    // A restart after the snapshot starts from it.
    let (disk, recorder) = cluster.kill(lagging).await;
    assert_eq!(recorder.payloads().len(), 100);
    cluster.start(lagging, disk, recorder).await;
    cluster.applied(lagging, position).await;
    assert_eq!(texts(&cluster.nodes[&lagging].recorder).len(), 101);
}

/// As when the store fails to apply an entry.
#[tokio::test(start_paused = true)]
async fn a_replica_whose_store_cannot_install_a_snapshot_says_why() {
    let mut cluster = Cluster::new(3, 62).await;
    let leader = cluster.leader().await;
    let lagging = leader % 3 + 1;
    let (disk, recorder) = cluster.kill(lagging).await;
    for i in 0..100 {
        cluster.propose(leader, &format!("{i}")).await.unwrap();
    }
    for node in cluster.nodes.values() {
        node.group.set_truncatable(node.recorder.flush());
    }
    sleep(Duration::from_secs(2)).await;
    recorder.imports_nothing.store(true, Ordering::Relaxed);
    cluster.start(lagging, disk, recorder).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.group(lagging).failure().unwrap().message(), "the store's disk is broken");
}

#[tokio::test(start_paused = true)]
async fn the_log_is_truncated_and_a_restart_needs_only_the_rest() {
    let mut cluster = Cluster::new(1, 6).await;
    cluster.leader().await;
    let mut position = LogPosition::default();
    for round in 0..20 {
        for i in 0..50 {
            position = cluster.propose(1, &format!("{round}.{i}.{}", "x".repeat(500))).await.unwrap();
        }
        let node = &cluster.nodes[&1];
        node.group.set_truncatable(node.recorder.flush());
        sleep(Duration::from_millis(100)).await;
    }
    assert!(cluster.nodes[&1].log.status().segments <= 3, "{:?}", cluster.nodes[&1].log.status());
    let (disk, recorder) = cluster.kill(1).await;
    cluster.start(1, disk, recorder).await;
    cluster.leader().await;
    cluster.applied(1, position).await;
    assert_eq!(cluster.nodes[&1].recorder.payloads().len(), 1_000);
}

/// A disk that confirmed what it had not written gives back an earlier log. Whoever leads sends it
/// what is missing, also when that was itself; what was acknowledged is with the others.
#[tokio::test(start_paused = true)]
async fn a_voter_whose_disk_forgot_what_it_confirmed_is_sent_it_again() {
    for forgets_leader in [false, true] {
        let mut cluster = Cluster::new(3, 16).await;
        let leader = cluster.leader().await;
        let liar = if forgets_leader { leader } else { leader % 3 + 1 };
        for i in 0..5 {
            cluster.propose(leader, &format!("before {i}")).await.unwrap();
        }
        let forgotten = cluster.nodes[&liar].disk.reboot();
        let mut expected = texts(&cluster.nodes[&leader].recorder);
        for i in 0..20 {
            cluster.propose(leader, &format!("after {i}")).await.unwrap();
            expected.push(format!("after {i}"));
        }
        sleep(Duration::from_millis(100)).await;
        cluster.kill(liar).await;
        cluster.start(liar, forgotten, Arc::default()).await;
        let leader = cluster.leader().await;
        assert!(!forgets_leader || leader != liar, "its log is shorter than the others'");
        let position = cluster.propose(leader, "at last").await.unwrap();
        expected.push("at last".to_string());
        for id in 1..=3 {
            cluster.applied(id, position).await;
            assert_eq!(texts(&cluster.nodes[&id].recorder), expected, "on node {id}");
        }
    }
}

/// The log is read, and given to the state machine, 1,024 entries at a time.
#[tokio::test(start_paused = true)]
async fn a_restart_applies_more_entries_than_are_read_at_once() {
    let mut cluster = Cluster::new(1, 12).await;
    cluster.leader().await;
    let mut position = LogPosition::default();
    for part in 0..30 {
        let propose = |i: u32| cluster.group(1).propose(Bytes::from((part * 100 + i).to_string())).unwrap();
        for ticket in (0..100).map(propose).collect::<Vec<_>>() {
            position = ticket.await.unwrap();
        }
    }
    let (disk, _) = cluster.kill(1).await;
    cluster.start(1, disk, Arc::default()).await;
    cluster.leader().await;
    cluster.applied(1, position).await;
    let expected: Vec<String> = (0..3_000).map(|i| i.to_string()).collect();
    assert_eq!(texts(&cluster.nodes[&1].recorder), expected);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_keeps_the_proposal_waiting_and_the_leader_leading() {
    let cluster = Cluster::new(1, 9).await;
    cluster.leader().await;
    cluster.propose(1, "fits").await.unwrap();
    let node = &cluster.nodes[&1];
    node.disk.set_capacity(node.disk.bytes());
    let big = "x".repeat(10_000);
    let mut proposal = Box::pin(cluster.propose(1, &big));
    assert!(timeout(Duration::from_secs(10), &mut proposal).await.is_err(), "no answer");
    assert!(node.log.failure().borrow().is_none() && node.group.role().is_leader);
    node.disk.set_capacity(0);
    timeout(Duration::from_secs(1), proposal).await.expect("an answer").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_follower_with_a_full_disk_is_gone_without_and_catches_up() {
    let cluster = Cluster::new(3, 10).await;
    let leader = cluster.leader().await;
    let full = [1, 2, 3].into_iter().find(|n| *n != leader).unwrap();
    let disk = &cluster.nodes[&full].disk;
    disk.set_capacity(disk.bytes());
    let mut last = None;
    for number in 0..40 {
        last = Some(cluster.propose(leader, &format!("{number}{}", "x".repeat(1_000))).await.unwrap());
    }
    sleep(Duration::from_secs(20)).await;
    assert!(*cluster.nodes[&full].log.waits_for_room().borrow());
    assert_eq!(cluster.leader().await, leader);
    disk.set_capacity(0);
    cluster.applied(full, last.unwrap()).await;
}
