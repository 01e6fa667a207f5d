use super::*;
use crate::catalog::bootstrap::first_catalog;
use crate::catalog::system::functions::{reg_name, reg_oid};
use crate::catalog::{ColumnState, FkAction, IndexState, Locality};
use crate::types::{System, Type};
use meridian_base::{NodeId, SchemaVersion, Timestamp};

/// A session that only changes the schema; every statement is committed at once and its jobs are
/// remembered.
struct Shell {
    catalog: Catalog,
    names: Names,
    nodes: Vec<NodeLocality>,
    private: BTreeSet<DescriptorId>,
    jobs: Vec<Job>,
    notices: Vec<String>,
}

/// What a session's expressions see of it.
struct Expressions;

impl System for Expressions {
    fn random(&self) -> u64 {
        4
    }
    fn now_micros(&self) -> u64 {
        0
    }
    fn unique_rowid(&self) -> i64 {
        1
    }
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
    fn set_setting(&self, name: &str, _: &str, _: bool) -> Result<String> {
        Err(Error::sql("42704", name))
    }
    fn reg_name(&self, ctx: &EvalContext, ty: &Type, oid: u32) -> Option<String> {
        reg_name(ctx, ty, oid)
    }
    fn reg_oid(&self, ctx: &EvalContext, ty: &Type, name: &str) -> Result<u32> {
        reg_oid(ctx, ty, name)
    }
}

fn node(id: u32, region: &str) -> NodeLocality {
    NodeLocality { node: NodeId(id), region: region.into(), zone: "a".into(), sql_addr: String::new(), is_live: true }
}

impl Shell {
    fn new() -> Shell {
        Shell {
            catalog: first_catalog("eu", SchemaVersion(1), Timestamp::from_micros(1)),
            names: Names::new("postgres", "root"),
            nodes: vec![node(1, "eu"), node(2, "us"), node(3, "asia")],
            private: BTreeSet::new(),
            jobs: Vec::new(),
            notices: Vec::new(),
        }
    }
    fn try_run(&mut self, sql: &str) -> Result<Vec<&'static str>> {
        let mut tags = Vec::new();
        for statement in crate::parse::parse(sql)? {
            assert!(is_ddl(&statement), "not DDL: {sql}");
            let (catalog, database) = (Arc::new(self.catalog.clone()), self.names.database.as_str().into());
            let eval = EvalContext { system: Arc::new(Expressions), catalog, database, ..EvalContext::default() };
            let context = DdlContext {
                names: &self.names,
                gateway_region: "eu",
                nodes: &self.nodes,
                private: &self.private,
                jobs: &[],
                eval: &eval,
            };
            let ddl = derive(&statement, &self.catalog, &context)?;
            let version = SchemaVersion(self.catalog.version.0 + 1);
            self.catalog = self.catalog.apply(&ddl.change, version, Timestamp::from_micros(version.0));
            self.jobs.extend(ddl.jobs);
            self.notices.extend(ddl.notices.into_iter().map(|n| n.message));
            tags.push(ddl.tag);
            self.check_invariants();
        }
        Ok(tags)
    }
    fn run(&mut self, sql: &str) {
        self.try_run(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    }
    /// SQLSTATE and message of a statement that must fail.
    fn fail(&mut self, sql: &str) -> (String, String) {
        let before = self.catalog.descriptors.len();
        match self.try_run(sql) {
            Ok(tags) => panic!("{sql}: {tags:?}"),
            Err(e) => {
                assert_eq!(before, self.catalog.descriptors.len());
                (e.sqlstate().to_string(), e.message().to_string())
            }
        }
    }
    fn table(&self, name: &str) -> TableRef {
        self.catalog.table(&self.names, &Name::parse(name).unwrap()).unwrap()
    }
    fn exists(&self, name: &str) -> bool {
        self.catalog.find_relation(&self.names, &Name::parse(name).unwrap()).unwrap().is_some()
    }

    /// What every catalog keeps.
    fn check_invariants(&self) {
        let mut ids = BTreeSet::new();
        for d in self.catalog.descriptors.values() {
            assert!(ids.insert(d.id().0) && d.id().0 < self.catalog.next_id);
            if let Some(name) = d.name() {
                assert_eq!(self.catalog.by_name.get(&(d.parent(), name.to_string())), Some(&d.id()));
                assert!(d.parent() == crate::catalog::ROOT || self.catalog.descriptors.contains_key(&d.parent()));
            }
            match &**d {
                Descriptor::Table(t) => self.check_table(t, &mut ids),
                Descriptor::Sequence(s) => assert!(ids.insert(s.index_id)),
                _ => {}
            }
        }
        assert_eq!(self.catalog.by_name.len(), self.catalog.descriptors.values().filter(|d| d.name().is_some()).count());
    }
    fn check_table(&self, t: &Table, ids: &mut BTreeSet<u32>) {
        for group in t.groups() {
            assert!(matches!(self.catalog.descriptors.get(&DescriptorId(group.0)).map(|d| &**d), Some(Descriptor::Group(_))));
        }
        assert_eq!(t.region_column().is_some(), t.only_group().is_none());
        assert!(t.primary().holds_rows && t.primary().unique && t.primary().state == IndexState::Public);
        for index in &t.indexes {
            assert!(ids.insert(index.id), "index id {} is used twice", index.id);
            assert!(index.columns.iter().all(|c| t.columns[c.ordinal as usize].state != ColumnState::Dropped));
        }
        assert!(t.primary().columns.iter().all(|c| t.columns[c.ordinal as usize].not_null));
        for fk in &t.foreign_keys {
            let parent = self.catalog.table_by_id(fk.parent).expect("a parent");
            assert!(parent.referenced_by.contains(&(t.id, fk.id)));
        }
        for (child, fk) in &t.referenced_by {
            let child = self.catalog.table_by_id(*child).expect("a child");
            assert!(child.foreign_keys.iter().any(|f| f.id == *fk && f.parent == t.id));
        }
    }
}

