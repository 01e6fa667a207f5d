//! Who votes, who learns and who leads, and how that changes.

use super::*;

#[tokio::test(start_paused = true)]
async fn leadership_is_given_by_the_leader_to_another_voter_and_to_nobody_else() {
    let cluster = Cluster::new(3, 58).await;
    let leader = cluster.leader().await;
    cluster.propose(leader, "a").await.unwrap();
    let follower = leader % 3 + 1;
    let refused = cluster.group(follower).transfer_leadership(NodeId((leader + 1) % 3 + 1)).await;
    assert!(refused.unwrap_err().message().contains("does not lead"));
    cluster.group(leader).transfer_leadership(NodeId(leader)).await.unwrap();
    assert!(cluster.group(leader).lease_valid());
    let refused = cluster.group(leader).transfer_leadership(NodeId(9)).await;
    assert!(refused.unwrap_err().message().contains("not a voter"));
    assert!(cluster.group(leader).lease_valid(), "nothing was given up");
    cluster.group(leader).campaign().await.unwrap();
    assert!(cluster.group(leader).lease_valid());
}

/// A voter that is not there yet would be missing from majorities that were there before.
#[tokio::test(start_paused = true)]
async fn a_new_voter_counts_once_it_has_caught_up() {
    let mut cluster = Cluster::new(3, 59).await;
    let leader = cluster.leader().await;
    cluster.propose(leader, "a").await.unwrap();
    cluster.start(4, MemoryDisk::default(), Arc::default()).await;
    cluster.net.cut(4);
    let nobody = ids(&[]);
    let change = cluster.group(leader).change_members(ids(&[1, 2, 3, 4]), ids(&[]), &nobody);
    let changed = timeout(Duration::from_secs(10), change).await;
    assert!(!matches!(changed, Ok(Ok(()))), "it waits, or gives up");
    assert_eq!(
        cluster.group(leader).members(),
        Members { voters: ids(&[1, 2, 3]), learners: ids(&[4]), joint: false, committed: true }
    );
    cluster.net.heal();
    self::change(&cluster, leader, &[1, 2, 3, 4], &[]).await;
    assert_eq!(cluster.group(leader).members().voters, ids(&[1, 2, 3, 4]));
}

/// A new voter that is gone for good is made a voter all the same where its caller says so: its
/// region may have no other node for its replica.
#[tokio::test(start_paused = true)]
async fn a_change_does_not_wait_for_a_new_voter_that_is_absent() {
    let mut cluster = Cluster::new(3, 67).await;
    let leader = cluster.leader().await;
    for id in 4..=5 {
        cluster.start(id, MemoryDisk::default(), Arc::default()).await;
    }
    change(&cluster, leader, &[1, 2, 3], &[4, 5]).await;
    cluster.net.cut(5);
    cluster.propose(leader, "a").await.unwrap();
    let absent = ids(&[5]);
    let change = cluster.group(leader).change_members(ids(&[1, 2, 3, 4, 5]), ids(&[]), &absent);
    timeout(Duration::from_secs(30), change).await.expect("changed within 30 s").unwrap();
    assert_eq!(cluster.group(leader).members().voters, ids(&[1, 2, 3, 4, 5]));
    let position = cluster.propose(leader, "b").await.unwrap();
    cluster.applied(4, position).await;
    cluster.net.heal();
    cluster.applied(5, position).await;
}

/// Only those that are new must catch up: one that was there before, and is far behind or dead, is
/// the business of the majority.
#[tokio::test(start_paused = true)]
async fn a_change_does_not_wait_for_a_voter_that_was_there_before() {
    let mut cluster = Cluster::new(3, 63).await;
    let leader = cluster.leader().await;
    let behind = leader % 3 + 1;
    cluster.net.cut(behind);
    // More than the library takes for a little.
    let payload = |_| cluster.group(leader).propose(Bytes::from_static(b"x")).unwrap();
    for _ in 0..6 {
        for ticket in (0..900).map(payload).collect::<Vec<_>>() {
            ticket.await.unwrap();
        }
    }
    cluster.start(4, MemoryDisk::default(), Arc::default()).await;
    change(&cluster, leader, &[1, 2, 3, 4], &[]).await;
    assert_eq!(cluster.group(leader).members().voters, ids(&[1, 2, 3, 4]));
}

