//! Who may do what: a matrix of ways to a privilege, objects, privileges and statements, with the
//! SQLSTATE of each statement.
//!
//! `tests/fixtures/privileges.txt` has what PostgreSQL 15 answers. [`the_matrix_is_postgres`]
//! compares it with a server again: it is ignored unless it is asked for, as `.ci/run postgres`
//! does, and writes the file if `UPDATE_GOLDEN=1` is set.

use crate::postgres::Postgres;
use futures::StreamExt;
use meridian_base::SessionId;
use meridian_sql::env::Environment;
use meridian_sql::session::{Session, SessionOptions};
use meridian_sql::testing::MemEnvironment;
use std::path::PathBuf;

/// How somebody comes to a privilege: `GRANTEE` gets it, with these statements before and after,
/// and these before the statement as the actor.
const WAYS: [(&str, &str, &str, &str); 21] = [
    ("nobody", "m_other", "", ""),
    ("direct", "m_actor", "", ""),
    ("direct_without_schema", "m_actor", "revoke usage on schema m from public", ""),
    ("public", "public", "", ""),
    ("group", "m_group", "grant m_group to m_actor", ""),
    ("nested_group", "m_outer", "grant m_outer to m_group; grant m_group to m_actor", ""),
    ("group_without_inherit", "m_group", "alter role m_actor noinherit; grant m_group to m_actor", ""),
    ("set_role", "m_group", "alter role m_actor noinherit; grant m_group to m_actor", "set role m_group"),
    ("revoked", "m_actor", "REVOKE", ""),
    ("owner", "m_other", "", "set session authorization m_owner"),
    ("owner_by_group", "m_other", "grant m_owner to m_actor", ""),
    ("owner_by_group_without_inherit", "m_other", "alter role m_actor noinherit; grant m_owner to m_actor", ""),
    ("owner_by_set_role", "m_other", "alter role m_actor noinherit; grant m_owner to m_actor", "set role m_owner"),
    ("owner_in_anothers_schema", "m_other", "alter schema m owner to m_other", "set session authorization m_owner"),
    ("schema_owner", "m_other", "alter schema m owner to m_actor", ""),
    ("read_all_data", "m_other", "grant pg_read_all_data to m_actor", ""),
    ("write_all_data", "m_other", "grant pg_write_all_data to m_actor", ""),
    ("monitor", "m_other", "grant pg_monitor to m_actor", ""),
    ("create_role", "m_other", "alter role m_actor createrole", ""),
    ("group_of_a_superuser", "m_other", "alter role m_group superuser; grant m_group to m_actor", ""),
    ("superuser", "m_other", "alter role m_actor superuser", ""),
];

/// What is granted, on what.
const GRANTS: [(&str, &str); 20] = [
    ("none", ""),
    ("select", "table m.t"),
    ("insert", "table m.t"),
    ("update", "table m.t"),
    ("delete", "table m.t"),
    ("truncate", "table m.t"),
    ("references", "table m.t"),
    ("select, insert", "table m.t"),
    ("select, update", "table m.t"),
    ("insert, update", "table m.t"),
    ("select, delete, insert", "table m.t"),
    ("all", "table m.t"),
    ("select", "table m.v"),
    ("all", "table m.v"),
    ("usage", "sequence m.s"),
    ("select", "sequence m.s"),
    ("update", "sequence m.s"),
    ("create", "schema m"),
    ("all", "schema m"),
    ("create", "database DATABASE"),
];

