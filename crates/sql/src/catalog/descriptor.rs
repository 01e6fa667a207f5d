//! Descriptors: what a node knows of a database, a schema, a table, a group. Stored as they are, so
//! every change of a shape here is a change of the data directory's format.

use super::constraint::{Check, ForeignKey};
use super::escrow::{EscrowColumn, Shadow};
use super::ids::{ROLES, ROOT_ID};
use super::job::JobRecord;
use super::login::LoginRules;
use super::privileges::{Access, ObjectKind};
use super::roles::Role;
use crate::statistics::StoredStatistics;
use crate::types::Type;
use meridian_base::{ColumnMask, DescriptorId, Error, GroupId, NodeId, envelope, escrow};
use meridian_placement::Survival;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The parent of databases, groups and jobs.
pub const ROOT: DescriptorId = DescriptorId(0);

/// Anything the catalog holds.
#[allow(clippy::large_enum_variant, reason = "a catalog shares its descriptors, each behind a pointer of its own")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Descriptor {
    Database(Database),
    Schema(Schema),
    Table(Table),
    View(View),
    Sequence(Sequence),
    Group(Group),
    Job(JobRecord),
    /// A group that holds no rows any more. It still answers for the transactions that it voted in,
    /// and is deleted when no other group names it ([`crate::jobs::doomed`]). Nothing is homed
    /// there.
    Leaving(Group),
    /// What is known about the rows of a table.
    Statistics(StoredStatistics),
    Role(Role),
    /// How clients log in.
    LoginRules(LoginRules),
}

