use super::*;

fn one(text: &str) -> Kind {
    parse(text).unwrap().remove(0).kind
}

#[test]
fn statements_keep_their_text() {
    let all = parse(" select 1 ;\n -- comment\n  update t set a = 2 ; ; ").unwrap();
    let texts: Vec<_> = all.iter().map(|s| (s.text.as_str(), s.offset)).collect();
    assert_eq!(texts, [("select 1", 1), ("update t set a = 2", 26)]);
    assert!(parse("  -- nothing\n ;;").unwrap().is_empty());
}

#[test]
fn a_long_list_takes_linear_time() {
    let keys: Vec<String> = (0..200_000).map(|i| i.to_string()).collect();
    let started = tokio::time::Instant::now();
    parse(&format!("select 1 from t where a in ({})", keys.join(", "))).unwrap();
    // A look for the end of the list from each of its tokens took many minutes.
    assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn syntax_errors_are_postgres_ones() {
    for (text, message, position) in [
        ("select 1 +", "syntax error at end of input", 11),
        ("selec 1", "syntax error at or near \"selec\"", 1),
        ("select 1;\nselect * fro t", "syntax error at or near \"t\"", 24),
        ("create database d primary regions x", "syntax error at or near \"primary\"", 19),
        ("show regions from x", "syntax error at or near \"x\"", 19),
    ] {
        let e = parse(text).unwrap_err();
        assert_eq!((e.sqlstate(), e.message(), e.get_position()), ("42601", message, Some(position)), "{text}");
    }
    assert_eq!(parse("select 'abc").unwrap_err().message(), "unterminated quoted string at or near \"'abc\"");
}

#[test]
fn multi_region_statements() {
    assert!(matches!(
        one("create database movr primary region \"us-east1\" regions 'us-west1', europe-west1 survive zone failure"),
        Kind::CreateDatabase { regions: NewRegions { primary: Some(p), others, survive: Some(Survive::ZoneFailure), .. }, .. }
            if p == "us-east1" && others == ["us-west1", "europe-west1"]
    ));
    assert!(matches!(
        one("create table t (id int primary key) locality regional by table in \"us-west1\""),
        Kind::CreateTable { locality: Some(Locality::RegionalByTable(Some(r))), .. } if r == "us-west1"
    ));
    assert!(matches!(
        one("CREATE TABLE t (locality text) LOCALITY REGIONAL BY ROW AS r"),
        Kind::CreateTable { locality: Some(Locality::RegionalByRow(Some(r))), .. } if r == "r"
    ));
    assert!(matches!(one("create table t (locality text)"), Kind::CreateTable { locality: None, .. }));
    assert!(matches!(
        one("alter table s.t set locality global"),
        Kind::SetLocality { locality: Locality::Global, if_exists: false, .. }
    ));
    assert!(matches!(
        one("alter database d add region if not exists ap-south-1a"),
        Kind::AlterDatabase { action: AlterDatabase::AddRegion { region, if_not_exists: true }, .. } if region == "ap-south-1a"
    ));
    let action = |text: &str| match one(text) {
        Kind::AlterDatabase { action, .. } => action,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(action("alter database d placement restricted"), AlterDatabase::Placement(DataPlacement::Restricted));
    assert_eq!(action("alter database d set secondary region eu-1"), AlterDatabase::SetSecondaryRegion("eu-1".into()));
    assert_eq!(action("alter database d drop secondary region"), AlterDatabase::DropSecondaryRegion { if_exists: false });
    assert_eq!(action("alter database d survive = region failure"), AlterDatabase::Survive(Survive::RegionFailure));
    let shown = |text: &str| match one(text) {
        Kind::ShowObjects(what) => what,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(shown("show ranges from table s.t"), ShowObjects::Ranges(ShowOf::Table(vec!["s".into(), "t".into()])));
    assert_eq!(shown("show groups"), ShowObjects::Ranges(ShowOf::Cluster));
    assert_eq!(shown("show zone configuration for database d"), ShowObjects::Zones(ShowOf::Database(Some("d".into()))));
    assert_eq!(shown("show all zone configurations"), ShowObjects::Zones(ShowOf::Cluster));
    assert_eq!(shown("show survival goal"), ShowObjects::SurvivalGoal(None));
    assert!(matches!(one("show regions from database d"), Kind::ShowRegions(ShowRegions::Database(Some(_)))));
    assert!(matches!(one("alter table t add column c int"), Kind::Sql(_)));
    let s = parse("select * from t as of system time '-10s' where a = 1").unwrap().remove(0);
    assert_eq!(s.as_of.map(|a| (a.position, a.time.to_string())), Some((17, "'-10s'".to_string())));
    let begin = parse_one_statement("begin as of system time with_max_staleness('10s', true), read only").unwrap();
    assert!(matches!(begin.kind, Kind::Begin(TransactionModes { read_only: Some(true), .. })));
    assert_eq!(begin.as_of.unwrap().time.to_string(), "with_max_staleness('10s', true)");
    assert!(parse("select 1 as of system time '-1s' as of system time '-2s'").is_err());
    assert!(parse("select 1 as of system time").is_err());
}

#[test]
fn what_postgres_has_and_the_grammar_lacks() {
    assert!(matches!(
        one("begin isolation level serializable, read only deferrable"),
        Kind::Begin(TransactionModes { isolation: Some("serializable"), read_only: Some(true), deferrable: Some(true) })
    ));
    assert!(matches!(one("vacuum (full, analyze) t"), Kind::Vacuum { analyzes: true, .. }));
    assert!(matches!(one("vacuum analyze pgbench_branches"), Kind::Vacuum { analyzes: true, .. }));
    assert!(matches!(one("table t"), Kind::Sql(s) if s.to_string() == "SELECT * FROM t"));
    assert!(matches!(one("select a from t for no key update"), Kind::Sql(s) if s.to_string().ends_with("FOR UPDATE")));
    let s = parse("insert into t (id) overriding system value values (1)").unwrap().remove(0);
    assert_eq!(s.overriding, Some(Overriding::SystemValue));
}

#[test]
fn depth_is_bounded() {
    // On a stack as small as a worker's.
    let deep = |text: String| {
        let run = move || parse(&text).map(|_| ()).map_err(|e| e.sqlstate().to_string());
        #[allow(clippy::disallowed_methods)] // a test of stack depth needs a stack of known size
        std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap()
    };
    let state = Err("54001".to_string());
    assert_eq!(deep(format!("select {}1{}", "(".repeat(10_000), ")".repeat(10_000))), state);
    assert_eq!(deep(format!("select {}1", "- ".repeat(10_000))), state);
    assert_eq!(deep(format!("select 1{}", "+1".repeat(10_000))), state);
    assert_eq!(deep(format!("select {}true", "not ".repeat(10_000))), state);
    assert_eq!(deep(format!("select 1{}", " union select 1".repeat(10_000))), state);
    assert_eq!(deep(format!("select 1 where true{}", " or true".repeat(10_000))), state);
    assert_eq!(deep(format!("{}select 1", "explain ".repeat(10_000))), state);
    assert_eq!(deep(format!("select {}1{}", "case when true then ".repeat(1_000), " end".repeat(1_000))), state);
    assert_eq!(deep(format!("select 1 where true{}", " or a = 1".repeat(1_000))), Ok(()));
    assert_eq!(deep(format!("select 1 where a in ({}1)", "1,".repeat(50_000))), Ok(()));
}

#[test]
fn fingerprints_cut_out_values_and_nothing_else() {
    let f = fingerprint("select a from t where id = 15 and b = 'it''s' and c < 3.5").unwrap();
    assert_eq!(f.text, "select a from t where id = $1 and b = $2 and c < $3");
    assert_eq!(f.literals[1].text, "it's");
    assert_eq!(f.kinds(), [LiteralKind::Int4, LiteralKind::String, LiteralKind::Numeric]);
    let f = fingerprint("update t set a = a + -7 where id in (1, 2)").unwrap();
    assert_eq!(f.text, "update t set a = a + -$1 where id in ($2, $3)");
    assert_eq!(fingerprint("select a from t where b = 1 order by 1").unwrap().text, "select a from t where b = $1 order by 1");
    assert_eq!(fingerprint("select 1 from t where a1 = 2").unwrap().text, "select 1 from t where a1 = $1");
    for text in ["select 'x'", "create table t (a int)", "select a where b = $1", "select a where d = date '2020-01-01'", "begin"]
    {
        assert_eq!(fingerprint(text), None, "{text}");
    }
}

mod properties {
    use super::super::*;
    use proptest::prelude::*;

    /// Words and symbols that make almost-SQL.
    const PIECES: &[&str] = &[
        "select",
        "from",
        "where",
        "(",
        ")",
        ",",
        "*",
        "+",
        "-",
        "=",
        "'",
        "\"",
        "$1",
        "1",
        "1.5e3",
        "a",
        "t",
        ".",
        "::",
        "[",
        "]",
        "and",
        "or",
        "not",
        "in",
        "is",
        "null",
        "case",
        "when",
        "then",
        "end",
        "create",
        "table",
        "locality",
        "regional",
        "by",
        "insert",
        "into",
        "values",
        "update",
        "set",
        "delete",
        "join",
        "on",
        "left",
        "order",
        "group",
        "limit",
        "as",
        "of",
        "system",
        "time",
        "interval",
        "cast",
        "array",
        "exists",
        "between",
        "with",
        "recursive",
        "for",
        "no",
        "key",
        "share",
        ";",
        "--",
        "/*",
        "*/",
        "e'",
        "u&'",
        "$$",
        "é",
        "explain",
        "show",
        "regions",
        "alter",
        "database",
        "x'",
        "b'",
        "@>",
        "->>",
        "1e",
        "0x",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            let _ = parse(&text);
            let _ = parse_expression(&text);
            let _ = parse_data_type(&text);
            let _ = fingerprint(&text);
        }
        #[test]
        fn no_sequence_of_pieces_panics(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
            let text = pieces.join(" ");
            let _ = parse(&text);
            let _ = fingerprint(&text);
            let _ = parse_expression(&text);
        }
    }
}
