//! What a statement is once it is parsed: sqlparser's AST, or one of the statements it does not
//! know.

use super::role_statement::{RoleSpec, RoleStatement};
use sqlparser::ast;
use std::borrow::Cow;

/// One statement of a query string.
#[derive(Clone, Debug)]
pub struct Statement {
    pub kind: Kind,
    /// Its own text: without the semicolon and what surrounds it.
    pub text: String,
    /// Byte offset of `text` in the query string it came from, from 0 on. Error positions are
    /// relative to `text`.
    pub offset: u32,
    /// `AS OF SYSTEM TIME` was said.
    pub as_of: Option<AsOfSystemTime>,
    /// `OVERRIDING SYSTEM VALUE` or `OVERRIDING USER VALUE` of an `INSERT`.
    pub overriding: Option<Overriding>,
    pub row_locks: RowLocks,
    /// What it says that means nothing here: a notice each.
    pub ignored: Vec<Cow<'static, str>>,
    /// Its names of more than 63 bytes, in full: a notice each.
    pub truncated: Vec<String>,
}

impl Statement {
    /// The name of the log event for an administrative statement; `None` for any other statement.
    pub fn event(&self) -> Option<&'static str> {
        use ast::Statement as S;
        let gives_away = |action: &ast::AlterTableOperation| matches!(action, ast::AlterTableOperation::OwnerTo { .. });
        match &self.kind {
            Kind::Role(_) | Kind::AlterSystem { .. } => Some("role_changed"),
            Kind::ControlJob { .. } => Some("job_controlled"),
            Kind::ResolveTransaction { .. } => Some("transaction_resolved"),
            Kind::AlterDatabase { action: AlterDatabase::Owner(_), .. }
            | Kind::CreateDatabase { owner: Some(_), .. }
            | Kind::AlterView { action: AlterView::Owner(_), .. }
            | Kind::AlterSequence { action: AlterSequence::Owner(_), .. } => Some("owner_changed"),
            Kind::AlterDatabase { action, .. } if action.is_about_regions() => Some("regions_changed"),
            Kind::Sql(sql) => match &**sql {
                S::AlterTable(alter) => alter.operations.iter().any(gives_away).then_some("owner_changed"),
                S::AlterSchema(alter) => (alter.operations.iter())
                    .any(|o| matches!(o, ast::AlterSchemaOperation::OwnerTo { .. }))
                    .then_some("owner_changed"),
                S::CreateSchema { schema_name, .. } => {
                    (!matches!(schema_name, ast::SchemaName::Simple(_))).then_some("owner_changed")
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Which strengths of row locks a statement names, where sqlparser reads `FOR UPDATE` and `FOR
/// SHARE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowLocks {
    /// All of its `FOR UPDATE` are `FOR NO KEY UPDATE`.
    pub keep_keys: bool,
    /// All of its `FOR SHARE` are `FOR KEY SHARE`.
    pub share_keys: bool,
}

/// The time of a statement or a transaction that reads the past.
#[derive(Clone, Debug)]
pub struct AsOfSystemTime {
    /// Where in the statement's text, from 1 on.
    pub position: u32,
    pub time: Box<ast::Expr>,
}

/// What an `INSERT` does about identity columns that it gives values for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    /// They are taken even for `GENERATED ALWAYS`.
    SystemValue,
    /// They are ignored.
    UserValue,
}

/// The statement proper.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Everything sqlparser knows and that carries no extra clause.
    Sql(Box<ast::Statement>),
    /// `CREATE TABLE`, with its locality if it has one, and the indexes among its elements.
    CreateTable { table: Box<ast::CreateTable>, locality: Option<Locality>, indexes: Vec<NewIndex> },
    /// `CREATE INDEX`.
    CreateIndex(Box<NewIndex>),
    /// `ALTER INDEX name …` where PostgreSQL has no such action or no such name.
    AlterIndex { index: IndexName, if_exists: bool, action: AlterIndex },
    /// `DROP INDEX table@index, …`.
    DropIndexes { indexes: Vec<IndexName>, if_exists: bool, cascade: bool, is_concurrent: bool },
    /// `CREATE DATABASE name [PRIMARY REGION r] [REGIONS r, …] [SURVIVE …] [PLACEMENT …] [SECONDARY
    /// REGION r]`; other options (`OWNER`, `ENCODING`, …) are accepted.
    CreateDatabase { name: String, if_not_exists: bool, owner: Option<String>, regions: NewRegions },
    /// `ALTER DATABASE name …`.
    AlterDatabase { name: String, action: AlterDatabase },
    /// `ALTER TABLE name SET LOCALITY …`.
    SetLocality { table: ast::ObjectName, if_exists: bool, locality: Locality },
    /// `ALTER TABLE name ALTER COLUMN column SET ON UPDATE expression`, or without an expression `…
    /// DROP ON UPDATE`.
    SetOnUpdate { table: ast::ObjectName, if_exists: bool, column: String, expression: Option<Box<ast::Expr>> },
    /// `ALTER TABLE name ALTER COLUMN column SET [NOT] VISIBLE`.
    SetVisible { table: ast::ObjectName, if_exists: bool, column: String, is_visible: bool },
    /// `ALTER TABLE name ALTER COLUMN column SET ESCROW`, `… DROP ESCROW`.
    SplitColumn { table: ast::ObjectName, if_exists: bool, column: String, is_split: bool },
    /// `ALTER TABLE name ALTER COLUMN column SET (escrow.name = 'value', …)`.
    SetEscrow { table: ast::ObjectName, if_exists: bool, column: String, settings: Vec<(String, String)> },
    /// `ALTER SYSTEM SET name = value`; `None`: the default.
    AlterSystem { name: String, value: Option<String> },
    /// Roles and privileges.
    Role(Box<RoleStatement>),
    /// `ALTER SEQUENCE name …`.
    AlterSequence { name: ast::ObjectName, if_exists: bool, action: AlterSequence },
    /// `ALTER VIEW name …`.
    AlterView { name: ast::ObjectName, if_exists: bool, action: AlterView },
    /// `SHOW REGIONS …`.
    ShowRegions(ShowRegions),
    /// `SHOW LOCALITY`: where this node is.
    ShowLocality,
    /// `SHOW LOCALITY FROM TABLE name`.
    ShowTableLocality(ast::ObjectName),
    /// `SHOW PARTITIONS FROM TABLE name`, or of an index or a database.
    ShowPartitions(PartitionsOf),
    /// `SHOW CREATE TABLE t`.
    ShowCreateTable(ast::ObjectName),
    /// `SHOW CREATE DATABASE d`.
    ShowCreateDatabase(String),
    /// `SHOW TABLES`, `SHOW DATABASES`, `SHOW SCHEMAS`, `SHOW SEQUENCES`, `SHOW ALL`, ….
    ShowObjects(ShowObjects),
    /// `PAUSE JOB`, `RESUME JOB`, `CANCEL JOB`, with the job's number.
    ControlJob { what: Control, id: u32 },
    /// `RESOLVE TRANSACTION 'id' AS COMMIT | ABORT [UNSAFE]`: how a transaction in doubt ends.
    ResolveTransaction { id: String, commit: bool, is_unsafe: bool },
    /// `FETCH` and `MOVE`.
    Fetch(Fetch),
    /// `BEGIN` and `START TRANSACTION`.
    Begin(TransactionModes),
    /// `SET TRANSACTION …` (`session`: `SET SESSION CHARACTERISTICS AS TRANSACTION …`).
    SetTransaction { session: bool, modes: TransactionModes },
    /// `VACUUM` in all its forms: nothing to do but to `ANALYZE`, if it says so.
    Vacuum { of: Analyze, analyzes: bool },
    /// `ANALYZE` in all its forms.
    Analyze(Analyze),
    /// `CHECKPOINT`, `CLUSTER`, `REINDEX`: maintenance that has no meaning here.
    Maintenance { tag: &'static str, of: Maintained },
    /// Recognised and refused with 0A000: what it is called.
    Unsupported(&'static str),
    /// Nothing but white space and comments.
    Empty,
}

/// What maintenance is asked for, by name.
#[derive(Clone, Debug)]
pub enum Maintained {
    /// A checkpoint.
    Node,
    Table(ast::ObjectName),
    Index(IndexName),
    /// All tables that the user owns.
    OwnTables,
    Schema(String),
    /// `None`: the current database.
    Database(Option<String>),
}

/// Of which tables statistics are asked for, and of which of their columns: an empty list says all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Analyze {
    pub is_verbose: bool,
    pub tables: Vec<(ast::ObjectName, Vec<String>)>,
}

/// `FETCH` or, if its rows are only passed, `MOVE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    pub cursor: String,
    pub target: FetchTarget,
    pub is_move: bool,
}

/// Where a cursor goes; a negative number goes the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchTarget {
    /// So many rows on.
    Forward(i64),
    /// To the end.
    ForwardAll,
    /// So many rows back.
    Backward(i64),
    /// Back to the start.
    BackwardAll,
    /// To a row by its number, from the end if negative.
    Absolute(i64),
    /// To the row so many rows on.
    Relative(i64),
}

/// An index that is to be made.
#[derive(Clone, Debug)]
pub struct NewIndex {
    pub create: ast::CreateIndex,
    /// It was not said to be `NOT VISIBLE`.
    pub is_visible: bool,
}

/// An index by its own name, or by that of its table and its own in CockroachDB's `table@index`.
#[derive(Clone, Debug)]
pub struct IndexName {
    pub table: Option<ast::ObjectName>,
    pub name: ast::ObjectName,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterIndex {
    Rename(String),
    SetVisible(bool),
}

/// Where a table's rows live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locality {
    /// `REGIONAL BY TABLE [IN PRIMARY REGION]` without a region, or in a named one.
    RegionalByTable(Option<String>),
    /// `REGIONAL BY ROW [AS column]`: refused by whoever binds it.
    RegionalByRow(Option<String>),
    /// `GLOBAL`: refused by whoever binds it.
    Global,
}

/// What a database survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survive {
    ZoneFailure,
    RegionFailure,
}

/// `PLACEMENT …`: whether data may have copies outside its home region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPlacement {
    Default,
    Restricted,
}

/// What `CREATE DATABASE` says about regions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewRegions {
    pub primary: Option<String>,
    pub others: Vec<String>,
    pub survive: Option<Survive>,
    pub placement: Option<DataPlacement>,
    pub secondary: Option<String>,
}