#[test]
fn a_table_gets_postgresqls_names_for_what_was_not_named() {
    let mut s = Shell::new();
    s.run(
        "create table p (id int primary key, code text unique, a int check (a > 0), b int, check (a < b), unique (a, b));
         create table c (id serial, p int references p, q int references p (id) on delete cascade, check (p > 1), foreign key (p) references p)",
    );
    let p = s.table("p");
    let names: Vec<&str> = p.indexes.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["p_pkey", "p_code_key", "p_a_b_key"]);
    let checks: Vec<&str> = p.checks.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(checks, ["p_a_check", "p_check"]);
    assert!(p.indexes.iter().all(|i| i.unique && i.is_constraint && i.state == IndexState::Public));
    let c = s.table("c");
    let keys: Vec<(&str, FkAction)> = c.foreign_keys.iter().map(|f| (f.name.as_str(), f.on_delete)).collect();
    assert_eq!(keys, [("c_p_fkey", FkAction::NoAction), ("c_q_fkey", FkAction::Cascade), ("c_p_fkey1", FkAction::NoAction)]);
    assert_eq!((c.columns[0].ty.clone(), c.columns[0].not_null), (Type::Int4, true));
    assert!(s.exists("c_id_seq"));
    assert!(s.jobs.is_empty(), "a new table needs no jobs: {:?}", s.jobs);
}

#[test]
fn a_table_without_a_primary_key_is_stored_by_a_hidden_row_id() {
    let mut s = Shell::new();
    s.run("create table h (filler char(22), rowid int)");
    let h = s.table("h");
    assert!(h.columns.last().unwrap().is_hidden);
    assert_eq!(h.public_columns().count(), 2);
    assert!(crate::catalog::is_implicit_primary(&h, h.primary()));
    assert!(!s.exists("h_pkey"), "SQL does not see its index");
}