/// Parts that `; ` separates run one after the other, until one fails. `REVOKE` as a part takes
/// back what was granted.
const STATEMENTS: &[&str] = &[
    "select * from m.t",
    "select count(*) from m.t",
    "select 1 from m.t where false",
    "select id from m.t for update",
    "select id from m.t for no key update",
    "select id from m.t for share",
    "select id from m.t for key share",
    "select * from m.t, m.v where m.t.id = m.v.id for update of t",
    "insert into m.t values (10, 1)",
    "insert into m.t values (10, 1) returning id",
    "insert into m.t values (1, 1) on conflict do nothing",
    "insert into m.t values (1, 1) on conflict (id) do nothing",
    "insert into m.t values (1, 1) on conflict (id) do update set v = 7",
    "insert into m.t values (1, 1) on conflict (id) do update set v = m.t.v + 1",
    "insert into m.t values (1, 1) on conflict (id) do update set v = excluded.v returning v",
    "insert into m.t select 20, 1",
    "insert into m.t select id + 10, v from m.v",
    "update m.t set v = 1",
    "update m.t set v = v + 1",
    "update m.t set v = 1 where id = 1",
    "update m.t set v = 1 returning v",
    "update m.t set v = x.v from m.v x where m.t.id = x.id",
    "delete from m.t",
    "delete from m.t where id = 1",
    "delete from m.t returning *",
    "delete from m.t using m.v x where m.t.id = x.id",
    "truncate m.t",
    "truncate m.t, m.d",
    "with x as (delete from m.t returning 1) select * from x",
    "with x as (insert into m.t values (10, 1) returning v) select * from x",
    "explain select * from m.t",
    "explain analyze select * from m.t",
    "explain analyze delete from m.t",
    "explain analyze insert into m.t values (10, 1)",
    "copy m.t to stdout",
    "copy m.t (id) to stdout",
    "copy (select id from m.t) to stdout",
    "copy (delete from m.t returning id) to stdout",
    "copy m.t from stdin",
    "copy m.t (id) from stdin",
    "prepare p as select * from m.t; execute p",
    "prepare p as select * from m.t; REVOKE; execute p",
    "prepare p as insert into m.t values (10, 1); REVOKE; execute p",
    "prepare p as delete from m.t; REVOKE; execute p",
    "prepare p as select * from m.v; REVOKE; execute p",
    "prepare p as select nextval('m.s'); REVOKE; execute p",
    "REVOKE; select * from m.t",
    "declare c cursor for select * from m.t",
    "declare c cursor for select * from m.v; fetch 1 from c",
    "insert into m.f values (5, 1)",
    "delete from m.p",
    "create table m.child (id int primary key, p int references m.t)",
    "create index on m.t (v)",
    "alter table m.t add column w int",
    "alter table m.t drop column v cascade",
    "alter table m.d rename column v to w",
    "alter table m.d rename to d2",
    "alter table m.t alter column v set not null",
    "alter table m.t alter column v set default 1",
    "alter table m.t add constraint c check (id > 0)",
    "alter index m.t_pkey rename to t_key",
    "alter table m.t rename constraint t_pkey to t_key",
    "alter table m.t add unique (v)",
    "alter table m.t add constraint t_pkey unique (v)",
    "alter table m.t add column w serial",
    "alter table m.t add column w int generated always as identity",
    "alter table m.f add foreign key (p) references m.p",
    "alter table m.d rename to t",
    "alter sequence m.s rename to s3",
    "alter view m.v rename to v3",
    "comment on table m.t is 'x'",
    "comment on column m.t.v is 'x'",
    "drop table m.t cascade",
    "alter table m.t owner to m_actor",
    "alter table m.t owner to m_other",
    "grant select on m.t to m_other",
    "grant select on m.t to m_other with grant option",
    "revoke select on m.t from m_other",
    "grant all on m.t to m_other",
    "grant usage on sequence m.s to m_other",
    "grant usage on schema m to m_other",
    "select * from m.v",
    "select id from m.v for update",
    "create or replace view m.v as select id, v from m.t",
    "create view m.w as select id from m.t",
    "alter view m.v owner to m_actor",
    "comment on view m.v is 'x'",
    "drop view m.v",
    "select nextval('m.s')",
    "select currval('m.s')",
    "select nextval('m.s'); select currval('m.s')",
    "select nextval('m.s'); select lastval()",
    "select setval('m.s', 5)",
    "select last_value, is_called from m.s",
    "insert into m.d (v) values (1)",
    "alter sequence m.s restart",
    "alter sequence m.s owner to m_actor",
    "create sequence m.s2",
    "drop sequence m.s",
    "create table m.u (id int)",
    "create table m.u as select * from m.t",
    "create table m.u as select id from m.v",
    "create schema m_new",
    "create schema m_new authorization m_actor",
    "create schema m_new authorization m_other",
    "drop view m.v; alter schema m rename to m2",
    "alter schema m owner to m_actor",
    "drop schema m cascade",
    "create role m_new",
    "create role m_new superuser",
    "create role m_new replication",
    "create role m_new bypassrls",
    "alter role m_other login",
    "alter role m_actor password null",
    "alter role m_other password null",
    "alter role m_other replication",
    "alter role m_other bypassrls",
    "alter role m_other rename to m_new",
    "drop role m_outer",
    "grant m_outer to m_other",
    "comment on role m_other is 'x'",
    "set role m_group",
    "set role m_owner",
    "set session authorization m_other",
    "reassign owned by m_owner to m_actor",
    "drop owned by m_other",
    "select rolpassword from pg_authid",
    "select passwd from pg_shadow",
    "select count(*) from pg_roles",
    "select * from pg_hba_file_rules",
    "select * from pg_ident_file_mappings",
    "select count(*) from pg_stat_ssl",
    "select pg_reload_conf()",
];