impl Descriptor {
    pub fn id(&self) -> DescriptorId {
        match self {
            Descriptor::Database(d) => d.id,
            Descriptor::Schema(d) => d.id,
            Descriptor::Table(d) => d.id,
            Descriptor::View(d) => d.id,
            Descriptor::Sequence(d) => d.id,
            Descriptor::Group(d) | Descriptor::Leaving(d) => DescriptorId(d.id.0),
            Descriptor::Job(d) => d.id,
            Descriptor::Statistics(d) => d.id,
            Descriptor::Role(d) => d.id,
            Descriptor::LoginRules(d) => d.id,
        }
    }
    /// What it is found under; groups, jobs and statistics have no name.
    pub fn name(&self) -> Option<&str> {
        match self {
            Descriptor::Database(d) => Some(&d.name),
            Descriptor::Schema(d) => Some(&d.name),
            Descriptor::Table(d) => Some(&d.name),
            Descriptor::View(d) => Some(&d.name),
            Descriptor::Sequence(d) => Some(&d.name),
            Descriptor::Role(d) => Some(&d.name),
            Descriptor::Group(_) | Descriptor::Job(_) | Descriptor::Leaving(_) | Descriptor::Statistics(_) => None,
            Descriptor::LoginRules(_) => None,
        }
    }
    pub fn parent(&self) -> DescriptorId {
        match self {
            Descriptor::Database(_) | Descriptor::Group(_) | Descriptor::Job(_) => ROOT,
            Descriptor::Leaving(_) | Descriptor::Statistics(_) | Descriptor::LoginRules(_) => ROOT,
            Descriptor::Role(_) => ROLES,
            Descriptor::Schema(d) => d.database,
            Descriptor::Table(d) => d.schema,
            Descriptor::View(d) => d.schema,
            Descriptor::Sequence(d) => d.schema,
        }
    }
    /// Its owner and who may do what with it.
    pub fn access(&self) -> Option<&Access> {
        match self {
            Descriptor::Database(d) => Some(&d.access),
            Descriptor::Schema(d) => Some(d.access()),
            Descriptor::Table(d) => Some(&d.access),
            Descriptor::View(d) => Some(&d.access),
            Descriptor::Sequence(d) => Some(&d.access),
            _ => None,
        }
    }
    /// The same, to be changed.
    pub fn access_mut(&mut self) -> Option<&mut Access> {
        match self {
            Descriptor::Database(d) => Some(&mut d.access),
            Descriptor::Schema(d) => Some(d.access_mut()),
            Descriptor::Table(d) => Some(&mut d.access),
            Descriptor::View(d) => Some(&mut d.access),
            Descriptor::Sequence(d) => Some(&mut d.access),
            _ => None,
        }
    }
    /// A group that has replicas, whether rows are homed there or it is leaving.
    pub fn replicated(&self) -> Option<&Group> {
        match self {
            Descriptor::Group(group) | Descriptor::Leaving(group) => Some(group),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Database {
    pub id: DescriptorId,
    pub name: String,
    /// Where its tables live unless they say otherwise. Without `PRIMARY REGION`: the region it was
    /// created from.
    pub primary_region: String,
    /// Whether `PRIMARY REGION` was declared; a database without it has one region and no
    /// localities.
    pub is_multi_region: bool,
    /// All its regions, the primary one included, sorted.
    pub regions: Vec<String>,
    /// Where primaries go if their home region is lost.
    pub secondary_region: Option<String>,
    /// Those of its regions that are being dropped: nothing new may be homed there.
    pub dropping: Vec<String>,
    /// What its data survives, and whether it stays at home.
    pub survival: Survival,
    /// The name of the owner when it was made; see `access`.
    pub owner: String,
    pub comment: Option<String>,
    #[serde(default)]
    pub access: Access,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    pub id: DescriptorId,
    pub database: DescriptorId,
    pub name: String,
    /// The name of the owner when it was made; see `access`.
    pub owner: String,
    pub comment: Option<String>,
    #[serde(default)]
    access: Option<Access>,
}

impl Schema {
    pub fn new(id: DescriptorId, database: DescriptorId, name: &str, owner: &str, access: Access) -> Schema {
        Schema { id, database, name: name.into(), owner: owner.into(), comment: None, access: Some(access) }
    }
    /// One from before there were roles is root's, and `public` is as it is in a new database.
    pub fn access(&self) -> &Access {
        static OF_PUBLIC: LazyLock<Access> = LazyLock::new(Access::of_public_schema);
        static OF_ROOT: LazyLock<Access> = LazyLock::new(|| Access::of(ROOT_ID));
        match &self.access {
            Some(access) => access,
            None if self.name == "public" => &OF_PUBLIC,
            None => &OF_ROOT,
        }
    }
    pub fn access_mut(&mut self) -> &mut Access {
        let present = self.access().clone();
        self.access.get_or_insert(present)
    }
}

/// Where a group's replicas belong. Its voters are chosen by `placement` and kept by the group's
/// primary.
///
/// A group holds rows of one database, so that changing the database's regions or survival goal
/// changes its groups in place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub id: GroupId,
    pub database: DescriptorId,
    /// The home region.
    pub home: String,
    pub kind: GroupKind,
    /// The regions of its database, sorted.
    pub regions: Vec<String>,
    pub survival: Survival,
    /// See [`Database::secondary_region`].
    pub secondary: Option<String>,
    /// The voters it starts with: they, and only they, may initialise its log. Filled in by the
    /// catalog when the group is made.
    pub initial_voters: Vec<NodeId>,
}

/// Which of its database's rows a group holds. They are apart even where they have the same home
/// now, so that the primary region changes without a row being moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupKind {
    /// Those of tables and partitions that name the region.
    Home,
    /// What lives in the primary region, wherever that is; `home` follows.
    Primary,
    /// The GLOBAL tables: in the primary region, with a replica in every region, whatever the
    /// placement policy.
    Global,
}

impl GroupKind {
    /// Whether its home is the primary region of its database, wherever that is.
    pub fn follows_primary(self) -> bool {
        matches!(self, GroupKind::Primary | GroupKind::Global)
    }
}

/// The default of a hidden row id.
pub const ROW_ID_DEFAULT: &str = "unique_rowid()";

impl Column {
    /// `crdb_region`, where nobody has declared it.
    pub fn is_hidden_region(&self) -> bool {
        self.is_hidden && self.ty == Type::Region
    }
    /// The primary key of a table without one.
    pub fn is_row_id(&self) -> bool {
        self.is_hidden && self.default.as_deref() == Some(ROW_ID_DEFAULT)
    }
}

impl Group {
    /// Whether a replica is placed in a region, so that the past can be read there.
    pub fn has_replica_in(&self, region: &str) -> bool {
        self.home == region || (self.placed_as() != Survival::Restricted && self.regions.iter().any(|r| r == region))
    }
    /// The policy its replicas are placed by: GLOBAL tables have theirs everywhere, whatever is
    /// restricted.
    pub fn placed_as(&self) -> Survival {
        match (self.kind, self.survival) {
            (GroupKind::Global, Survival::Restricted) => Survival::Zone,
            (_, survival) => survival,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub id: DescriptorId,
    pub schema: DescriptorId,
    pub name: String,
    /// Where its rows and the entries of all its indexes live: see [`Table::groups`].
    pub homes: Homes,
    pub locality: Locality,
    /// While its locality changes: where else its rows are written.
    pub moving: Option<Move>,
    /// In order of creation; a dropped column stays, marked, so that ordinals and stored rows keep
    /// their meaning.
    pub columns: Vec<Column>,
    /// The first one is the primary index.
    pub indexes: Vec<Index>,
    pub checks: Vec<Check>,
    pub foreign_keys: Vec<ForeignKey>,
    /// The foreign key whose parent tells the region of rows that are inserted without one.
    pub infers_region_by: Option<DescriptorId>,
    /// Tables whose foreign keys point here: (table, constraint).
    pub referenced_by: Vec<(DescriptorId, DescriptorId)>,
    /// The name of the owner when it was made; see `access`.
    pub owner: String,
    pub comment: Option<String>,
    #[serde(default, with = "envelope::each")]
    pub escrow: Vec<EscrowColumn>,
    /// Columns that become escrow columns, or cease to be.
    #[serde(default, with = "envelope::each")]
    pub shadows: Vec<Shadow>,
    #[serde(default)]
    pub access: Access,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Locality {
    /// In the primary region of its database.
    RegionalByTable,
    /// In a named region.
    RegionalByTableIn(String),
    /// Each row in the region that a column of it names, of type `crdb_internal_region`. The column
    /// is hidden unless it was declared.
    RegionalByRow { column: u32 },
    /// In all regions of its database.
    Global,
}

/// The groups of a table.
///
/// A row and its index entries are in one group, that of the row's home region, so keys need no
/// region in front: the same key may stand for different entries in different groups, never for
/// different rows of the same table (unique keys are unique over all of them).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Homes {
    One(GroupId),
    /// `REGIONAL BY ROW`: one for each region of the database, sorted by region.
    ByRow(Vec<Partition>),
}

/// The other homes of a table that is changing its locality (`jobs::move_table`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    pub homes: Homes,
    pub locality: Locality,
    /// The ids of the table's indexes there, in their order.
    pub indexes: Vec<u32>,
    pub state: MoveState,
}

/// The steps of a change of locality; two adjacent ones may be in use at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MoveState {
    /// Deletes reach the other homes, nothing else.
    DeleteOnly,
    /// Every write reaches them; no statement reads there. Being filled.
    WriteOnly,
    /// They are the ones it has left: a transaction may still read there, so every write reaches
    /// them.
    Leaving,
}

/// The rows of a table that have one home region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partition {
    pub region: String,
    pub group: GroupId,
    /// The region is being dropped: no row may be written into it.
    pub is_closing: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    pub ty: Type,
    pub not_null: bool,
    /// SQL text of the default.
    pub default: Option<String>,
    /// SQL text of a stored generated column.
    pub generated: Option<String>,
    /// SQL text of what it gets when its row is updated and no value is given for it.
    pub on_update: Option<String>,
    /// `GENERATED … AS IDENTITY`: the sequence behind it.
    pub identity: Option<Identity>,
    /// The value of rows that were stored before the column was added: text form.
    pub missing: Option<String>,
    /// `NOT VISIBLE`: only who names it sees it, neither `*` nor an `INSERT` without a list of
    /// columns. So are the row id of a table without a primary key, and the region of a row where
    /// nobody has declared it.
    pub is_hidden: bool,
    pub state: ColumnState,
    pub comment: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    pub sequence: DescriptorId,
    pub always: bool,
}