#[test]
fn pgbenchs_schema() {
    let mut s = Shell::new();
    s.run(
        "drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers;
         create table pgbench_history(tid int,bid int,aid    int,delta int,mtime timestamp,filler char(22));
         create table pgbench_accounts(aid    int not null,bid int,abalance int,filler char(84)) with (fillfactor=100);
         truncate pgbench_accounts, pgbench_history",
    );
    assert_eq!(s.notices.len(), 4);
    assert_eq!(s.notices[0], "table \"pgbench_accounts\" does not exist, skipping");
    s.jobs.clear();
    s.run("alter table pgbench_accounts add primary key (aid)");
    let t = s.table("pgbench_accounts");
    let new = &t.indexes[1];
    assert_eq!((new.name.as_str(), new.state, new.holds_rows), ("pgbench_accounts_pkey", IndexState::DeleteOnly, true));
    assert_eq!(s.jobs, [Job::BuildPrimary { table: t.id, index: new.id }]);
}

#[test]
fn truncate_gives_new_indexes_and_forgets_the_old_ones() {
    let mut s = Shell::new();
    s.run("create table t (a int primary key, b int); create index on t (b)");
    let before: Vec<u32> = s.table("t").indexes.iter().map(|i| i.id).collect();
    s.jobs.clear();
    s.run("truncate t");
    let t = s.table("t");
    assert!(t.indexes.iter().all(|i| !before.contains(&i.id) && i.state == IndexState::Public));
    assert!(s.jobs.is_empty());
    let reached = s.catalog.reaches();
    assert!(before.iter().all(|index| !reached.contains(*index)) && t.indexes.iter().all(|i| reached.contains(i.id)));
}

#[test]
fn an_index_of_a_table_others_see_starts_delete_only() {
    let mut s = Shell::new();
    s.run("create table t (a int primary key, b int, c text)");
    s.run("create index on t (b desc, c) include (a); create unique index u on t (c nulls first)");
    let t = s.table("t");
    let index = &t.indexes[1];
    assert_eq!((index.name.as_str(), index.state), ("t_b_c_idx", IndexState::DeleteOnly));
    assert!(index.columns[0].descending && index.columns[0].nulls_first && !index.columns[1].nulls_first);
    assert!(t.indexes[2].columns[0].nulls_first && t.indexes[2].unique);
    assert_eq!(s.jobs.len(), 2);
    s.private.insert(t.id);
    s.run("create index i on t (c)");
    assert_eq!(s.table("t").indexes[3].state, IndexState::Public);
    s.run("create index if not exists i on t (c)");
    assert_eq!(s.notices, ["relation \"i\" already exists, skipping"]);
}

