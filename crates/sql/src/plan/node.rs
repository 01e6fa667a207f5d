//! The operators of physical plans.

use super::rel::*;
use super::table::{ForeignKeys, TablePlan};
use crate::catalog::relation::TableRef;
use crate::env::{Locking, OnLocked};
use crate::plan::expr::*;
use crate::show::Computed;
use crate::statistics::TableStatistics;
use crate::types::functions::{Aggregate, SetFunction};
use crate::types::{Datum, Type};
use meridian_base::{ColumnMask, GroupId};
use std::sync::Arc;

/// An expression over an operator's input row.
#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    pub(crate) expr: Expr,
    /// Needs subqueries or sequences.
    pub(crate) pending: bool,
}

impl Scalar {
    /// Whether it has a subquery.
    pub(super) fn asks_tables(&self) -> bool {
        self.pending && self.expr.has_subquery()
    }
}

/// A correlated plan and what it takes from outside.
#[derive(Debug)]
pub(crate) struct SubPlan {
    pub(crate) node: Arc<Node>,
    /// Over the row and frame around it.
    pub(crate) args: Vec<Expr>,
    /// It may be run any number of times.
    pub(crate) is_plain: bool,
}

/// A physical operator.
#[derive(Debug)]
pub(crate) enum Node {
    Values(Vec<Vec<Scalar>>),
    Scan(Arc<Scan>),
    Computed {
        of: Computed,
        columns: Vec<usize>,
    },
    Function {
        calls: Vec<(SetFunction, Vec<Scalar>)>,
        ordinality: bool,
    },
    Filter {
        input: Arc<Node>,
        conds: Vec<Scalar>,
    },
    Numbers(Box<Numbers>),
    Estimates(Box<Estimates>),
    Shares(Box<Shares>),
    Project {
        input: Arc<Node>,
        exprs: Vec<Scalar>,
    },
    HashJoin {
        kind: JoinKind,
        left: Arc<Node>,
        right: Arc<Node>,
        left_keys: Vec<Scalar>,
        right_keys: Vec<Scalar>,
        on: Vec<Scalar>,
        widths: (usize, usize),
        /// The plan rests on the order of the left rows.
        keeps_order: bool,
        /// See [`Scan::estimate`].
        estimate: Option<f64>,
    },
    /// The right side is run for each left row, with a frame computed from it; or once, if it takes
    /// nothing.
    LoopJoin {
        kind: JoinKind,
        left: Arc<Node>,
        right: Arc<Node>,
        args: Vec<Scalar>,
        on: Vec<Scalar>,
        widths: (usize, usize),
        is_lookup: bool,
        /// See [`Scan::estimate`].
        estimate: Option<f64>,
    },
    Aggregate {
        input: Arc<Node>,
        keys: Vec<Scalar>,
        aggs: Vec<AggPlan>,
        /// Rows of a group come one after the other, and few groups are asked for: each is given
        /// when it is complete.
        in_order: bool,
    },
    Distinct {
        input: Arc<Node>,
        on: Option<Vec<Scalar>>,
    },
    Sort {
        input: Arc<Node>,
        keys: Vec<SortPlan>,
        /// By how many of the keys, from the first one on, the rows are in order already.
        sorted: usize,
        /// Rows that are alike in these keys are sorted as they come, because the first rows of the
        /// result may be enough.
        is_gradual: bool,
        /// If no more than some of the first rows are used.
        most: Option<Most>,
    },
    Limit {
        input: Arc<Node>,
        limit: Option<Scalar>,
        offset: Option<Scalar>,
    },
    LockRows {
        input: Arc<Node>,
        plan: Box<LockPlan>,
    },
    SetOp {
        op: SetOp,
        all: bool,
        left: Arc<Node>,
        right: Arc<Node>,
    },
    Cte {
        id: u32,
        name: String,
        body: Arc<Node>,
        step: Option<(Arc<Node>, bool)>,
        args: Vec<Scalar>,
    },
    WorkTable {
        id: u32,
    },
    /// Runs some plans to their ends before the input.
    First {
        before: Vec<Arc<Node>>,
        input: Arc<Node>,
    },
    Window {
        input: Arc<Node>,
        calls: Vec<WindowPlan>,
        /// Rows come in the order of the one window that all calls have.
        in_order: bool,
        /// Rows whose first result is above it may be left out: a condition above drops them.
        most: Option<Scalar>,
    },
    ProjectSet {
        input: Arc<Node>,
        calls: Vec<(SetFunction, Vec<Scalar>)>,
    },
    Dml(Box<DmlPlan>),
}

