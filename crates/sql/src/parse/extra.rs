//! Statements that sqlparser does not know, or knows differently: multi-region DDL, `SHOW`,
//! `BEGIN`, `ALTER SEQUENCE`, `VACUUM`.

use super::cursor::Cursor;
use super::statement::*;
use meridian_base::{Error, Result};
use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Token;

/// `None` if it is none of them: then it is sqlparser's.
pub(super) fn parse(c: &mut Cursor) -> Result<Option<Kind>> {
    let kind = match () {
        _ if c.take(&["create", "database"]) => create_database(c)?,
        _ if c.take(&["alter", "database"]) => alter_database(c)?,
        _ if c.take(&["alter", "system"]) => return alter_system(c).map(Some),
        _ if c.take(&["alter", "sequence"]) => alter_sequence(c)?,
        _ if c.take(&["alter", "view"]) => alter_view(c)?,
        _ if c.sees(&["alter", "table"]) => return alter_table(c),
        _ if c.take(&["alter", "index"]) => alter_index(c)?,
        _ if c.sees(&["drop", "index"]) => return drop_index(c),
        _ if c.sees(&["show"]) => return show(c),
        _ if c.take(&["pause", "job"]) => Kind::ControlJob { what: Control::Pause, id: job(c)? },
        _ if c.take(&["resume", "job"]) => Kind::ControlJob { what: Control::Resume, id: job(c)? },
        _ if c.take(&["cancel", "job"]) => Kind::ControlJob { what: Control::Cancel, id: job(c)? },
        _ if c.take(&["resolve", "transaction"]) => {
            let id = c.value()?;
            let commit = c.take(&["as", "commit"]);
            if !commit {
                c.expect(&["as", "abort"])?;
            }
            Kind::ResolveTransaction { id, commit, is_unsafe: c.take(&["unsafe"]) }
        }
        _ if c.take(&["fetch"]) => Kind::Fetch(fetch(c, false)?),
        _ if c.take(&["move"]) => Kind::Fetch(fetch(c, true)?),
        _ if c.take(&["begin"]) => {
            let _ = c.take(&["transaction"]) || c.take(&["work"]);
            Kind::Begin(modes(c)?)
        }
        _ if c.take(&["start", "transaction"]) => Kind::Begin(modes(c)?),
        _ if c.take(&["set", "transaction"]) || c.take(&["set", "local", "transaction"]) => {
            if c.sees(&["snapshot"]) {
                return Ok(Some(Kind::Unsupported("SET TRANSACTION SNAPSHOT")));
            }
            Kind::SetTransaction { session: false, modes: modes(c)? }
        }
        _ if c.take(&["set", "session", "characteristics", "as", "transaction"]) => {
            Kind::SetTransaction { session: true, modes: modes(c)? }
        }
        _ if c.take(&["vacuum"]) => vacuum(c)?,
        _ if c.take(&["analyze"]) || c.take(&["analyse"]) => {
            let options = options(c, "ANALYZE", &["verbose", "skip_locked", "buffer_usage_limit"])?;
            let is_verbose = c.take(&["verbose"]) || options.iter().any(|o| o == "verbose");
            Kind::Analyze(Analyze { is_verbose, tables: analyzed(c)? })
        }
        _ if c.take(&["checkpoint"]) => Kind::Maintenance { tag: "CHECKPOINT", of: Maintained::Node },
        _ if c.take(&["reindex"]) => reindex(c)?,
        _ if c.take(&["cluster"]) => cluster(c)?,
        _ => return Ok(unsupported(c)),
    };
    if matches!(kind, Kind::Unsupported(_)) {
        return Ok(Some(kind));
    }
    c.end()?;
    Ok(Some(kind))
}