/// A column whose values have to be written into the rows that are there already appears in steps
/// (`jobs::fill`); two adjacent ones may be in use at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnState {
    Public,
    Dropped,
    /// Being added: no statement sees it, and every row that is written gets a new value. A job
    /// writes the others.
    Filling,
    /// Every row has its value, and keeps it. No statement sees it yet: its constraints are being
    /// validated.
    Filled,
}

impl ColumnState {
    /// Rows have it, and no statement sees it.
    pub fn is_being_added(self) -> bool {
        matches!(self, ColumnState::Filling | ColumnState::Filled)
    }
}

/// An index. Entries are keyed `id | columns | (primary key columns, unless it is unique and no
/// column is NULL)`.
///
/// The primary index's value is the whole row, key columns included. Another index's value is the
/// primary index's key and the stored columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// Also the key prefix of its entries.
    pub id: u32,
    pub name: String,
    pub columns: Vec<IndexColumn>,
    pub unique: bool,
    /// Ordinals of stored (`INCLUDE`/`STORING`) columns.
    pub stored: Vec<u32>,
    /// Its values are whole rows: the primary index, and one that is being built to replace it
    /// (`ADD PRIMARY KEY`).
    pub holds_rows: bool,
    /// Whether a constraint (PRIMARY KEY, UNIQUE) made it, which psql shows.
    pub is_constraint: bool,
    /// SQL text of a partial index's predicate.
    pub predicate: Option<String>,
    /// `NOT VISIBLE`: kept up to date, and unique if it is, but no query is answered from it.
    pub is_hidden: bool,
    pub state: IndexState,
    pub comment: Option<String>,
}

