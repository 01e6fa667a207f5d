//! Blocks with schema changes beside those of another session, on the in-memory environment.

use super::{Session, SessionOptions};
use crate::env::Environment;
use crate::testing::MemEnvironment;
use meridian_base::SessionId;

struct Two {
    a: Session<MemEnvironment>,
    b: Session<MemEnvironment>,
}

impl Two {
    fn new() -> Two {
        let env = MemEnvironment::new(&["us-east1"]);
        let session = |id| {
            let options = SessionOptions {
                id: SessionId(id),
                user: "root".into(),
                database: "postgres".into(),
                ..SessionOptions::default()
            };
            Session::new(env.clone(), options, env.shared()).expect("a session")
        };
        Two { a: session(1), b: session(2) }
    }
}

async fn run(session: &mut Session<MemEnvironment>, statements: &[&str]) {
    for sql in statements {
        session.query_text(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
}

/// A block that has written rows is not derived again at its commit: what it rests on, and another
/// one has changed or dropped since, must refuse it.
#[tokio::test]
async fn a_block_with_rows_commits_only_beside_what_it_does_not_rest_on() {
    let mut two = Two::new();
    let setup = ["create sequence sq", "create table parent (id int primary key)", "insert into parent values (1)"];
    run(&mut two.a, &setup).await;
    let made = [
        ("create table child (k int default nextval('sq'), v int)", "drop sequence sq"),
        ("create view seen as select id from parent; create table child (v int)", "alter table parent rename id to other"),
        ("create table child (k int, p int references parent, v int)", "drop table parent"),
    ];
    for (make, change) in made {
        run(&mut two.b, &["begin", make, "insert into child (v) values (1)"]).await;
        run(&mut two.a, &["begin", change, "commit"]).await;
        let refused = two.b.query_text("commit").await.expect_err(change);
        assert_eq!(refused.sqlstate(), "40001", "{change}: {refused}");
        let gone = two.b.query_text("select * from child").await.expect_err("rolled back");
        assert_eq!(gone.sqlstate(), "42P01", "{gone}");
    }
    // What the other one makes is in nobody's way.
    run(&mut two.b, &["begin", "create table child (v int)", "insert into child (v) values (1)"]).await;
    run(&mut two.a, &["create table another (v int)", "create sequence sq"]).await;
    run(&mut two.b, &["commit", "insert into child (v) select v from child"]).await;
    // Its name is.
    run(&mut two.b, &["begin", "create table third (v int)", "insert into third (v) values (1)"]).await;
    run(&mut two.a, &["create table third (v text)"]).await;
    assert_eq!(two.b.query_text("commit").await.expect_err("the name is taken").sqlstate(), "40001");
}

/// Changes of other tables do not disturb a block. Something new that rests on what the block
/// changes refuses it.
#[tokio::test]
async fn a_block_with_rows_commits_beside_changes_of_other_tables() {
    let mut two = Two::new();
    let setup = ["create table old (id int primary key, v int)", "create table other (id int primary key, v int)"];
    run(&mut two.a, &setup).await;
    run(&mut two.a, &["create table gone (id int)", "create view seen as select id from other"]).await;
    let beside = [
        "alter table other add column w int",
        "create index on other (v)",
        "create table made (id int references other)",
        "create view more as select v from other",
        "grant select on other to public",
        "drop view more",
        "drop table gone",
    ];
    for (at, change) in beside.iter().enumerate() {
        let (alter, insert) = (format!("alter table old add column c{at} int"), format!("insert into old values ({at}, 1)"));
        run(&mut two.b, &["begin", &alter, &insert]).await;
        run(&mut two.a, &[change]).await;
        run(&mut two.b, &["commit"]).await;
    }
    assert_eq!(one(&mut two.b, "select count(c0) + count(*) from old").await, "7");
    let resting = [
        ("create view of_old as select v from old", "drop view of_old"),
        ("create table child (id int references old)", "drop table child"),
        ("create index old_v on old (v)", "drop index old_v"),
    ];
    for (change, undo) in resting {
        run(&mut two.b, &["begin", "alter table old drop column v", "insert into old (id) values (100)"]).await;
        run(&mut two.a, &[change]).await;
        let refused = two.b.query_text("commit").await.expect_err(change);
        assert_eq!(refused.sqlstate(), "40001", "{change}: {refused}");
        run(&mut two.a, &[undo]).await;
    }
    assert_eq!(one(&mut two.b, "select count(v) from old").await, "7");
}

/// The keys of the children are looked for among the parents a part at a time.
#[tokio::test]
async fn a_foreign_key_is_validated_part_by_part() {
    let mut two = Two::new();
    let setup = [
        "create table parent (a int, b int, primary key (a, b))",
        "create table child (id int primary key, a int, b int)",
        "alter table child add constraint of_none foreign key (a, b) references parent",
        "alter table child drop constraint of_none",
        "insert into parent select g, g % 7 from generate_series(1, 500) g",
        "insert into child select g, g % 500 + 1, (g % 500 + 1) % 7 from generate_series(1, 2000) g",
        "insert into child values (5000, 999, null), (5001, null, null)",
        "alter table child add constraint of_all foreign key (a, b) references parent",
        "alter table child drop constraint of_all",
        "insert into child values (9999, 400, 6)",
    ];
    run(&mut two.a, &setup).await;
    let add = "alter table child add constraint late foreign key (a, b) references parent";
    let refused = two.a.query_text(add).await.expect_err("a child without a parent");
    assert_eq!(
        (refused.sqlstate(), refused.get_detail()),
        ("23503", Some("Key (a, b)=(400, 6) is not present in table \"parent\"."))
    );
    run(&mut two.a, &["delete from child where id = 9999"]).await;
    let full = "alter table child add constraint whole foreign key (a, b) references parent match full";
    let refused = two.a.query_text(full).await.expect_err("a part of a key");
    assert_eq!(refused.sqlstate(), "23503", "{refused}");
    run(&mut two.a, &["delete from child where id = 5000", full]).await;
}

/// The value that a query answers.
async fn one(session: &mut Session<MemEnvironment>, sql: &str) -> String {
    let results = session.query_text(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    results[0].rows[0][0].clone().expect("a value")
}

/// A block that has written rows, and then makes more, draws ids that nobody else can draw.
#[tokio::test]
async fn what_a_block_makes_after_its_rows_has_ids_of_its_own() {
    let mut two = Two::new();
    run(&mut two.a, &["create table old (id int primary key, v int)"]).await;
    let more = [
        ("create table a2 (k int primary key, v int)", "select count(*) from a2"),
        ("create index on a1 (v)", "select count(*) from a1 where v > 100"),
        ("create sequence sa", "select nextval('sa') - 1"),
        ("truncate a1", "select count(*) from a1"),
        ("alter table a1 add w int default 7", "select count(*) from a1 where w <> 7"),
    ];
    for (i, (make, nothing)) in more.into_iter().enumerate() {
        let made = format!("create table b{i} (k int primary key, v int, unique (v)); create sequence sb{i}");
        run(&mut two.a, &["begin", "create table a1 (k int primary key, v int)", "insert into a1 values (1, 1), (2, 2)"]).await;
        // Between what is written and what is made, and after it.
        run(&mut two.b, &[&made, &format!("insert into b{i} values (7, 70), (8, 80)")]).await;
        run(&mut two.a, &[make]).await;
        run(&mut two.b, &[&format!("create table c{i} (k int primary key); insert into c{i} values (1), (2), (3)")]).await;
        run(&mut two.a, &["commit"]).await;
        assert_eq!(one(&mut two.a, nothing).await, "0", "{make}");
        for (table, rows) in [(format!("b{i}"), "2"), (format!("c{i}"), "3")] {
            assert_eq!(one(&mut two.a, &format!("select count(*) from {table}")).await, rows, "{make}: {table}");
        }
        assert_eq!(one(&mut two.b, &format!("select nextval('sb{i}')")).await, "1", "{make}");
        run(&mut two.a, &["drop table a1 cascade", "drop table if exists a2", "drop sequence if exists sa"]).await;
    }
}

/// Ids that a block has written rows under are reserved until it ends, however it ends.
#[tokio::test]
async fn rows_written_ahead_are_reached_until_their_block_ends() {
    let mut two = Two::new();
    let env = two.a.env.clone();
    let make = ["begin", "create table a (k int primary key)", "insert into a select generate_series(1, 10)"];
    run(&mut two.a, &make).await;
    run(&mut two.b, &["create table b (k int primary key)"]).await;
    assert_eq!(env.key_count(), 10, "the block is open");
    run(&mut two.a, &["create table a2 (k int primary key)", "insert into a2 values (1)", "commit"]).await;
    assert_eq!(env.key_count(), 11, "it has committed");
    assert!(env.catalog().jobs().next().is_none(), "the reservation is gone");
    run(&mut two.a, &["drop table a, a2"]).await;
    run(&mut two.a, &make).await;
    let held = env.catalog().jobs().next().expect("the reservation").id;
    run(&mut two.a, &["rollback"]).await;
    assert_eq!(env.key_count(), 10, "nobody has ended the reservation");
    crate::session::jobs::take_over(&env, env.catalog().job(held).unwrap(), &two.a.shared).await.unwrap();
    assert_eq!(env.key_count(), 0);
    // A reservation that was given up meanwhile ends the block.
    run(&mut two.a, &make).await;
    let held = env.catalog().jobs().find(|job| !job.state.has_ended()).expect("the reservation").id;
    crate::session::jobs::take_over(&env, env.catalog().job(held).unwrap(), &two.a.shared).await.unwrap();
    let refused = two.a.query_text("commit").await.expect_err("its rows may be gone");
    assert_eq!(refused.sqlstate(), "40001", "{refused}");
    assert_eq!(env.key_count(), 0);
}

/// A block that is derived again, because another change came first, does each statement as the
/// role, and along the path, that it was said with.
#[tokio::test]
async fn a_block_that_is_derived_again_keeps_its_roles_and_paths() {
    let mut two = Two::new();
    let setup = [
        "create role bob; create schema own; create schema one; create schema two; create schema sec",
        "grant create, usage on schema own to bob; grant usage on schema sec to bob",
        "create table sec.t (secret text); insert into sec.t values ('x')",
    ];
    run(&mut two.a, &setup).await;
    let block = [
        "begin",
        "set local role bob",
        "create table own.y (a int)",
        "create view own.v as select * from sec.t",
        "grant select on own.v to bob",
        "reset role",
        "set local search_path = one",
        "create table where_to (a int)",
        "set local search_path = two",
    ];
    run(&mut two.b, &block).await;
    run(&mut two.a, &["create table unrelated (a int)"]).await;
    run(&mut two.b, &["commit"]).await;
    let owners = "select string_agg(pg_get_userbyid(relowner), ',') from pg_class where relname in ('y', 'v')";
    assert_eq!(one(&mut two.a, owners).await, "bob,bob");
    assert_eq!(one(&mut two.a, "select 'one.where_to'::regclass::text").await, "one.where_to");
    run(&mut two.a, &["set role bob"]).await;
    assert_eq!(two.a.query_text("select * from own.v").await.expect_err("bob may not read it").sqlstate(), "42501");
    run(&mut two.a, &["reset role"]).await;
    // What the block may do is not asked of the role that it has become.
    let block = ["begin", "create schema third", "set local role bob", "savepoint s", "select 1", "rollback to s"];
    run(&mut two.b, &block).await;
    run(&mut two.a, &["create table unrelated2 (a int)"]).await;
    run(&mut two.b, &["rollback to s", "commit"]).await;
    assert_eq!(one(&mut two.a, "select count(*) from pg_namespace where nspname = 'third'").await, "1");
}

/// A string of more statements than are kept as they were parsed: each has its effect once, an
/// error has its place in the string, and one of syntax comes before everything else.
#[tokio::test]
async fn a_long_query_string_is_run_statement_by_statement() {
    let mut two = Two::new();
    run(&mut two.a, &["create table t (id int primary key)"]).await;
    let insert = |n: i32| format!("insert into t values ({n});\n");
    let all: String = (0..3_000).map(insert).collect();
    let results = two.a.query_text(&all).await.expect("rows");
    assert_eq!(results.len(), 3_000);
    assert_eq!(one(&mut two.a, "select count(*) from t").await, "3000");

    // The error is in one that is parsed late; everything is one transaction.
    let failing = all.replace("insert into t values (", "insert into t values (10000 + ") + "select 1 / 0; select 1";
    let refused = two.a.query_text(&failing).await.expect_err("a division by zero");
    assert_eq!(refused.sqlstate(), "22012");
    let missing = format!("{}select nothing_like_this; select 1", "select 1;".repeat(2_000));
    let refused = two.a.query_text(&missing).await.expect_err("no such column");
    assert_eq!((refused.sqlstate(), refused.get_position()), ("42703", Some(9 * 2_000 + 8)));
    let broken = format!("{}selec 1", all.replace("values (", "values (20000 + "));
    assert_eq!(two.a.query_text(&broken).await.expect_err("no syntax").sqlstate(), "42601");
    assert_eq!(one(&mut two.a, "select count(*) from t").await, "3000");
}