/// Statements of PostgreSQL that are understood well enough to be refused by name.
fn unsupported(c: &mut Cursor) -> Option<Kind> {
    const STATEMENTS: &[(&[&str], &str)] = &[
        (&["set", "cluster", "setting"], "SET CLUSTER SETTING"),
        (&["do"], "DO"),
        (&["prepare", "transaction"], "PREPARE TRANSACTION"),
        (&["commit", "prepared"], "COMMIT PREPARED"),
        (&["rollback", "prepared"], "ROLLBACK PREPARED"),
        (&["create", "materialized", "view"], "CREATE MATERIALIZED VIEW"),
        (&["refresh", "materialized", "view"], "REFRESH MATERIALIZED VIEW"),
        (&["create", "rule"], "CREATE RULE"),
        (&["create", "event", "trigger"], "CREATE EVENT TRIGGER"),
        (&["create", "foreign"], "foreign data"),
        (&["create", "publication"], "CREATE PUBLICATION"),
        (&["create", "subscription"], "CREATE SUBSCRIPTION"),
        (&["create", "tablespace"], "CREATE TABLESPACE"),
        (&["create", "aggregate"], "CREATE AGGREGATE"),
        (&["create", "cast"], "CREATE CAST"),
        (&["create", "statistics"], "CREATE STATISTICS"),
        (&["alter", "default", "privileges"], "ALTER DEFAULT PRIVILEGES"),
        (&["security", "label"], "SECURITY LABEL"),
        (&["import", "foreign", "schema"], "IMPORT FOREIGN SCHEMA"),
    ];
    STATEMENTS.iter().find(|(words, _)| c.sees(words)).map(|(_, name)| Kind::Unsupported(name))
}

/// `ALTER SYSTEM SET hba_rules = '…'`, `RESET hba_rules`; the same of `ident_maps`. Others are
/// refused when it is known who asks.
fn alter_system(c: &mut Cursor) -> Result<Kind> {
    let resets = c.take(&["reset"]);
    if !resets && !c.take(&["set"]) {
        return c.fail();
    }
    let name = c.name()?;
    let mut value = None;
    if !["hba_rules", "ident_maps"].contains(&name.as_str()) {
        return Ok(Kind::AlterSystem { name, value });
    }
    if !resets {
        if !c.take_token(&Token::Eq) {
            c.expect(&["to"])?;
        }
        if !c.take(&["default"]) {
            value = Some(super::roles::string(c)?);
        }
    }
    c.end()?;
    Ok(Kind::AlterSystem { name, value })
}

fn create_database(c: &mut Cursor) -> Result<Kind> {
    let if_not_exists = c.take(&["if", "not", "exists"]);
    let name = c.name()?;
    let (mut owner, mut regions) = (None, NewRegions::default());
    let _ = c.take(&["with"]);
    while !c.is_done() {
        if c.take(&["primary", "region"]) {
            let _ = c.take_token(&Token::Eq);
            regions.primary = Some(c.region()?);
        } else if c.take(&["secondary", "region"]) {
            let _ = c.take_token(&Token::Eq);
            regions.secondary = Some(c.region()?);
        } else if c.take(&["regions"]) || c.take(&["region"]) {
            let _ = c.take_token(&Token::Eq);
            regions.others.push(c.region()?);
            while c.take_token(&Token::Comma) {
                regions.others.push(c.region()?);
            }
        } else if c.sees(&["survive"]) {
            regions.survive = Some(survival(c)?);
        } else if c.sees(&["placement"]) {
            regions.placement = Some(data_placement(c)?);
        } else if c.take(&["owner"]) {
            let _ = c.take_token(&Token::Eq);
            owner = Some(c.name()?);
        } else if c.sees(&["connection", "limit"]) {
            connection_limit(c)?;
        } else {
            database_option(c)?;
        }
    }
    Ok(Kind::CreateDatabase { name, if_not_exists, owner, regions })
}

/// What PostgreSQL's databases differ in and these do not.
fn database_option(c: &mut Cursor) -> Result<()> {
    const OPTIONS: [(&str, &[&str]); 13] = [
        ("template", &["template0", "template1", "default"]),
        ("encoding", &["utf8", "utf-8", "unicode", "default", "-1", "6"]),
        ("locale", &["c", "posix", "c.utf-8", "c.utf8"]),
        ("lc_collate", &["c", "posix", "c.utf-8", "c.utf8", "default"]),
        ("lc_ctype", &["c", "posix", "c.utf-8", "c.utf8", "default"]),
        ("locale_provider", &["libc"]),
        ("icu_locale", &[]),
        ("collation_version", &[]),
        ("tablespace", &["pg_default", "default"]),
        ("allow_connections", &["true", "on", "1"]),
        ("is_template", &["false", "off", "0"]),
        ("strategy", &["wal_log", "file_copy"]),
        ("oid", &[]),
    ];
    let Some((name, meant)) = OPTIONS.into_iter().find(|(name, _)| c.take(&[name])) else { return c.fail() };
    let _ = c.take_token(&Token::Eq);
    let value = c.value()?;
    let shown = name.to_uppercase();
    match name {
        _ if meant.contains(&value.to_ascii_lowercase().as_str()) => {}
        "encoding" => return Err(Error::unsupported(format!("encoding \"{value}\" is not supported")).hint("Text is UTF8.")),
        "template" | "tablespace" | "allow_connections" | "is_template" => {
            return Err(Error::unsupported(format!("{shown} {value} is not supported")));
        }
        "oid" => c.ignored.push("OID is ignored: a database gets the next number".into()),
        _ => c.ignored.push(format!("{shown} is ignored: text is ordered by its bytes").into()),
    }
    Ok(())
}