/// See [`Kind::AlterDatabase`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterDatabase {
    AddRegion {
        region: String,
        if_not_exists: bool,
    },
    DropRegion {
        region: String,
        if_exists: bool,
    },
    SetPrimaryRegion(String),
    SetSecondaryRegion(String),
    DropSecondaryRegion {
        if_exists: bool,
    },
    Survive(Survive),
    Placement(DataPlacement),
    Rename(String),
    Owner(String),
    /// `CONNECTION LIMIT`: there is none, and the statement says so.
    ConnectionLimit,
    /// `SET name = value`, `RESET name`: accepted by whoever keeps per-database settings.
    Set {
        name: String,
        value: Option<String>,
    },
}

impl AlterDatabase {
    /// Whether it moves replicas.
    pub fn is_about_regions(&self) -> bool {
        !matches!(self, AlterDatabase::Rename(_) | AlterDatabase::Owner(_) | AlterDatabase::Set { .. })
    }
}

/// See [`Kind::AlterView`].
#[derive(Clone, Debug)]
pub enum AlterView {
    Rename(String),
    Owner(RoleSpec),
}

/// See [`Kind::AlterSequence`].
#[derive(Clone, Debug)]
pub enum AlterSequence {
    Options { options: Vec<SequenceOption> },
    Rename(String),
    Owner(String),
    SetSchema(String),
}

