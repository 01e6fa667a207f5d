use super::*;
use crate::session::{Session, SessionOptions};
use crate::testing::MemEnvironment;
use std::collections::BTreeSet;

/// Tables and columns that psql 15's backslash commands read.
const PSQL: &[(&str, &str)] = &[
    (
        "pg_class",
        "oid relname relnamespace relkind relowner relam relchecks relhasindex relhasrules relhastriggers relrowsecurity \
         relforcerowsecurity relispartition reltablespace reloftype relpersistence relreplident reltoastrelid reloptions relacl \
         relpartbound",
    ),
    (
        "pg_attribute",
        "attrelid attname atttypid atttypmod attnum atthasdef attnotnull attcollation attidentity attgenerated attisdropped \
         attstorage attcompression attstattarget attacl",
    ),
    ("pg_attrdef", "adbin adrelid adnum"),
    (
        "pg_index",
        "indexrelid indrelid indisprimary indisunique indisclustered indisvalid indisreplident indnkeyatts indimmediate \
         indnullsnotdistinct indpred",
    ),
    ("pg_constraint", "oid conname conrelid conindid contype condeferrable condeferred conparentid confrelid contypid"),
    ("pg_namespace", "oid nspname nspowner nspacl"),
    ("pg_am", "oid amname"),
    (
        "pg_type",
        "oid typname typnamespace typrelid typelem typarray typtype typbasetype typtypmod typcollation typnotnull typdefault",
    ),
    ("pg_collation", "oid collname"),
    ("pg_policy", "polname polpermissive polroles polqual polwithcheck polcmd polrelid"),
    ("pg_statistic_ext", "oid stxrelid stxnamespace stxname stxkind stxstattarget"),
    ("pg_publication", "oid pubname puballtables"),
    ("pg_publication_namespace", "pnpubid pnnspid"),
    ("pg_publication_rel", "prpubid prrelid prqual prattrs"),
    ("pg_trigger", "oid tgname tgenabled tgisinternal tgparentid tgrelid"),
    ("pg_inherits", "inhrelid inhparent inhseqno inhdetachpending"),
    ("pg_rewrite", "oid rulename ev_class"),
    ("pg_sequence", "seqrelid seqtypid seqstart seqmin seqmax seqincrement seqcycle seqcache"),
    ("pg_depend", "classid objid refclassid refobjid refobjsubid deptype"),
    ("pg_database", "oid datname datdba encoding datcollate datctype daticulocale datlocprovider datacl dattablespace"),
    ("pg_tablespace", "oid spcname spcowner"),
    (
        "pg_roles",
        "oid rolname rolsuper rolinherit rolcreaterole rolcreatedb rolcanlogin rolconnlimit rolvaliduntil rolreplication rolbypassrls",
    ),
    ("pg_auth_members", "roleid member"),
    ("pg_proc", "oid proname pronamespace prokind"),
    ("pg_description", "objoid classoid description"),
    ("pg_extension", "oid extname extversion extnamespace"),
    ("pg_settings", "name setting source boot_val"),
    ("pg_cast", "castsource casttarget castfunc castcontext castmethod"),
    ("pg_operator", "oid oprname oprnamespace oprkind oprleft oprright oprresult oprcode"),
    ("pg_event_trigger", "evtname evtevent evtowner evtenabled evtfoid evttags"),
    ("pg_foreign_server", "srvname srvowner srvfdw"),
    ("pg_foreign_data_wrapper", "oid fdwname"),
    ("pg_foreign_table", "ftrelid ftserver ftoptions"),
    ("pg_partitioned_table", "partrelid"),
];

#[test]
fn psqls_queries_find_every_table_and_column_they_read() {
    for (name, columns) in PSQL {
        let table = table(PG_CATALOG, name).unwrap_or_else(|| panic!("{name} is missing"));
        for column in columns.split_whitespace() {
            assert!(table.columns.iter().any(|(c, _)| *c == column), "{name}.{column} is missing");
        }
    }
}

#[test]
fn oids_of_system_tables_and_functions_are_distinct() {
    let oids: BTreeSet<u32> = tables().map(|t| t.oid).collect();
    assert_eq!(oids.len(), tables().count());
    assert!(oids.iter().all(|o| *o < 16384));
    let functions: BTreeSet<u32> = types::functions().map(|(oid, _)| oid).collect();
    assert_eq!(functions.len(), types::functions().count());
    assert!(crate::types::functions::text::RESERVED.is_sorted());
}

struct Client(Session<MemEnvironment>);