/// Puts the numbers of escrow columns into a table's rows, and leaves out those that then do not
/// match.
#[derive(Debug)]
pub(crate) struct Numbers {
    pub(crate) input: Arc<Node>,
    pub(crate) table: TableRef,
    pub(crate) types: Vec<Type>,
    /// The rows' columns: ordinals. Those of the primary key are there.
    pub(crate) columns: Vec<u32>,
    /// Those of the columns that get numbers.
    pub(crate) ordinals: Vec<u32>,
    /// Over the rows.
    pub(crate) filter: Vec<Scalar>,
    /// Whether rows come with all others between them in the order of the primary key.
    pub(crate) is_dense: bool,
    /// How the rows are locked. Their numbers are locked if they are about to be written.
    pub(crate) locking: Locking,
}

/// A scan of a table through an index.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) table: TableRef,
    pub(crate) alias: String,
    pub(crate) types: Vec<Type>,
    pub(crate) missing: Vec<Datum>,
    pub(crate) index: usize,
    pub(crate) prefix: Vec<KeyPart>,
    /// See [`Path::places`].
    pub(crate) places: Vec<PlacePlan>,
    pub(crate) range: Option<KeyRangeParts>,
    pub(crate) is_point: bool,
    pub(crate) reverse: bool,
    /// The output: ordinals.
    pub(crate) columns: Vec<u32>,
    /// Over the output.
    pub(crate) filter: Vec<Scalar>,
    pub(crate) mask: ColumnMask,
    pub(crate) locking: Locking,
    /// Whether the index's entries hold every column of the output.
    pub(crate) is_covering: bool,
    /// Of a table that is `REGIONAL BY ROW`: the regions whose rows may match, if a condition says
    /// so.
    pub(crate) regions: Option<Regions>,
    /// Whether the rows of several groups are merged in the order of the index.
    pub(crate) is_merged: bool,
    /// How many rows are expected, if the table's are counted.
    pub(crate) estimate: Option<f64>,
    /// What is known of the values of the table, if several threads may read it: it is a large
    /// scan.
    pub(crate) statistics: Option<Arc<TableStatistics>>,
}

/// What is known of the regions of a scan's rows.
#[derive(Debug)]
pub(crate) struct Regions {
    pub(crate) part: KeyPart,
    /// From columns that the region is computed from. A computation that fails says only that there
    /// is no such row.
    pub(crate) is_computed: bool,
}

/// See [`Part`].
#[derive(Debug)]
pub(crate) enum KeyPart {
    Eq(Scalar),
    In(Vec<Scalar>),
    Any(Scalar),
    Null,
}

/// See [`super::path::Place`].
#[derive(Debug)]
pub(crate) struct PlacePlan {
    pub(crate) values: Vec<Scalar>,
    pub(crate) range: Option<KeyRangeParts>,
}

#[derive(Debug)]
pub(crate) struct KeyRangeParts {
    /// All of these bounds count: the values, and whether they are included.
    pub(crate) lower: Vec<(Scalar, bool)>,
    pub(crate) upper: Vec<(Scalar, bool)>,
    pub(crate) like: Option<Scalar>,
}