#[test]
fn multi_region_databases_and_homes() {
    let mut s = Shell::new();
    s.run("create database movr primary region \"eu\" regions \"us\", \"asia\"");
    s.names.database = "movr".into();
    s.run("create table a (id int primary key) locality regional by table in \"us\"; create table b (id int primary key); create table c (id int primary key) locality regional by table");
    let (a, b, c) = (s.table("a"), s.table("b"), s.table("c"));
    assert_eq!(a.locality, Locality::RegionalByTableIn("us".into()));
    assert_eq!((b.locality.clone(), c.locality.clone()), (Locality::RegionalByTable, Locality::RegionalByTable));
    assert_eq!(b.homes, c.homes, "tables with the same home and regions share a group");
    assert_ne!(a.homes, b.homes);
    s.run("create table d (id int primary key, a int) locality regional by row; create table e (id int primary key) locality global");
    s.run("create table f (id int references a) locality global; create table g (id int references d) locality regional by row");
    let (d, e, f) = (s.table("d"), s.table("e"), s.table("f"));
    assert_eq!((d.group_in("us"), d.group_in("mars")), (a.only_group(), None));
    assert_ne!(d.group_in("eu"), b.only_group(), "what follows the primary region is apart from what names it");
    assert_eq!(d.groups().len(), 3);
    assert_eq!((d.region_column(), d.columns[2].is_hidden), (Some(2), true));
    assert_eq!(e.homes, f.homes, "the GLOBAL tables of a database share a group");
    assert_ne!(e.homes, b.homes, "which is theirs alone");
    s.jobs.clear();
    s.run("alter table c set locality regional by table");
    assert_eq!((s.jobs.len(), &s.table("c").homes), (0, &c.homes), "nothing changes");
    s.run("alter table b set locality regional by row");
    let indexes = s.table("b").moving.as_ref().expect("it moves").indexes.clone();
    assert_eq!(s.jobs, [Job::Move { table: b.id, indexes, added_column: Some(1) }]);
    assert_eq!(s.fail("create index on b (id)").0, "55000");
    assert_eq!(s.fail("alter table b add column x int").0, "55000");
    assert_eq!(s.fail("truncate b").0, "55000");
    s.jobs.clear();
    let b = s.table("b");
    let ids = b.indexes.iter().map(|i| i.id).chain(b.moving.iter().flat_map(|m| m.indexes.clone()));
    let ids: Vec<u32> = ids.collect();
    let reached = s.catalog.reaches();
    assert!(ids.len() == 2 && ids.iter().all(|id| reached.contains(*id)), "the old home and the new ones");
    s.run("drop table b");
    let reached = s.catalog.reaches();
    assert!(s.jobs.is_empty() && !ids.iter().any(|id| reached.contains(*id)));
    assert_eq!(s.fail("create table x (id int) locality regional by table in \"mars\"").0, "42602");
    assert_eq!(s.fail("create database x primary region \"mars\"").1, "region \"mars\" does not exist");
    let dropped = s.fail("alter database movr drop region \"us\"");
    assert_eq!(dropped, ("2BP01".into(), "could not remove enum value \"us\" as it is the home region for table \"a\"".into()));
    s.names.database = "postgres".into();
    assert_eq!(s.fail("create table d (id int) locality regional by table in \"eu\"").0, "42P16");
}

/// The job that drops a region gives every table new homes, but for those that it is moved to.
#[test]
fn no_table_moves_while_a_region_is_dropped() {
    meridian_base::invariants::look();
    let mut s = Shell::new();
    s.run("create database movr primary region \"eu\" regions \"us\", \"asia\"");
    s.names.database = "movr".into();
    s.run("create table t (id int primary key)");
    s.run("alter database movr drop region \"us\"");
    assert_eq!(s.fail("alter table t set locality regional by row").0, "55006");
    assert_eq!(s.fail("alter table t set locality regional by table in \"asia\"").0, "55006");
    s.run("create table u (id int primary key) locality regional by row");
    assert_eq!(s.table("u").groups().len(), 3, "nothing is taken from it yet");
}