/// A server that answers a statement with its SQLSTATE.
trait Server {
    async fn run(&mut self, text: &str) -> String;
}

struct Here(Session<MemEnvironment>);

impl Server for Here {
    async fn run(&mut self, text: &str) -> String {
        match self.0.query_text(text).await {
            Ok(_) => "ok".into(),
            // What the rows are read from is no connection: the statement had got as far as that.
            Err(e) if e.message() == "COPY from stdin failed: COPY FROM STDIN needs a connection" => "ok".into(),
            Err(e) => e.sqlstate().into(),
        }
    }
}

struct There {
    client: tokio_postgres::Client,
    config: String,
}

impl Server for There {
    async fn run(&mut self, text: &str) -> String {
        let answer = match text {
            _ if text.starts_with("copy") && text.ends_with("from stdin") => self.copy_in(text).await,
            _ if text.starts_with("copy") => self.copy_out(text).await,
            _ => self.client.simple_query(text).await.map(drop),
        };
        match answer {
            Ok(()) => "ok".into(),
            Err(e) => e.code().map_or_else(|| format!("lost: {e}"), |c| c.code().into()),
        }
    }
}

impl There {
    async fn connect(config: String) -> There {
        let (client, connection) = tokio_postgres::connect(&config, tokio_postgres::NoTls).await.expect("a PostgreSQL server");
        tokio::spawn(connection);
        There { client, config }
    }
    /// Copies no rows. The driver's connection is of no use after a copy that was refused, so that
    /// each has one of its own, with the same user and role.
    async fn copy_in(&self, text: &str) -> Result<(), tokio_postgres::Error> {
        let acting = "select format('set session authorization %I; set role %s', session_user, \
            case current_setting('role') when 'none' then 'none' else quote_ident(current_setting('role')) end)";
        let acting: String = self.client.query_one(acting, &[]).await?.get(0);
        let There { client, .. } = There::connect(self.config.clone()).await;
        client.batch_execute(&acting).await?;
        let sink = client.copy_in::<_, bytes::Bytes>(text).await?;
        std::pin::pin!(sink).finish().await.map(drop)
    }
    async fn copy_out(&self, text: &str) -> Result<(), tokio_postgres::Error> {
        let mut rows = std::pin::pin!(self.client.copy_out(text).await?);
        while let Some(row) = rows.next().await {
            row?;
        }
        Ok(())
    }
}

const TEAR_DOWN: &str = "reset session authorization; drop schema if exists m cascade; drop schema if exists m_new cascade; \
    drop role if exists m_actor; drop role if exists m_other; drop role if exists m_group; drop role if exists m_outer; \
    drop role if exists m_owner";