/// A job's number.
fn job(c: &mut Cursor) -> Result<u32> {
    match u32::try_from(c.integer()?) {
        Ok(id) => Ok(id),
        Err(_) => c.fail(),
    }
}

/// `FETCH` and `MOVE` after their first word (PostgreSQL manual, reference page of `FETCH`).
fn fetch(c: &mut Cursor, is_move: bool) -> Result<Fetch> {
    // The last word is the cursor, even if it could be a direction.
    let target = match () {
        _ if c.is_last() || c.sees(&["from"]) || c.sees(&["in"]) => FetchTarget::Forward(1),
        _ if c.take(&["next"]) => FetchTarget::Forward(1),
        _ if c.take(&["prior"]) => FetchTarget::Backward(1),
        _ if c.take(&["first"]) => FetchTarget::Absolute(1),
        _ if c.take(&["last"]) => FetchTarget::Absolute(-1),
        _ if c.take(&["absolute"]) => FetchTarget::Absolute(c.integer()?),
        _ if c.take(&["relative"]) => FetchTarget::Relative(c.integer()?),
        _ if c.take(&["all"]) => FetchTarget::ForwardAll,
        _ if c.take(&["forward"]) => match () {
            _ if c.take(&["all"]) => FetchTarget::ForwardAll,
            _ if c.sees_number() => FetchTarget::Forward(c.integer()?),
            _ => FetchTarget::Forward(1),
        },
        _ if c.take(&["backward"]) => match () {
            _ if c.take(&["all"]) => FetchTarget::BackwardAll,
            _ if c.sees_number() => FetchTarget::Backward(c.integer()?),
            _ => FetchTarget::Backward(1),
        },
        _ if c.sees_number() => FetchTarget::Forward(c.integer()?),
        _ => FetchTarget::Forward(1),
    };
    let _ = c.take(&["from"]) || c.take(&["in"]);
    if c.sees(&["all"]) {
        return c.fail();
    }
    Ok(Fetch { cursor: c.name()?, target, is_move })
}

fn data_placement(c: &mut Cursor) -> Result<DataPlacement> {
    c.expect(&["placement"])?;
    let _ = c.take_token(&Token::Eq);
    match () {
        _ if c.take(&["default"]) => Ok(DataPlacement::Default),
        _ if c.take(&["restricted"]) => Ok(DataPlacement::Restricted),
        _ => c.fail(),
    }
}

fn survival(c: &mut Cursor) -> Result<Survive> {
    c.expect(&["survive"])?;
    let _ = c.take_token(&Token::Eq);
    match () {
        _ if c.take(&["zone", "failure"]) => Ok(Survive::ZoneFailure),
        _ if c.take(&["region", "failure"]) => Ok(Survive::RegionFailure),
        _ => c.fail(),
    }
}