impl Index {
    /// Whether no two rows of the table have the same values in these columns, given in any order.
    pub fn is_key(&self, columns: &[u32]) -> bool {
        self.state == IndexState::Public && self.will_be_key(columns)
    }
    /// The same once it is built.
    pub fn will_be_key(&self, columns: &[u32]) -> bool {
        self.unique
            && self.predicate.is_none()
            && self.columns.len() == columns.len()
            && self.columns.iter().all(|c| columns.contains(&c.ordinal))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexColumn {
    pub ordinal: u32,
    pub descending: bool,
    pub nulls_first: bool,
}

/// An index appears in steps; two adjacent states may be in use at once (F1's online schema
/// change).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexState {
    /// Deletes reach it, nothing else.
    DeleteOnly,
    /// Inserts, updates and deletes reach it; no statement reads it. Being filled.
    WriteOnly,
    Public,
    /// As `WriteOnly`, and filled: every writer of a unique index sees the entries of all rows.
    /// From cluster version 2 on.
    Filled,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    pub id: DescriptorId,
    pub schema: DescriptorId,
    pub name: String,
    /// SQL text of the query, names qualified.
    pub query: String,
    pub columns: Vec<(String, Type)>,
    pub depends_on: Vec<DescriptorId>,
    /// The name of the owner when it was made; see `access`.
    pub owner: String,
    pub comment: Option<String>,
    #[serde(default)]
    pub access: Access,
}

/// A sequence. Its counter is a row of the group, so that drawing from it is an ordinary local
/// write; sessions draw blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    pub id: DescriptorId,
    pub schema: DescriptorId,
    pub name: String,
    pub group: GroupId,
    /// The key prefix of its counter.
    pub index_id: u32,
    pub ty: Type,
    pub start: i64,
    /// What a counter without a row starts at: `start`, or what `ALTER SEQUENCE … RESTART` said.
    pub restart: i64,
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cycle: bool,
    /// How many values a session may draw ahead (`CACHE`).
    pub cache: i64,
    /// (table, column ordinal) it belongs to and vanishes with.
    pub owned_by: Option<(DescriptorId, u32)>,
    /// The name of the owner when it was made; see `access`.
    pub owner: String,
    pub comment: Option<String>,
    #[serde(default)]
    pub access: Access,
}

