//! Blocks with schema changes beside those of another session, on the in-memory environment.

use super::{Session, SessionOptions};
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