const SET_UP: &str = "create role m_actor login; create role m_other; create role m_group; create role m_outer; \
    create role m_owner; create schema m authorization m_owner; grant usage on schema m to public; \
    set role m_owner; create table m.t (id int primary key, v int); insert into m.t values (1, 1), (2, 2); \
    create view m.v as select id, v from m.t; create sequence m.s; create table m.d (id serial primary key, v int); \
    grant insert on m.d to public; create table m.p (id int primary key); insert into m.p values (1); \
    create table m.f (id int primary key, p int references m.p on delete cascade); insert into m.f values (1, 1); \
    grant insert on m.f to public; grant delete on m.p to public; reset role";

/// Runs a statement of [`STATEMENTS`] as the actor. `takes_back` is what its `REVOKE` is.
async fn answer(server: &mut impl Server, statement: &str, acting: &str, takes_back: &str) -> String {
    for part in statement.split("; ") {
        if part == "REVOKE" {
            must(server, &format!("reset session authorization; {takes_back}")).await;
            must(server, "set session authorization m_actor").await;
            must(server, acting).await;
            continue;
        }
        let answer = server.run(part).await;
        if answer != "ok" {
            return answer;
        }
    }
    "ok".into()
}

async fn must(server: &mut impl Server, text: &str) {
    for statement in text.split("; ").filter(|s| !s.trim().is_empty()) {
        let answer = server.run(statement).await;
        assert_eq!(answer, "ok", "{statement}");
    }
}

/// A line for each way and grant: its name, and the answers.
async fn matrix(server: &mut impl Server, database: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for (way, grantee, before, acting) in WAYS {
        for (privilege, object) in GRANTS {
            // Ways that need no grant are the same for all.
            if grantee == "m_other" && way != "nobody" && privilege != "none" {
                continue;
            }
            let object = object.replace("DATABASE", database);
            must(server, TEAR_DOWN).await;
            must(server, SET_UP).await;
            if privilege != "none" {
                must(server, &format!("grant {privilege} on {object} to {grantee}")).await;
            }
            let takes_back = match privilege {
                "none" => String::new(),
                _ => format!("revoke {privilege} on {object} from {grantee}"),
            };
            must(server, if before == "REVOKE" { &takes_back } else { before }).await;
            must(server, "set session authorization m_actor").await;
            let mut answers = Vec::new();
            for statement in STATEMENTS {
                must(server, "begin").await;
                must(server, acting).await;
                answers.push(answer(server, statement, acting, &takes_back).await);
                must(server, "rollback").await;
                if statement.starts_with("prepare") {
                    must(server, "deallocate all").await;
                }
            }
            let on = object.replace(database, "DATABASE").replace(' ', "_");
            lines.push(format!("{way} {} {on}: {}", privilege.replace(", ", "+"), answers.join(" ")));
            must(server, "reset session authorization").await;
            if object.starts_with("database") {
                must(server, &takes_back).await;
            }
        }
    }
    must(server, TEAR_DOWN).await;
    lines
}

/// A session of a role, in one environment.
fn session(env: &MemEnvironment, id: u64, user: &str) -> Session<MemEnvironment> {
    let options = SessionOptions { id: SessionId(id), user: user.into(), database: "postgres".into(), ..Default::default() };
    Session::new(env.clone(), options, env.shared()).expect("a session")
}

async fn code(session: &mut Session<MemEnvironment>, text: &str) -> String {
    session.query_text(text).await.map_or_else(|e| e.sqlstate().to_string(), |_| "ok".into())
}