fn alter_database(c: &mut Cursor) -> Result<Kind> {
    let name = c.name()?;
    let action = match () {
        _ if c.take(&["add", "region"]) => {
            let if_not_exists = c.take(&["if", "not", "exists"]);
            AlterDatabase::AddRegion { region: c.region()?, if_not_exists }
        }
        _ if c.take(&["drop", "region"]) => {
            let if_exists = c.take(&["if", "exists"]);
            AlterDatabase::DropRegion { region: c.region()?, if_exists }
        }
        _ if c.take(&["set", "primary", "region"]) || c.take(&["primary", "region"]) => {
            let _ = c.take_token(&Token::Eq);
            AlterDatabase::SetPrimaryRegion(c.region()?)
        }
        _ if c.take(&["set", "secondary", "region"]) || c.take(&["secondary", "region"]) => {
            let _ = c.take_token(&Token::Eq);
            AlterDatabase::SetSecondaryRegion(c.region()?)
        }
        _ if c.take(&["drop", "secondary", "region"]) => {
            AlterDatabase::DropSecondaryRegion { if_exists: c.take(&["if", "exists"]) }
        }
        _ if c.sees(&["survive"]) => AlterDatabase::Survive(survival(c)?),
        _ if c.sees(&["placement"]) => AlterDatabase::Placement(data_placement(c)?),
        _ if c.take(&["rename", "to"]) => AlterDatabase::Rename(c.name()?),
        _ if c.take(&["owner", "to"]) => AlterDatabase::Owner(c.name()?),
        _ if c.sees(&["configure", "zone"]) => return Ok(Kind::Unsupported(CONFIGURE_ZONE)),
        _ if c.sees(&["with", "connection", "limit"]) || c.sees(&["connection", "limit"]) => {
            let _ = c.take(&["with"]);
            connection_limit(c)?;
            AlterDatabase::ConnectionLimit
        }
        _ if c.take(&["reset"]) => AlterDatabase::Set { name: c.name()?, value: None },
        _ if c.take(&["set"]) => {
            let setting = c.name()?;
            if !c.take(&["to"]) && !c.take_token(&Token::Eq) {
                return c.fail();
            }
            let mut value = c.value()?;
            while c.take_token(&Token::Comma) {
                value.push_str(", ");
                value.push_str(&c.value()?);
            }
            AlterDatabase::Set { name: setting, value: Some(value) }
        }
        _ => return c.fail(),
    };
    Ok(Kind::AlterDatabase { name, action })
}

/// Zone configurations are derived, and shown; nobody sets them.
const CONFIGURE_ZONE: &str = "CONFIGURE ZONE (replicas follow regions, survival goals and localities)";

/// `ALTER TABLE … SET LOCALITY …`, `… ALTER COLUMN … SET ON UPDATE …`, `… SET [NOT] VISIBLE`,
/// `… SET ESCROW`, `… DROP ESCROW` and `… SET (escrow.name = 'value')`; any other `ALTER TABLE` is
/// sqlparser's.
fn alter_table(c: &mut Cursor) -> Result<Option<Kind>> {
    c.expect(&["alter", "table"])?;
    let if_exists = c.take(&["if", "exists"]);
    let _ = c.take(&["only"]);
    let Ok(table) = c.object_name() else { return Ok(None) };
    if c.take(&["set", "locality"]) {
        let locality = locality(c)?;
        c.end()?;
        return Ok(Some(Kind::SetLocality { table, if_exists, locality }));
    }
    if c.sees(&["configure", "zone"]) {
        return Ok(Some(Kind::Unsupported(CONFIGURE_ZONE)));
    }
    if c.sees(&["set", "schema"]) {
        return Ok(Some(Kind::Unsupported("ALTER TABLE … SET SCHEMA")));
    }
    if !c.take(&["alter"]) {
        return Ok(None);
    }
    let _ = c.take(&["column"]);
    let Ok(column) = c.name() else { return Ok(None) };
    if c.sees(&["set", "visible"]) || c.sees(&["set", "not", "visible"]) {
        let is_visible = c.take(&["set", "visible"]) || !c.take(&["set", "not", "visible"]);
        c.end()?;
        return Ok(Some(Kind::SetVisible { table, if_exists, column, is_visible }));
    }
    if c.sees(&["set", "escrow"]) || c.sees(&["drop", "escrow"]) {
        let is_split = c.take(&["set", "escrow"]) || !c.take(&["drop", "escrow"]);
        c.end()?;
        return Ok(Some(Kind::SplitColumn { table, if_exists, column, is_split }));
    }
    if c.opens(&["set"]) {
        if !c.sees(&["escrow"]) {
            return Ok(None);
        }
        let settings = escrow_settings(c)?;
        c.end()?;
        return Ok(Some(Kind::SetEscrow { table, if_exists, column, settings }));
    }
    let expression = match () {
        () if c.take(&["set", "on", "update"]) => Some(Box::new(c.expression()?)),
        () if c.take(&["drop", "on", "update"]) => None,
        () => return Ok(None),
    };
    c.end()?;
    Ok(Some(Kind::SetOnUpdate { table, if_exists, column, expression }))
}

/// `escrow.name = value, …)`.
fn escrow_settings(c: &mut Cursor) -> Result<Vec<(String, String)>> {
    let mut settings = Vec::new();
    loop {
        c.expect(&["escrow"])?;
        if !c.take_token(&Token::Period) {
            return c.fail();
        }
        let name = c.name()?;
        if !c.take_token(&Token::Eq) {
            return c.fail();
        }
        settings.push((name, c.value()?));
        if c.take_token(&Token::RParen) {
            return Ok(settings);
        }
        if !c.take_token(&Token::Comma) {
            return c.fail();
        }
    }
}

