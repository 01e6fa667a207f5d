//! What estimates and shares of escrow columns read, and what of it is certified.

use super::*;
use meridian_base::escrow;

const QUOTAS: &str = "create table quotas (id int8 primary key, used int8 not null escrow check (used between 0 and 900));
    insert into quotas select g, g from generate_series(1, 600) as g;";

fn is_share(target: &Target) -> bool {
    match target {
        Target::Key(key) => escrow::is_key(key.as_bytes()),
        Target::Range(range) => escrow::is_key(range.start.as_bytes()),
    }
}

#[test]
fn estimates_are_of_what_replicas_know_and_not_certified() {
    block_on(async {
        let env = after(QUOTAS).await;
        env.leave_replicas_behind();
        let mut other = session(&env);
        other.query_text("update quotas set used = used + 100 where id = 1; insert into quotas values (601, 3)").await.unwrap();
        let text = "select id, escrow_estimate(used) from quotas where id in (1, 601) order by id";
        let (_, rows, txn) = run_in(&env, text, &[], MEMORY_BYTES_MAX).await;
        let row = |id, n: Option<i64>| vec![Datum::Int(id), n.map_or(Datum::Null, Datum::Int)];
        assert_eq!(rows, [row(1, Some(1)), row(601, None)]);
        assert!(!txn.reads().is_empty() && !txn.reads().iter().any(|(_, target, _)| is_share(target)), "{:?}", txn.reads());
        // Its own changes are known to the transaction.
        other
            .query_text("begin; update quotas set used = used + 5 where id = 1; update quotas set used = 8 where id = 2")
            .await
            .unwrap();
        other.query_text("update quotas set used = used - 1 where id = 2; insert into quotas values (602, 4)").await.unwrap();
        let shown = other.query_text("select id, escrow_estimate(used) from quotas where id in (1, 2, 602) order by id").await;
        let shown: Vec<Vec<Option<String>>> = shown.unwrap().remove(0).rows;
        let text = |cells: [&str; 2]| cells.map(|c| Some(c.to_string())).to_vec();
        assert_eq!(shown, [text(["1", "6"]), text(["2", "7"]), text(["602", "4"])]);
    });
}

#[test]
fn shares_are_read_a_batch_at_a_time_and_certified() {
    block_on(async {
        let env = after(QUOTAS).await;
        let text = "select id, part from [show escrow for table quotas] limit 3";
        let (_, rows, txn) = run_in(&env, text, &[], MEMORY_BYTES_MAX).await;
        assert_eq!(rows.len(), 3);
        let shares: Vec<&Target> = txn.reads().iter().map(|(_, target, _)| target).filter(|target| is_share(target)).collect();
        let [Target::Range(few)] = &shares[..] else { panic!("{shares:?}") };
        let (_, rows, txn) = run_in(&env, "show escrow for table quotas", &[], MEMORY_BYTES_MAX).await;
        let ids: Vec<&Datum> = rows.iter().map(|row| &row[0]).collect();
        assert_eq!((ids.len(), ids.is_sorted(), ids[599]), (600, true, &Datum::Int(600)));
        let ranges: Vec<&Target> = txn.reads().iter().map(|(_, target, _)| target).filter(|target| is_share(target)).collect();
        assert!((2..100).contains(&ranges.len()), "a range for each batch of rows: {}", ranges.len());
        let Target::Range(first) = ranges[0] else { panic!("{ranges:?}") };
        assert!(few.start == first.start && few.end < first.end);
    });
}