#[test]
fn errors_have_postgresqls_states_and_texts() {
    let mut s = Shell::new();
    s.run("create table t (a int primary key, b text, constraint k check (a > 0)); create table k (a int references t)");
    let cases = [
        ("create table t (a int)", "42P07", "relation \"t\" already exists"),
        ("create table x (a int, a int)", "42701", "column \"a\" specified more than once"),
        (
            "create table x (a int primary key, b int primary key)",
            "42P16",
            "multiple primary keys for table \"x\" are not allowed",
        ),
        ("create table x (a nosuch)", "42704", "type \"nosuch\" does not exist"),
        ("create table x (a int, primary key (z))", "42703", "column \"z\" named in key does not exist"),
        ("create table x (a int, unique (a, a))", "42701", "column \"a\" appears twice in a key"),
        ("create table x (a int check (z > 0))", "42703", "column \"z\" does not exist"),
        ("create table x (a int references nosuch)", "42P01", "relation \"nosuch\" does not exist"),
        ("create table x (a text references t)", "42804", "foreign key constraint \"x_a_fkey\" cannot be implemented"),
        (
            "create table x (a text references t (b))",
            "42830",
            "there is no unique constraint matching given keys for referenced table \"t\"",
        ),
        (
            "create table x (a json primary key)",
            "42704",
            "data type json has no default operator class for access method \"btree\"",
        ),
        ("create table x (a varchar(0))", "22023", "length for type varchar must be at least 1"),
        ("create table x (a int) with (nosuch = 1)", "22023", "unrecognized parameter \"nosuch\""),
        ("create table nosuch.x (a int)", "3F000", "schema \"nosuch\" does not exist"),
        ("create table x (a int default 'abc')", "22P02", "invalid input syntax for type integer: \"abc\""),
        ("create table x (a int check (a + 1))", "42804", "argument of CHECK must be type boolean, not type integer"),
        ("create table x (a int default nosuch(1))", "42883", "function nosuch(integer) does not exist"),
        ("create table x (a int default b)", "0A000", "cannot use column reference in DEFAULT expression"),
        (
            "create table x (a int null not null)",
            "42601",
            "conflicting NULL/NOT NULL declarations for column \"a\" of table \"x\"",
        ),
        ("alter table t add column b int", "42701", "column \"b\" of relation \"t\" already exists"),
        ("alter table t drop column z", "42703", "column \"z\" of relation \"t\" does not exist"),
        ("alter table t add constraint k check (a > 1)", "42710", "constraint \"k\" for relation \"t\" already exists"),
        ("alter table t add primary key (b)", "42P16", "multiple primary keys for table \"t\" are not allowed"),
        ("alter table t drop constraint z", "42704", "constraint \"z\" of relation \"t\" does not exist"),
        ("alter table t alter column a drop not null", "42P16", "column \"a\" is in a primary key"),
        (
            "alter table t alter column b type int",
            "0A000",
            "changing a column from type text to type integer is not supported yet",
        ),
        ("alter table t owner to nosuch", "42704", "role \"nosuch\" does not exist"),
        ("alter table nosuch rename to y", "42P01", "relation \"nosuch\" does not exist"),
        ("drop table nosuch", "42P01", "table \"nosuch\" does not exist"),
        ("drop table t", "2BP01", "cannot drop table t because other objects depend on it"),
        ("drop index t_pkey", "2BP01", "cannot drop index t_pkey because constraint t_pkey on table t requires it"),
        ("drop view t", "42809", "\"t\" is not a view"),
        ("drop schema public", "2BP01", "cannot drop schema public because other objects depend on it"),
        ("drop database postgres", "55006", "cannot drop the currently open database"),
        ("drop database nosuch", "3D000", "database \"nosuch\" does not exist"),
        ("create database defaultdb", "42P04", "database \"defaultdb\" already exists"),
        ("create schema public", "42P06", "schema \"public\" already exists"),
        ("create schema pg_x", "42939", "unacceptable schema name \"pg_x\""),
        ("create index on t (z)", "42703", "column \"z\" does not exist"),
        ("create index t on t (a)", "42P07", "relation \"t\" already exists"),
        ("truncate t", "0A000", "cannot truncate a table referenced in a foreign key constraint"),
        ("create sequence z minvalue 5 maxvalue 5", "22023", "MINVALUE (5) must be less than MAXVALUE (5)"),
        ("create sequence z increment 0", "22023", "INCREMENT must not be zero"),
    ];
    for (sql, state, message) in cases {
        assert_eq!(s.fail(sql), (state.to_string(), message.to_string()), "{sql}");
    }
}

#[test]
fn dropping_takes_along_what_depends_if_told_to() {
    let mut s = Shell::new();
    s.run("create table p (id serial primary key); create table c (p int references p, d int default nextval('p_id_seq'))");
    s.run("drop table p cascade");
    assert!(s.table("c").foreign_keys.is_empty());
    assert!(!s.exists("p_id_seq"), "an owned sequence goes with its table");
    assert_eq!(s.table("c").columns[1].default, None);
    s.run("create table q (id int primary key references q); drop table q");
    s.run("create schema s; create table s.t (a int primary key); create table u (a int references s.t); drop schema s cascade");
    assert!(s.table("u").foreign_keys.is_empty());
    s.run("drop database defaultdb");
    assert!(s.catalog.find_database("defaultdb").is_none());
}