/// `ALTER INDEX` after its first words.
fn alter_index(c: &mut Cursor) -> Result<Kind> {
    let if_exists = c.take(&["if", "exists"]);
    let index = index_ref(c)?;
    let action = match () {
        () if c.take(&["rename", "to"]) => AlterIndex::Rename(c.name()?),
        () if c.take(&["visible"]) => AlterIndex::SetVisible(true),
        () if c.take(&["not", "visible"]) => AlterIndex::SetVisible(false),
        () if c.sees(&["configure", "zone"]) => return Ok(Kind::Unsupported(CONFIGURE_ZONE)),
        () if c.sees(&["set"]) || c.sees(&["reset"]) => return Ok(Kind::Unsupported("ALTER INDEX … SET")),
        () => return c.fail(),
    };
    Ok(Kind::AlterIndex { index, if_exists, action })
}

/// `DROP INDEX CONCURRENTLY`, which is what every one does, and of indexes that are named with
/// their tables; any other is sqlparser's.
fn drop_index(c: &mut Cursor) -> Result<Option<Kind>> {
    c.expect(&["drop", "index"])?;
    let is_concurrent = c.take(&["concurrently"]);
    if !is_concurrent && !c.has_token(&Token::AtSign) {
        return Ok(None);
    }
    let if_exists = c.take(&["if", "exists"]);
    let mut indexes = vec![index_ref(c)?];
    while c.take_token(&Token::Comma) {
        indexes.push(index_ref(c)?);
    }
    let cascade = c.take(&["cascade"]);
    let _ = !cascade && c.take(&["restrict"]);
    c.end()?;
    if is_concurrent && indexes.len() > 1 {
        return Err(Error::unsupported("DROP INDEX CONCURRENTLY does not support dropping multiple objects"));
    }
    if is_concurrent && cascade {
        return Err(Error::unsupported("DROP INDEX CONCURRENTLY does not support CASCADE"));
    }
    Ok(Some(Kind::DropIndexes { indexes, if_exists, cascade, is_concurrent }))
}

/// `index` or `table@index`.
fn index_ref(c: &mut Cursor) -> Result<IndexName> {
    let name = c.object_name()?;
    if !c.take_token(&Token::AtSign) {
        return Ok(IndexName { table: None, name });
    }
    Ok(IndexName { table: Some(name), name: c.object_name()? })
}

/// What follows `LOCALITY`.
pub(super) fn locality(c: &mut Cursor) -> Result<Locality> {
    if c.take(&["global"]) {
        return Ok(Locality::Global);
    }
    c.expect(&["regional"])?;
    if c.take(&["by", "row"]) {
        return Ok(Locality::RegionalByRow(if c.take(&["as"]) { Some(c.name()?) } else { None }));
    }
    let _ = c.take(&["by", "table"]);
    if !c.take(&["in"]) || c.take(&["primary", "region"]) {
        return Ok(Locality::RegionalByTable(None));
    }
    Ok(Locality::RegionalByTable(Some(c.region()?)))
}

/// `CONNECTION LIMIT` of a database.
fn connection_limit(c: &mut Cursor) -> Result<()> {
    c.expect(&["connection", "limit"])?;
    let _ = c.take_token(&Token::Eq);
    if c.integer()? != -1 {
        c.ignored.push("CONNECTION LIMIT is ignored: connections are limited for each node".into());
    }
    Ok(())
}

fn alter_view(c: &mut Cursor) -> Result<Kind> {
    let if_exists = c.take(&["if", "exists"]);
    let name = c.object_name()?;
    let action = match () {
        _ if c.take(&["rename", "to"]) => AlterView::Rename(c.name()?),
        _ if c.take(&["owner", "to"]) => AlterView::Owner(super::roles::spec(c)?),
        _ if c.sees(&["rename"]) => return Ok(Kind::Unsupported("ALTER VIEW … RENAME COLUMN")),
        _ if c.sees(&["set"]) || c.sees(&["reset"]) => return Ok(Kind::Unsupported("ALTER VIEW … SET")),
        _ if c.sees(&["alter"]) => return Ok(Kind::Unsupported("ALTER VIEW … ALTER COLUMN")),
        _ => return c.fail(),
    };
    Ok(Kind::AlterView { name, if_exists, action })
}