/// An option of `ALTER SEQUENCE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequenceOption {
    Restart(Option<i64>),
    Start(i64),
    Increment(i64),
    Min(Option<i64>),
    Max(Option<i64>),
    Cycle(bool),
    /// Accepted: sessions draw blocks of their own choosing.
    Cache(i64),
    /// `OWNED BY table.column`, or `NONE`.
    OwnedBy(Option<Vec<String>>),
}

/// See [`Kind::ShowRegions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShowRegions {
    /// `SHOW REGIONS`: of the cluster, with the databases that use them.
    All,
    Cluster,
    /// Of a database, or of the current one.
    Database(Option<String>),
    /// `FROM ALL DATABASES`.
    AllDatabases,
}

/// See [`Kind::ShowObjects`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShowObjects {
    Databases,
    Schemas,
    Tables,
    Sequences,
    /// `SHOW COLUMNS FROM t`.
    Columns(Vec<String>),
    /// `SHOW INDEXES FROM t`.
    Indexes(Vec<String>),
    /// `SHOW CONSTRAINTS FROM t`.
    Constraints(Vec<String>),
    /// `SHOW ALL`: every setting.
    Settings,
    /// `SHOW RANGES`, or `SHOW GROUPS`: where replicas are.
    Ranges(ShowOf),
    /// `SHOW ZONE CONFIGURATIONS`: what follows from regions and localities, in CockroachDB's
    /// words.
    Zones(ShowOf),
    /// `SHOW SURVIVAL GOAL [FROM DATABASE d]`.
    SurvivalGoal(Option<String>),
    /// `SHOW JOBS`, or one of them.
    Jobs(Option<u32>),
    /// `SHOW ENUMS`.
    Enums,
    /// `SHOW TYPES`.
    Types,
    Sessions,
    /// `SHOW TRANSACTIONS`: those over several groups that are prepared.
    Transactions,
    /// `SHOW METRICS`: what the node has counted.
    Metrics,
    /// `SHOW POD`: the hosts of the pods that the node is in.
    Pod,
}

/// See [`Kind::ShowPartitions`].
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionsOf {
    Table(ast::ObjectName),
    Index(ast::ObjectName, String),
    /// A database, or the current one.
    Database(Option<String>),
}

/// What a `SHOW` is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShowOf {
    /// The whole cluster.
    Cluster,
    /// A database, or the current one.
    Database(Option<String>),
    Table(Vec<String>),
}

/// The modes of `BEGIN` and `SET TRANSACTION`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionModes {
    /// As it is shown: `serializable`, `read committed`, ….
    pub isolation: Option<&'static str>,
    pub read_only: Option<bool>,
    pub deferrable: Option<bool>,
}

/// What a client may do to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    Pause,
    Resume,
    Cancel,
}