#[test]
fn altering_columns() {
    let mut s = Shell::new();
    s.run("create table t (a int primary key, b varchar(10), c int, g int generated always as (c + 1) stored, check (c > 0), unique (c, b))");
    s.run("alter table t rename column c to \"Order\"");
    let t = s.table("t");
    assert_eq!(t.checks[0].expression, "\"Order\" > 0");
    assert_eq!(t.columns[3].generated.as_deref(), Some("\"Order\" + 1"));
    s.run("alter table t alter column b type text, alter b set default 'x', alter column b set not null");
    let t = s.table("t");
    assert_eq!((t.columns[1].ty.clone(), t.columns[1].default.as_deref()), (Type::Text, Some("'x'::text")));
    assert!(!t.columns[1].not_null, "only once every row was looked at");
    assert!(matches!(s.jobs[..], [Job::ValidateNotNull { ordinal: 1, added_column: false, .. }]));
    s.fail("alter table t drop column \"Order\"");
    s.run("alter table t drop column \"Order\" cascade");
    let t = s.table("t");
    assert_eq!((t.indexes.len(), t.public_columns().count()), (1, 2), "its index and the column computed from it are gone");
    assert!(t.checks.iter().all(|c| c.name == "t_b_not_null"));
}

#[test]
fn serial_and_identity_draw_from_sequences_that_follow_renames() {
    let mut s = Shell::new();
    s.run("create table t (a bigserial primary key, b int generated by default as identity (increment 5 start 10))");
    let t = s.table("t");
    let a = s.catalog.sequence(&s.names, &Name::bare("t_a_seq")).unwrap();
    let b = s.catalog.sequence(&s.names, &Name::bare("t_b_seq")).unwrap();
    assert_eq!(t.columns[0].default, Some(format!("nextval('{}'::regclass)", 16384 + a.id.0)));
    assert_eq!((a.ty.clone(), a.max, b.ty.clone(), b.start, b.increment), (Type::Int8, i64::MAX, Type::Int4, 10, 5));
    assert_eq!(t.columns[1].identity.as_ref().map(|i| (i.sequence, i.always)), Some((b.id, false)));
    assert_eq!(s.fail("drop sequence t_a_seq").0, "2BP01");
    s.run("alter sequence t_a_seq rename to other; alter sequence other restart with 7");
    let other = s.catalog.sequence(&s.names, &Name::bare("other")).unwrap();
    assert_eq!((other.id, other.restart), (a.id, 7));
    assert_ne!(other.index_id, a.index_id);
    s.run("create sequence down increment -1");
    let down = s.catalog.sequence(&s.names, &Name::bare("down")).unwrap();
    assert_eq!((down.start, down.max, down.min), (-1, -1, i64::MIN));
}

#[test]
fn long_names_are_cut_as_postgresql_cuts_them() {
    assert_eq!(object_name("t", "a_b", "key"), "t_a_b_key");
    assert_eq!(object_name("t", "", "pkey"), "t_pkey");
    let long = "x".repeat(63);
    let name = object_name(&long, &long, "key");
    assert_eq!(name.len(), 63);
    assert!(name.ends_with("_key") && name.starts_with(&"x".repeat(29)));
}

/// A unique index that is being built knows only some of the rows, and may come to nothing.
#[test]
fn foreign_keys_do_not_rest_on_an_index_that_is_being_built() {
    let mut s = Shell::new();
    s.run("create table t (k int, a int unique); create unique index tu on t (k)");
    assert_eq!(s.table("t").indexes.last().unwrap().state, IndexState::DeleteOnly, "its job has not begun");
    assert_eq!(s.fail("create table c (p int references t (k))").0, "42830");
    s.run("create table c (p int references t (a)); create unique index ta on t (a)");
    assert_eq!(s.fail("drop index t_a_key").0, "2BP01");
}