/// A change of members is not complete while only the leader has its entry: the next leader may
/// have the old members.
#[tokio::test(start_paused = true)]
async fn a_change_is_complete_when_it_is_committed() {
    let cluster = Cluster::new(3, 65).await;
    let leader = cluster.leader().await;
    cluster.propose(leader, "a").await.unwrap();
    assert!(cluster.group(leader).members().are_settled());
    cluster.net.cut(leader);
    // A learner needs no joint configuration.
    let nobody = ids(&[]);
    let change = cluster.group(leader).change_members(ids(&[1, 2, 3]), ids(&[9]), &nobody);
    let changed = timeout(Duration::from_millis(100), change).await;
    assert!(!matches!(changed, Ok(Ok(()))), "nobody else knows of it");
    let members = cluster.group(leader).members();
    assert_eq!(members, Members { voters: ids(&[1, 2, 3]), learners: ids(&[9]), joint: false, committed: false });
    cluster.net.heal();
    timeout(Duration::from_secs(30), async {
        while !cluster.group(leader).members().are_settled() {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("it is committed, or another leader's log has none of it");
}

/// A change of members that waits for an absent voter fails when the leader loses its leadership.
#[tokio::test(start_paused = true)]
async fn a_change_ends_when_its_leader_does_not_lead_any_more() {
    let cluster = Cluster::new(3, 64).await;
    let leader = cluster.leader().await;
    cluster.propose(leader, "a").await.unwrap();
    let nobody = ids(&[]);
    let change = cluster.group(leader).change_members(ids(&[1, 2, 3, 9]), ids(&[]), &nobody);
    let moved = async {
        sleep(Duration::from_secs(1)).await;
        cluster.group(leader).transfer_leadership(NodeId(leader % 3 + 1)).await.unwrap();
    };
    let both = async { futures::join!(change, moved).0 };
    let error = timeout(Duration::from_secs(30), both).await.expect("an end within 30 s").unwrap_err();
    assert!(error.message().contains("does not lead"), "{error}");
}

/// A leader that leaves the group ends its own leadership, without a later term: its proposals have
/// an end all the same, and a true one.
#[tokio::test(start_paused = true)]
async fn a_leader_that_leaves_answers_all_of_its_proposals() {
    let cluster = Cluster::new(3, 65).await;
    let leader = cluster.leader().await;
    let left: Vec<u32> = (1..=3).filter(|n| *n != leader).collect();
    let mut tickets = Vec::new();
    let proposing = async {
        while let Ok(ticket) = cluster.group(leader).propose(Bytes::from(format!("{}", tickets.len()))) {
            tickets.push(ticket);
            sleep(Duration::from_millis(1)).await;
        }
    };
    let nobody = ids(&[]);
    let (changed, ()) = futures::join!(cluster.group(leader).change_members(ids(&left), ids(&[]), &nobody), proposing);
    changed.unwrap();
    let all = futures::future::join_all(tickets);
    let answers = timeout(Duration::from_millis(500), all).await.expect("all within half a second");
    sleep(Duration::from_secs(5)).await;
    let written = texts(&cluster.nodes[&left[0]].recorder);
    for (n, answer) in answers.iter().enumerate() {
        let is_written = written.contains(&n.to_string());
        let is_true = match answer {
            Ok(_) => is_written,
            Err(ProposeError::NotLeader { .. }) => !is_written,
            Err(e) => *e == ProposeError::Dropped,
        };
        assert!(is_true, "{n}: {answer:?}, {is_written}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_learner_follows_and_is_promoted_and_a_voter_leaves() {
    let mut cluster = Cluster::new(3, 8).await;
    let leader = cluster.leader().await;
    for i in 0..20 {
        cluster.propose(leader, &format!("{i}")).await.unwrap();
    }
    cluster.start(4, MemoryDisk::default(), Arc::default()).await;
    change(&cluster, leader, &[1, 2, 3], &[4]).await;
    let position = cluster.propose(leader, "to the learner").await.unwrap();
    cluster.applied(4, position).await;
    assert_eq!(
        cluster.group(leader).members(),
        Members { voters: ids(&[1, 2, 3]), learners: ids(&[4]), joint: false, committed: true }
    );
    assert_eq!(cluster.group(leader).progress()[&NodeId(4)].matched, Some(position));

    let leaves = if leader == 1 { 2 } else { 1 };
    let stay: Vec<u32> = [1, 2, 3, 4].into_iter().filter(|n| *n != leaves).collect();
    change(&cluster, leader, &stay, &[]).await;
    assert_eq!(
        cluster.group(leader).members(),
        Members { voters: ids(&stay), learners: ids(&[]), joint: false, committed: true }
    );
    // The new voter counts: with the old leader and the one that left gone, two of three remain.
    cluster.net.cut(leaves);
    cluster.net.cut(leader);
    let new = cluster.leader().await;
    cluster.propose(new, "without them").await.unwrap();
    assert_eq!(texts(&cluster.nodes[&new].recorder).len(), 22);
}

#[tokio::test(start_paused = true)]
async fn leadership_moves_on_request_and_the_lease_is_given_up_first() {
    let cluster = Cluster::new(3, 7).await;
    let leader = cluster.leader().await;
    let to = if leader == 1 { 2 } else { 1 };
    cluster.propose(leader, "a").await.unwrap();
    assert!(cluster.group(leader).lease_valid());
    let transfer = cluster.group(leader).transfer_leadership(NodeId(to));
    futures::pin_mut!(transfer);
    assert!((&mut transfer).now_or_never().is_none());
    assert!(!cluster.group(leader).lease_valid());
    transfer.await.unwrap();
    assert_eq!(cluster.leader().await, to);
    cluster.propose(to, "b").await.unwrap();
    // The other way: the one that wants it asks.
    let asks = if to == 3 { 1 } else { 3 };
    cluster.group(asks).campaign().await.unwrap();
    assert_eq!(cluster.leader().await, asks);
    cluster.propose(asks, "c").await.unwrap();
}