impl Database {
    /// Whether tables and rows may be given this home.
    pub fn accepts(&self, region: &str) -> bool {
        self.regions.iter().any(|r| r == region) && !self.dropping.iter().any(|r| r == region)
    }
}

impl Table {
    pub fn primary(&self) -> &Index {
        &self.indexes[0]
    }
    /// Whether keys that begin with this are its own: those of rows, entries, or shares.
    pub fn has_index(&self, id: u32) -> bool {
        self.indexes.iter().any(|i| i.id == id) || self.with_shares().any(|e| escrow::index_id(e.index) == id)
    }
    /// All groups that hold rows of it, in the order of their regions.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = GroupId> + '_ {
        (0..self.group_count()).map(|at| match &self.homes {
            Homes::One(group) => *group,
            Homes::ByRow(partitions) => partitions[at].group,
        })
    }
    /// How many there are; at least one.
    pub fn group_count(&self) -> usize {
        match &self.homes {
            Homes::One(_) => 1,
            Homes::ByRow(partitions) => partitions.len(),
        }
    }
    /// The group of a table whose rows all have the same home.
    pub fn only_group(&self) -> Option<GroupId> {
        match &self.homes {
            Homes::One(group) => Some(*group),
            Homes::ByRow(_) => None,
        }
    }
    /// The table as it is in its other homes, while its locality changes.
    pub fn elsewhere(&self) -> Option<Table> {
        let m = self.moving.as_ref()?;
        let mut table = Table { homes: m.homes.clone(), locality: m.locality.clone(), moving: None, ..self.clone() };
        table.indexes.iter_mut().zip(&m.indexes).for_each(|(index, id)| index.id = *id);
        Some(table)
    }
    /// The column that says where a row lives.
    pub fn region_column(&self) -> Option<u32> {
        match &self.locality {
            Locality::RegionalByRow { column } => Some(*column),
            _ => None,
        }
    }
    /// The group of the rows of a region; `None` if the table has no such partition.
    pub fn group_in(&self, region: &str) -> Option<GroupId> {
        match &self.homes {
            Homes::One(group) => Some(*group),
            Homes::ByRow(partitions) => {
                let at = partitions.binary_search_by(|p| p.region.as_str().cmp(region)).ok()?;
                Some(partitions[at].group)
            }
        }
    }
    /// The region of a group's rows, if it is being dropped.
    pub fn closing_region(&self, group: GroupId) -> Option<&str> {
        match &self.homes {
            Homes::One(_) => None,
            Homes::ByRow(partitions) => partitions.iter().find(|p| p.group == group && p.is_closing).map(|p| p.region.as_str()),
        }
    }
    /// The region of a group's rows, if the table is `REGIONAL BY ROW`.
    pub fn region_of(&self, group: GroupId) -> Option<&str> {
        match &self.homes {
            Homes::One(_) => None,
            Homes::ByRow(partitions) => partitions.iter().find(|p| p.group == group).map(|p| p.region.as_str()),
        }
    }
    /// The mask bit of a column.
    pub fn mask(ordinal: u32) -> ColumnMask {
        ColumnMask::column(ordinal)
    }
    /// Columns that rows are written with: those that exist, and those that are being added.
    pub fn written_columns(&self) -> impl Iterator<Item = (u32, &Column)> {
        self.columns.iter().enumerate().filter(|(_, c)| c.state != ColumnState::Dropped).map(|(i, c)| (i as u32, c))
    }
    /// Columns that exist, with their ordinals, hidden ones included.
    pub fn live_columns(&self) -> impl Iterator<Item = (u32, &Column)> {
        self.written_columns().filter(|(_, c)| !c.state.is_being_added())
    }
    /// Columns that `*` shows.
    pub fn public_columns(&self) -> impl Iterator<Item = (u32, &Column)> {
        self.live_columns().filter(|(_, c)| !c.is_hidden)
    }
    pub fn column(&self, name: &str) -> Option<(u32, &Column)> {
        self.live_columns().find(|(_, c)| c.name == name)
    }
}