fn alter_sequence(c: &mut Cursor) -> Result<Kind> {
    let if_exists = c.take(&["if", "exists"]);
    let name = c.object_name()?;
    let action = match () {
        _ if c.take(&["rename", "to"]) => AlterSequence::Rename(c.name()?),
        _ if c.take(&["owner", "to"]) => AlterSequence::Owner(c.name()?),
        _ if c.take(&["set", "schema"]) => AlterSequence::SetSchema(c.name()?),
        _ => {
            let mut options = Vec::new();
            while !c.is_done() {
                options.push(sequence_option(c)?);
            }
            if options.is_empty() {
                return c.fail();
            }
            AlterSequence::Options { options }
        }
    };
    Ok(Kind::AlterSequence { name, if_exists, action })
}

fn sequence_option(c: &mut Cursor) -> Result<SequenceOption> {
    Ok(match () {
        _ if c.take(&["restart"]) => {
            let with = c.take(&["with"]);
            let number = matches!(c.peek(), Some(Token::Number(..) | Token::Minus | Token::Plus));
            SequenceOption::Restart(if with || number { Some(c.integer()?) } else { None })
        }
        _ if c.take(&["start"]) => {
            let _ = c.take(&["with"]);
            SequenceOption::Start(c.integer()?)
        }
        _ if c.take(&["increment"]) => {
            let _ = c.take(&["by"]);
            SequenceOption::Increment(c.integer()?)
        }
        _ if c.take(&["minvalue"]) => SequenceOption::Min(Some(c.integer()?)),
        _ if c.take(&["maxvalue"]) => SequenceOption::Max(Some(c.integer()?)),
        _ if c.take(&["no", "minvalue"]) => SequenceOption::Min(None),
        _ if c.take(&["no", "maxvalue"]) => SequenceOption::Max(None),
        _ if c.take(&["no", "cycle"]) => SequenceOption::Cycle(false),
        _ if c.take(&["cycle"]) => SequenceOption::Cycle(true),
        _ if c.take(&["cache"]) => SequenceOption::Cache(c.integer()?),
        _ if c.take(&["owned", "by", "none"]) => SequenceOption::OwnedBy(None),
        _ if c.take(&["owned", "by"]) => SequenceOption::OwnedBy(Some(c.path()?)),
        _ => return c.fail(),
    })
}

/// The `SHOW` statements that are not settings; those are sqlparser's.
fn show(c: &mut Cursor) -> Result<Option<Kind>> {
    // A query, once it is rewritten.
    if c.sees(&super::escrow::WORDS) {
        return Ok(None);
    }
    c.expect(&["show"])?;
    let kind = match () {
        _ if c.take(&["regions"]) => Kind::ShowRegions(show_regions(c)?),
        _ if c.take(&["locality", "from", "table"]) => Kind::ShowTableLocality(c.object_name()?),
        _ if c.take(&["partitions", "from", "table"]) => Kind::ShowPartitions(PartitionsOf::Table(c.object_name()?)),
        _ if c.take(&["partitions", "from", "index"]) => {
            let (table, index) = index_name(c)?;
            Kind::ShowPartitions(PartitionsOf::Index(table, index))
        }
        _ if c.take(&["partitions", "from", "database"]) => {
            Kind::ShowPartitions(PartitionsOf::Database(if c.is_done() { None } else { Some(c.name()?) }))
        }
        _ if c.take(&["locality"]) => Kind::ShowLocality,
        _ if c.take(&["create", "database"]) => Kind::ShowCreateDatabase(c.name()?),
        _ if c.take(&["create", "table"]) || c.take(&["create"]) => Kind::ShowCreateTable(c.object_name()?),
        _ if c.take(&["databases"]) => Kind::ShowObjects(ShowObjects::Databases),
        _ if c.take(&["schemas"]) => Kind::ShowObjects(ShowObjects::Schemas),
        _ if c.take(&["tables"]) => Kind::ShowObjects(ShowObjects::Tables),
        _ if c.take(&["sequences"]) => Kind::ShowObjects(ShowObjects::Sequences),
        _ if c.take(&["jobs"]) => Kind::ShowObjects(ShowObjects::Jobs(None)),
        _ if c.take(&["job"]) => Kind::ShowObjects(ShowObjects::Jobs(Some(job(c)?))),
        _ if c.take(&["enums"]) => Kind::ShowObjects(ShowObjects::Enums),
        _ if c.take(&["types"]) => Kind::ShowObjects(ShowObjects::Types),
        _ if c.sees(&["cluster", "setting"]) || c.sees(&["cluster", "settings"]) => {
            return Ok(Some(Kind::Unsupported("SHOW CLUSTER SETTING")));
        }
        _ if c.take(&["sessions"]) => Kind::ShowObjects(ShowObjects::Sessions),
        _ if c.take(&["transactions"]) => Kind::ShowObjects(ShowObjects::Transactions),
        _ if c.take(&["zone", "configurations"]) || c.take(&["all", "zone", "configurations"]) => {
            Kind::ShowObjects(ShowObjects::Zones(ShowOf::Cluster))
        }
        _ if c.take(&["pod"]) => Kind::ShowObjects(ShowObjects::Pod),
        _ if c.take(&["metrics"]) => Kind::ShowObjects(ShowObjects::Metrics),
        _ if c.take(&["all"]) => Kind::ShowObjects(ShowObjects::Settings),
        _ if c.take(&["columns", "from"]) => Kind::ShowObjects(ShowObjects::Columns(c.path()?)),
        _ if c.take(&["indexes", "from"]) || c.take(&["index", "from"]) => Kind::ShowObjects(ShowObjects::Indexes(c.path()?)),
        _ if c.take(&["constraints", "from"]) => Kind::ShowObjects(ShowObjects::Constraints(c.path()?)),
        _ if c.take(&["ranges"]) || c.take(&["groups"]) => Kind::ShowObjects(ShowObjects::Ranges(show_of(c)?)),
        _ if c.take(&["zone", "configuration"]) => Kind::ShowObjects(ShowObjects::Zones(show_of(c)?)),
        _ if c.take(&["survival", "goal"]) => {
            let database = if c.take(&["from", "database"]) && !c.is_done() { Some(c.name()?) } else { None };
            Kind::ShowObjects(ShowObjects::SurvivalGoal(database))
        }
        _ => return Ok(None),
    };
    c.end()?;
    Ok(Some(kind))
}