/// What a role may still do when `REVOKE` has answered: by a prepared statement, in an open block,
/// by a cursor that it has read from, by a copy, by a view, in the past, by a membership.
async fn still_allowed(env: &MemEnvironment) -> Vec<&'static str> {
    let mut root = session(env, 1, "root");
    let set_up = "create role app login; create role readers; create role other; create table t (id int primary key); \
        insert into t values (1), (2), (3); create view w as select id from t; alter view w owner to other; \
        grant usage on schema public to public; grant select on t, w to app; grant select on t to other; \
        create table g (id int primary key); grant select on g to readers; grant readers to app";
    for statement in set_up.split("; ") {
        assert_eq!(code(&mut root, statement).await, "ok", "{statement}");
    }
    let mut app = session(env, 2, "app");
    let mut block = session(env, 3, "app");
    let mut cursor = session(env, 4, "app");
    let past = session(env, 5, "app");
    for statement in [
        "prepare p as select * from t",
        "prepare w as select * from w",
        "prepare g as select * from g",
        "execute p",
        "execute w",
        "execute g",
    ] {
        assert_eq!(code(&mut app, statement).await, "ok", "{statement}");
    }
    for statement in ["begin", "select * from t"] {
        assert_eq!(code(&mut block, statement).await, "ok", "{statement}");
    }
    for statement in ["begin", "declare c cursor for select * from t", "fetch 1 from c"] {
        assert_eq!(code(&mut cursor, statement).await, "ok", "{statement}");
    }
    for statement in ["revoke select on t from app, other", "revoke readers from app"] {
        assert_eq!(code(&mut root, statement).await, "ok", "{statement}");
    }
    let mut allowed = Vec::new();
    let mut sessions = [app, block, cursor, past];
    for (what, at, text) in [
        ("a prepared statement", 0, "execute p"),
        ("a view", 0, "execute w"),
        ("a membership", 0, "execute g"),
        ("a query", 0, "select * from t"),
        ("a copy", 0, "copy t to stdout"),
        ("an open block", 1, "select * from t"),
        ("a cursor", 2, "fetch 1 from c"),
        ("the past", 3, "select * from t as of system time '-1us'"),
    ] {
        if code(&mut sessions[at], text).await != "42501" {
            allowed.push(what);
        }
    }
    allowed
}

#[test]
fn what_was_revoked_counts_at_once() {
    let allowed = runtime().block_on(async { still_allowed(&MemEnvironment::new(&["us-east1"])).await });
    assert!(allowed.is_empty(), "{allowed:?}");
}

#[test]
fn privileges_that_are_checked_once_are_noticed() {
    let allowed = runtime().block_on(async {
        let env = MemEnvironment::new(&["us-east1"]);
        env.shared().plant_checks_at_prepare_only();
        still_allowed(&env).await
    });
    assert!(allowed.contains(&"an open block") || allowed.contains(&"a cursor"), "the planted bug goes unnoticed: {allowed:?}");
}

#[test]
fn passwords_are_seen_by_nobody() {
    runtime().block_on(async {
        let env = MemEnvironment::new(&["us-east1"]);
        let mut root = session(&env, 1, "root");
        assert_eq!(code(&mut root, "create role app login password 'se cret'").await, "ok");
        let activity =
            root.query_text("select query from pg_stat_activity; alter role app password 'se cret'").await.expect("rows");
        assert!(!format!("{:?}", activity[0].rows).contains("se cret"));
        let stored = root.query_text("select rolpassword from pg_authid where rolname = 'app'").await.expect("rows");
        let stored = stored[0].rows[0][0].clone().expect("a verifier");
        assert!(stored.starts_with("SCRAM-SHA-256$4096:"), "{stored}");
        assert!(!format!("{:?}", env.catalog()).contains(&stored[20..]));
        // As pg_dumpall writes it.
        assert_eq!(code(&mut root, &format!("create role copy login password '{stored}'")).await, "ok");
        let copied = root.query_text("select rolpassword from pg_authid where rolname = 'copy'").await.expect("rows");
        assert_eq!(copied[0].rows[0][0].as_deref(), Some(stored.as_str()));
        assert_eq!(code(&mut root, &format!("alter role app password 'md5{}'", "0".repeat(32))).await, "0A000");
        let mut app = session(&env, 2, "app");
        for secret in ["select * from pg_authid", "select passwd from pg_shadow"] {
            assert_eq!(code(&mut app, secret).await, "42501");
        }
        for open in ["select passwd from pg_user", "select rolpassword from pg_roles", "alter role app password 'mine'"] {
            assert_eq!(code(&mut app, open).await, "ok", "{open}");
        }
        for closed in
            ["alter role app createdb", "alter role copy password 'x'", "create role x", "alter system set hba_rules = ''"]
        {
            assert_eq!(code(&mut app, closed).await, "42501", "{closed}");
        }
    });
}