impl Client {
    fn new() -> Client {
        let env = MemEnvironment::new(&["eu", "us"]);
        let options = SessionOptions { user: "root".into(), database: "postgres".into(), ..SessionOptions::default() };
        let shared = env.shared();
        Client(Session::new(env, options, shared).unwrap())
    }
    async fn run(&mut self, sql: &str) {
        self.0.query_text(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    }
    /// The rows of the last statement, fields parted by `|`.
    async fn rows(&mut self, sql: &str) -> Vec<String> {
        let results = self.0.query_text(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        let field = |f: &Option<String>| f.clone().unwrap_or_default();
        let row = |r: &Vec<Option<String>>| r.iter().map(field).collect::<Vec<_>>().join("|");
        results.last().map(|r| r.rows.iter().map(row).collect()).unwrap_or_default()
    }
    async fn fail(&mut self, sql: &str) -> String {
        match self.0.query_text(sql).await {
            Ok(_) => panic!("{sql} succeeded"),
            Err(e) => format!("{} {}", e.sqlstate(), e.message()),
        }
    }
}

#[tokio::test]
async fn every_system_table_can_be_read() {
    let mut c = Client::new();
    c.run("create table p (id serial primary key, a int unique check (a > 0)); create table c (p int references p); create view v as select * from p").await;
    for t in tables() {
        let rows = c.rows(&format!("select * from {}.{}", t.schema, t.name)).await;
        let count = c.rows(&format!("select count(*) from {}.{}", t.schema, t.name)).await;
        assert_eq!(vec![rows.len().to_string()], count, "{}", t.name);
    }
}

#[tokio::test]
async fn definitions_read_as_postgresql_prints_them() {
    let mut c = Client::new();
    c.run("create table p (id int primary key, b text default 'x'); create table c (id serial, p int references p on delete cascade)").await;
    c.run("create index i on c (p desc, id) include (id)").await;
    let constraints = c.rows("select conname, pg_get_constraintdef(oid) from pg_constraint order by 1").await;
    assert_eq!(constraints, ["c_p_fkey|FOREIGN KEY (p) REFERENCES p(id) ON DELETE CASCADE", "p_pkey|PRIMARY KEY (id)"]);
    let index = c.rows("select pg_get_indexdef('i'::regclass)").await;
    assert_eq!(index, ["CREATE INDEX i ON public.c USING btree (p DESC, id)"]);
    let defaults = c.rows("select pg_get_expr(adbin, adrelid) from pg_attrdef order by 1").await;
    assert_eq!(defaults, ["'x'::text", "nextval('c_id_seq'::regclass)"]);
}

#[tokio::test]
async fn a_primary_key_added_later_replaces_the_row_id() {
    let mut c = Client::new();
    c.run("create table a (aid int not null, x int); insert into a select g, g % 7 from generate_series(1, 1000) g").await;
    c.run("alter table a add primary key (aid); insert into a values (1001, 1)").await;
    assert_eq!(c.rows("select count(*), sum(aid) from a").await, ["1001|501501"]);
    assert!(c.fail("insert into a values (500, 1)").await.starts_with("23505"));
    assert!(c.fail("select rowid from a").await.starts_with("42703"));
    assert!(c.rows("select relname from pg_class where relkind = 'i'").await.contains(&"a_pkey".to_string()));
}

#[tokio::test]
async fn an_index_or_constraint_that_the_rows_break_is_taken_back() {
    let mut c = Client::new();
    c.run("create table p (id int primary key); create table a (id int primary key, x int); insert into a values (1, 5), (2, 5), (3, null)").await;
    let before = c.rows("show create table a").await;
    assert_eq!(c.fail("create unique index u on a (x)").await, "23505 could not create unique index \"u\"");
    assert!(c.fail("alter table a add check (x < 5)").await.starts_with("23514"));
    assert!(c.fail("alter table a alter x set not null").await.starts_with("23502"));
    assert!(c.fail("alter table a add foreign key (x) references p").await.starts_with("23503"));
    assert!(c.fail("alter table a add y int not null").await.starts_with("23502"));
    assert_eq!(c.rows("show create table a").await, before);
    c.run("create table q (id int primary key references a); drop table q; drop table p").await;
}

#[tokio::test]
async fn what_is_dropped_or_truncated_is_forgotten() {
    let env = MemEnvironment::new(&["eu"]);
    let options = SessionOptions { user: "root".into(), database: "postgres".into(), ..SessionOptions::default() };
    let shared = env.shared();
    let mut c = Client(Session::new(env.clone(), options, shared).unwrap());
    c.run("create table a (id int primary key, x int unique); insert into a select g, g from generate_series(1, 3000) g").await;
    assert_eq!(env.key_count(), 6000);
    c.run("truncate a; insert into a values (1, 1)").await;
    c.run("create table b (id serial primary key); insert into b default values; drop table b").await;
    assert_eq!(env.key_count(), 2);
}