/// `[FROM | FOR] [DATABASE d | TABLE t]`, or the whole cluster.
fn show_of(c: &mut Cursor) -> Result<ShowOf> {
    if !c.take(&["from"]) && !c.take(&["for"]) {
        return Ok(ShowOf::Cluster);
    }
    Ok(match () {
        _ if c.take(&["database"]) => ShowOf::Database(if c.is_done() { None } else { Some(c.name()?) }),
        _ if c.take(&["table"]) => ShowOf::Table(c.path()?),
        // All indexes are where their table is.
        _ if c.take(&["index"]) => {
            let (table, _) = index_name(c)?;
            ShowOf::Table(table.0.iter().filter_map(|p| p.as_ident()).map(super::fold).collect())
        }
        _ => return c.fail(),
    })
}

/// `table@index`.
fn index_name(c: &mut Cursor) -> Result<(ObjectName, String)> {
    let table = c.object_name()?;
    if !c.take_token(&Token::AtSign) {
        return c.fail();
    }
    Ok((table, c.name()?))
}

fn show_regions(c: &mut Cursor) -> Result<ShowRegions> {
    if !c.take(&["from"]) {
        return Ok(ShowRegions::All);
    }
    Ok(match () {
        _ if c.take(&["cluster"]) => ShowRegions::Cluster,
        _ if c.take(&["all", "databases"]) => ShowRegions::AllDatabases,
        _ if c.take(&["database"]) => ShowRegions::Database(if c.is_done() { None } else { Some(c.name()?) }),
        _ => return c.fail(),
    })
}

fn modes(c: &mut Cursor) -> Result<TransactionModes> {
    let mut modes = TransactionModes::default();
    while !c.is_done() {
        match () {
            _ if c.take(&["isolation", "level"]) => {
                modes.isolation = Some(match () {
                    _ if c.take(&["serializable"]) => "serializable",
                    _ if c.take(&["repeatable", "read"]) => "repeatable read",
                    _ if c.take(&["read", "committed"]) => "read committed",
                    _ if c.take(&["read", "uncommitted"]) => "read uncommitted",
                    _ => return c.fail(),
                });
            }
            _ if c.take(&["read", "only"]) => modes.read_only = Some(true),
            _ if c.take(&["read", "write"]) => modes.read_only = Some(false),
            _ if c.take(&["not", "deferrable"]) => modes.deferrable = Some(false),
            _ if c.take(&["deferrable"]) => modes.deferrable = Some(true),
            _ => return c.fail(),
        }
        let _ = c.take_token(&Token::Comma);
    }
    Ok(modes)
}