#[test]
fn rules_of_login_are_read_before_they_count() {
    runtime().block_on(async {
        let env = MemEnvironment::new(&["us-east1"]);
        let mut root = session(&env, 1, "root");
        for (text, answer) in [
            ("alter system set hba_rules = 'host all all all md5'", "F0000"),
            ("alter system set hba_rules = 'hostssl all all all cert map=m'", "F0000"),
            ("alter system set ident_maps = 'm alice app'", "ok"),
            ("alter system set hba_rules = 'hostssl all all all cert map=m'", "ok"),
            ("alter system reset hba_rules", "ok"),
            ("alter system set work_mem = '1MB'", "0A000"),
        ] {
            assert_eq!(code(&mut root, text).await, answer, "{text}");
        }
    });
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/privileges.txt")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The differences of two matrices, statement by statement.
fn differences(expected: &str, answered: &[String]) -> Vec<String> {
    let mut different = Vec::new();
    let expected: Vec<&str> = expected.lines().collect();
    assert_eq!(expected.len(), answered.len(), "the matrix has another size: UPDATE_GOLDEN=1 with a PostgreSQL writes it");
    for (expected, answered) in expected.iter().zip(answered) {
        let ((name, theirs), (_, ours)) =
            (expected.split_once(": ").expect("a line"), answered.split_once(": ").expect("a line"));
        for ((statement, theirs), ours) in STATEMENTS.iter().zip(theirs.split(' ')).zip(ours.split(' ')) {
            if theirs != ours {
                different.push(format!("{name}: {statement}: {theirs} there, {ours} here"));
            }
        }
    }
    different
}

#[test]
fn the_matrix_is_as_postgres_has_it() {
    let expected = std::fs::read_to_string(file()).expect("the recorded matrix");
    let answered = runtime().block_on(async {
        let env = MemEnvironment::new(&["us-east1"]);
        let options = SessionOptions { id: SessionId(1), user: "root".into(), database: "postgres".into(), ..Default::default() };
        let session = Session::new(env.clone(), options, env.shared()).expect("a session");
        matrix(&mut Here(session), "postgres").await
    });
    let different = differences(&expected, &answered);
    assert!(different.is_empty(), "{} differences:\n{}", different.len(), different.join("\n"));
}

#[test]
#[ignore = "needs a PostgreSQL: .ci/run postgres"]
fn the_matrix_is_postgres() {
    let postgres = Postgres::alone();
    let config = postgres.config().to_string();
    let answered = runtime().block_on(async { matrix(&mut There::connect(config).await, "postgres").await });
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file(), answered.join("\n") + "\n").expect("a writable file");
    }
    let different = differences(&std::fs::read_to_string(file()).expect("the recorded matrix"), &answered);
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// `role` in the startup message, as `PGOPTIONS='-c role=…'` says it.
#[test]
fn a_session_begins_as_the_role_that_it_asks_for() {
    runtime().block_on(async {
        let env = MemEnvironment::new(&["us-east1"]);
        let mut root = session(&env, 1, "root");
        assert_eq!(code(&mut root, "create role app login; create role team; create role other; grant team to app").await, "ok");
        let begin = |role: &str| {
            let settings = vec![("role".to_string(), role.to_string())];
            let (user, database) = ("app".to_string(), "postgres".to_string());
            let options = SessionOptions { id: SessionId(7), user, database, settings, ..SessionOptions::default() };
            Session::new(env.clone(), options, env.shared())
        };
        for (role, user) in [("team", "team"), ("none", "app")] {
            let mut app = begin(role).expect("a session");
            let answer = app.query_text("select current_user").await.expect("a row");
            assert_eq!(answer[0].rows[0][0].as_deref(), Some(user), "{role}");
        }
        for (role, refused) in [("other", "42501"), ("nobody", "22023")] {
            assert_eq!(begin(role).err().map(|e| e.sqlstate().to_string()).as_deref(), Some(refused), "{role}");
        }
    });
}