#[derive(Clone, Debug)]
pub(crate) struct SortPlan {
    pub(crate) expr: Scalar,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// How many of the first rows a `LIMIT` takes.
#[derive(Debug)]
pub(crate) struct Most {
    pub(crate) limit: Scalar,
    pub(crate) offset: Option<Scalar>,
}

#[derive(Debug)]
pub(crate) struct AggPlan {
    pub(crate) aggregate: Arc<Aggregate>,
    pub(crate) args: Vec<Scalar>,
    pub(crate) distinct: bool,
    pub(crate) filter: Option<Scalar>,
    pub(crate) order: Vec<SortPlan>,
}

#[derive(Debug)]
pub(crate) struct WindowPlan {
    pub(crate) function: WindowFunction,
    pub(crate) args: Vec<Scalar>,
    pub(crate) filter: Option<Scalar>,
    pub(crate) partition: Vec<Scalar>,
    pub(crate) order: Vec<SortPlan>,
    pub(crate) rows: bool,
    pub(crate) start: BoundPlan,
    pub(crate) end: BoundPlan,
}

#[derive(Debug)]
pub(crate) enum BoundPlan {
    UnboundedPreceding,
    Preceding(Scalar),
    CurrentRow,
    Following(Scalar),
    UnboundedFollowing,
}

#[derive(Debug)]
pub(crate) struct DmlPlan {
    pub(crate) table: Arc<TablePlan>,
    pub(crate) keys: Arc<ForeignKeys>,
    pub(crate) input: Arc<Node>,
    pub(crate) kind: DmlPlanKind,
    /// Insert: over the new row by ordinal. Update, delete: over the row by ordinal, then the rest
    /// of the input.
    pub(crate) returning: Vec<Scalar>,
}

impl DmlPlan {
    /// Whether what it computes for a row asks tables, of which one may be its own.
    pub(crate) fn asks_tables(&self) -> bool {
        let conflict = |c: &ConflictPlan| c.update.as_ref().is_some_and(|u| u.scalars().any(Scalar::asks_tables));
        let kind = match &self.kind {
            DmlPlanKind::Insert { conflict: c, .. } => c.as_ref().is_some_and(conflict),
            DmlPlanKind::Update { set, .. } => set.iter().any(|(_, e)| e.asks_tables()),
            DmlPlanKind::Delete => false,
        };
        kind || self.returning.iter().any(Scalar::asks_tables)
    }
}

#[derive(Debug)]
pub(crate) enum DmlPlanKind {
    Insert {
        targets: Vec<u32>,
        conflict: Option<ConflictPlan>,
        /// Ordinals that every row fills with a random UUID: they cannot be taken.
        random: Vec<u32>,
        /// Rows go where their parents are (`exec::infer`).
        infers: bool,
    },
    Update {
        set: Vec<(u32, Scalar)>,
        /// What is added to escrow columns.
        deltas: Vec<(u32, Scalar)>,
        /// The input is a row's primary key, and nothing of the row need be read.
        is_blind: bool,
    },
    Delete,
}

#[derive(Debug)]
pub(crate) struct ConflictPlan {
    pub(crate) arbiters: Vec<usize>,
    pub(crate) update: Option<UpsertPlan>,
}

/// What becomes of an existing row. Expressions are over it, followed by the proposed one.
#[derive(Debug)]
pub(crate) struct UpsertPlan {
    pub(crate) set: Vec<(u32, Scalar)>,
    /// What is added to escrow columns.
    pub(crate) deltas: Vec<(u32, Scalar)>,
    pub(crate) filter: Option<Scalar>,
    /// Escrow columns of the existing row whose numbers are asked for.
    pub(crate) numbers: Vec<u32>,
}

impl UpsertPlan {
    pub(crate) fn scalars(&self) -> impl Iterator<Item = &Scalar> {
        self.set.iter().chain(&self.deltas).map(|(_, e)| e).chain(&self.filter)
    }
}

/// Appends to a table's rows what replicas in this region know of their numbers, and leaves out
/// those that then do not match.
#[derive(Debug)]
pub(crate) struct Estimates {
    pub(crate) input: Arc<Node>,
    pub(crate) table: TableRef,
    pub(crate) types: Vec<Type>,
    /// The input's columns: ordinals. Those of the primary key are there.
    pub(crate) columns: Vec<u32>,
    /// The columns whose estimates are appended: places in [`crate::catalog::Table::escrow`].
    pub(crate) of: Vec<usize>,
    /// Over the rows with estimates.
    pub(crate) filter: Vec<Scalar>,
    /// See [`Numbers::is_dense`].
    pub(crate) is_dense: bool,
}

/// What each site has of each escrow column of a table's rows, one row for each: the primary key,
/// and what [`SharesOf`] says.
#[derive(Debug)]
pub(crate) struct Shares {
    pub(crate) input: Arc<Node>,
    pub(crate) table: TableRef,
    pub(crate) types: Vec<Type>,
    /// The input's columns: ordinals. Those of the primary key are there.
    pub(crate) columns: Vec<u32>,
    /// See [`Numbers::is_dense`].
    pub(crate) is_dense: bool,
}

/// Which rows a [`Node::LockRows`] locks.
#[derive(Clone, Debug)]
pub(crate) struct LockPlan {
    pub(crate) tables: Vec<LockedPlan>,
    /// The groups of every table that is read below.
    pub(crate) groups: Vec<GroupId>,
    /// Whether the input may be run again: it says the same twice, and does nothing but read.
    pub(crate) is_repeatable: bool,
    /// Whether rows of the locked table are all that is read below, each is one row of the input,
    /// and busy ones are skipped.
    pub(crate) reads_only_skipped: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct LockedPlan {
    pub(crate) plan: Arc<TablePlan>,
    pub(crate) alias: String,
    pub(crate) locking: Locking,
    /// The columns that the statement reads of it.
    pub(crate) mask: ColumnMask,
    /// Ordinals, and where in the input's rows these columns are: all that say which row it is.
    pub(crate) place: Vec<(u32, usize)>,
}

impl LockPlan {
    /// Whether rows are left out that others hold.
    pub(crate) fn skips(&self) -> bool {
        self.tables.iter().any(|t| t.locking.if_busy() == Some(OnLocked::Skip))
    }
}