/// Options in parentheses, those that are off left out; 42601 for others than these.
fn options(c: &mut Cursor, of: &str, known: &[&str]) -> Result<Vec<String>> {
    let mut on = Vec::new();
    if !c.take_token(&Token::LParen) {
        return Ok(on);
    }
    loop {
        let name = c.name()?;
        if !known.contains(&name.as_str()) {
            return Err(Error::sql("42601", format!("unrecognized {of} option \"{name}\"")));
        }
        let is_off = match c.peek() {
            Some(Token::Comma | Token::RParen) => false,
            _ => matches!(c.value()?.to_ascii_lowercase().as_str(), "false" | "off" | "0"),
        };
        if !is_off {
            on.push(name);
        }
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    if !c.take_token(&Token::RParen) {
        return c.fail();
    }
    Ok(on)
}

/// What `VACUUM` does besides is done without being asked.
fn vacuum(c: &mut Cursor) -> Result<Kind> {
    const OPTIONS: [&str; 12] = [
        "full",
        "freeze",
        "verbose",
        "analyze",
        "disable_page_skipping",
        "skip_locked",
        "index_cleanup",
        "process_toast",
        "process_main",
        "truncate",
        "parallel",
        "buffer_usage_limit",
    ];
    let options = options(c, "VACUUM", &OPTIONS)?;
    let said = |option: &str| options.iter().any(|o| o == option);
    let is_full = c.take(&["full"]) || said("full");
    let is_frozen = c.take(&["freeze"]) || said("freeze");
    if is_full || is_frozen {
        c.ignored.push("FULL and FREEZE are ignored: old versions and free space are collected without being asked".into());
    }
    let is_verbose = c.take(&["verbose"]) || said("verbose");
    let is_asked = c.take(&["analyze"]) || c.take(&["analyse"]) || said("analyze");
    let tables = analyzed(c)?;
    if !is_asked && tables.iter().any(|(_, columns)| !columns.is_empty()) {
        return Err(Error::unsupported("ANALYZE option must be specified when a column list is provided"));
    }
    Ok(Kind::Vacuum { of: Analyze { is_verbose, tables }, analyzes: is_asked })
}

/// `REINDEX`: what it names has to be there.
fn reindex(c: &mut Cursor) -> Result<Kind> {
    let _ = options(c, "REINDEX", &["concurrently", "tablespace", "verbose"])?;
    let kind = ["index", "table", "schema", "database", "system"].into_iter().find(|kind| c.take(&[kind]));
    let _ = c.take(&["concurrently"]);
    let of = match kind {
        Some("index") => Maintained::Index(IndexName { table: None, name: c.object_name()? }),
        Some("table") => Maintained::Table(c.object_name()?),
        Some("schema") => Maintained::Schema(c.name()?),
        Some(_) if c.is_done() => Maintained::Database(None),
        Some(_) => Maintained::Database(Some(c.name()?)),
        None => return c.fail(),
    };
    Ok(Kind::Maintenance { tag: "REINDEX", of })
}

/// `CLUSTER`, the same: `[table [USING index]]`, or `index ON table`.
fn cluster(c: &mut Cursor) -> Result<Kind> {
    let _ = options(c, "CLUSTER", &["verbose"])?;
    let _ = c.take(&["verbose"]);
    if c.is_done() {
        return Ok(Kind::Maintenance { tag: "CLUSTER", of: Maintained::OwnTables });
    }
    let first = c.object_name()?;
    let of = if c.take(&["on"]) {
        Maintained::Index(IndexName { table: Some(c.object_name()?), name: first })
    } else if c.take(&["using"]) {
        Maintained::Index(IndexName { table: Some(first), name: c.object_name()? })
    } else {
        Maintained::Table(first)
    };
    Ok(Kind::Maintenance { tag: "CLUSTER", of })
}

/// Tables, with columns if some are named.
fn analyzed(c: &mut Cursor) -> Result<Vec<(ObjectName, Vec<String>)>> {
    let mut tables = Vec::new();
    if c.is_done() {
        return Ok(tables);
    }
    loop {
        let table = c.object_name()?;
        let mut columns = Vec::new();
        if c.take_token(&Token::LParen) {
            columns.push(c.name()?);
            while c.take_token(&Token::Comma) {
                columns.push(c.name()?);
            }
            if !c.take_token(&Token::RParen) {
                return c.fail();
            }
        }
        tables.push((table, columns));
        if !c.take_token(&Token::Comma) {
            return Ok(tables);
        }
    }
}