/// The column that says where a row lives, where no other is named.
pub const REGION_COLUMN: &str = "crdb_region";
/// What that column gets in new rows, as SQL.
pub(crate) const REGION_DEFAULT: &str = "default_to_database_primary_region(gateway_region())::crdb_internal_region";

/// 55006: a region that is being dropped takes nothing new.
pub(crate) fn being_dropped(region: &str) -> Error {
    Error::sql("55006", format!("region \"{region}\" is being dropped"))
        .hint("Choose another region, or wait until the ALTER DATABASE that drops it has ended.")
}

impl ObjectKind {
    /// The kind of what the catalog holds; `None`: nobody has privileges on it.
    pub fn of(d: &Descriptor) -> Option<ObjectKind> {
        match d {
            Descriptor::Table(_) => Some(ObjectKind::Table),
            Descriptor::View(_) => Some(ObjectKind::View),
            Descriptor::Sequence(_) => Some(ObjectKind::Sequence),
            Descriptor::Schema(_) => Some(ObjectKind::Schema),
            Descriptor::Database(_) => Some(ObjectKind::Database),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CatalogChange;
    use crate::catalog::constraint::FkAction;
    use crate::catalog::escrow::{Before, EscrowProtocol, Limit};
    use crate::catalog::job::{Job, JobState};
    use crate::catalog::privileges::{Grant, Privileges};
    use crate::catalog::roles::Membership;
    use crate::statistics::{ColumnStatistics, TableStatistics};
    use crate::types::Interval;

    #[test]
    fn what_was_written_is_read() {
        let mut fixtures = meridian_fixtures::Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/catalog.txt"));
        fixtures.kinds::<Descriptor>("descriptor");
        fixtures.kinds::<Locality>("locality");
        fixtures.kinds::<ColumnState>("state of a column");
        fixtures.kinds::<IndexState>("state of an index");
        fixtures.kinds::<FkAction>("action of a foreign key");
        fixtures.kinds::<Job>("job");
        fixtures.kinds::<JobState>("state of a job");
        fixtures.kinds::<Type>("type");
        fixtures.value::<TableStatistics>("statistics");
        // What stands inside of these.
        fixtures.value::<Database>("database");
        fixtures.value::<Schema>("schema");
        fixtures.value::<Group>("group");
        fixtures.kinds::<GroupKind>("kind of a group");
        fixtures.kinds::<Survival>("survival");
        fixtures.value::<Table>("table");
        fixtures.kinds::<Homes>("homes");
        fixtures.value::<Move>("move");
        fixtures.kinds::<MoveState>("state of a move");
        fixtures.value::<Partition>("partition");
        fixtures.value::<Column>("column");
        fixtures.value::<Identity>("identity");
        fixtures.value::<Index>("index");
        fixtures.value::<IndexColumn>("column of an index");
        fixtures.value::<Check>("check");
        fixtures.value::<ForeignKey>("foreign key");
        fixtures.value::<View>("view");
        fixtures.value::<Sequence>("sequence");
        fixtures.value::<EscrowColumn>("escrow column");
        fixtures.kinds::<EscrowProtocol>("escrow protocol");
        fixtures.value::<Limit>("escrow limit");
        fixtures.value::<Shadow>("escrow shadow");
        fixtures.value::<Before>("escrow bounds before");
        fixtures.value::<Access>("access");
        fixtures.value::<Grant>("grant");
        fixtures.value::<Privileges>("privileges");
        fixtures.value::<Role>("role");
        fixtures.value::<Membership>("membership");
        fixtures.value::<LoginRules>("rules of login");
        fixtures.value::<JobRecord>("record of a job");
        fixtures.value::<StoredStatistics>("stored statistics");
        fixtures.value::<ColumnStatistics>("statistics of a column");
        fixtures.value::<Interval>("interval");
        fixtures.value::<CatalogChange>("change of the catalog");
        fixtures.finish();
    }
}
