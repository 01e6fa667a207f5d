//! `EXPLAIN`: a plan as an indented tree.

use super::regions::{Note, Regions, Trips};
use super::{Affected, ExecContext, Execution, Fetched, Nowhere, Stat};
use crate::catalog::{Descriptor, GroupKind};
use crate::env::{Locking, Transaction};
use crate::plan::expr::{Expr, SubqueryBody};
use crate::plan::node::{DmlPlan, DmlPlanKind, KeyPart, KeyRangeParts, Node, PlacePlan, Scalar, Scan, SortPlan};
use crate::plan::rel::{JoinKind, SetOp};
use crate::plan::{Plan, Prepared, Shown};
use crate::show::Computed;
use crate::types::{Datum, EvalContext, Type};
use futures::future::BoxFuture;
use meridian_base::{DescriptorId, GroupId, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) fn explain<'a, 'c, T: Transaction>(
    inner: &'a Prepared,
    show: Shown,
    params: &'a [Datum],
    txn: &'a mut T,
    ctx: &'a ExecContext<'c>,
) -> BoxFuture<'a, Result<Vec<String>>> {
    Box::pin(async move {
        let node = match &inner.plan {
            Plan::General(node) => node.clone(),
            Plan::Fast(fast) => fast.node.clone(),
            Plan::Explain { .. } => return Ok(vec!["EXPLAIN".into()]),
        };
        let (is_near_first, reads_past) = (ctx.options.is_near_first, ctx.options.reads_past);
        let places = Regions { catalog: ctx.catalog, ctx: ctx.eval, is_near_first, reads_past };
        let mut tree = Tree {
            lines: Vec::new(),
            show,
            stats: None,
            ctx: ctx.eval,
            params,
            places,
            trips: None,
            limited: None,
            written: BTreeSet::new(),
            touched: BTreeSet::new(),
            is_anywhere: false,
            shown: BTreeSet::new(),
        };
        let mut took = None;
        if show.analyze {
            let start = ctx.system.now_micros();
            let stats = run(&node, inner, params, txn, ctx).await?;
            took = Some(ctx.system.now_micros().saturating_sub(start));
            tree.stats = Some(stats);
        }
        tree.node(&node, 0);
        if tree.is_anywhere {
            tree.touched.extend(&inner.groups);
        }
        let regions = regions(&tree, ctx);
        if !regions.is_empty() {
            tree.lines.push(format!("Regions: {}", regions.join(", ")));
        }
        if let Some(trips) = tree.trips {
            tree.lines.push(format!("Predicted Round Trips Between Regions: {trips}"));
        }
        if let Some(micros) = took {
            let (made, to_commit) = txn.round_trips();
            tree.lines.push(format!("Round Trips Between Regions: {made}, to commit {to_commit}"));
            if ctx.options.attempt > 0 {
                tree.lines.push(format!("Attempts: {} (times and round trips are of the last)", ctx.options.attempt + 1));
            }
            if show.summary {
                tree.lines.push(format!("Execution Time: {:.3} ms", micros as f64 / 1000.0));
            }
        }
        Ok(tree.lines)
    })
}

async fn run<T: Transaction>(
    node: &Arc<Node>,
    inner: &Prepared,
    params: &[Datum],
    txn: &mut T,
    ctx: &ExecContext<'_>,
) -> Result<BTreeMap<usize, Stat>> {
    let copy = Prepared {
        params: inner.params.clone(),
        columns: inner.columns.clone(),
        tag: inner.tag,
        descriptors: inner.descriptors.clone(),
        needs: Vec::new(),
        permit: Default::default(),
        groups: inner.groups.clone(),
        read_only: inner.read_only,
        changes: None,
        cacheable: false,
        is_of_values: false,
        is_of_lists: false,
        plan: Plan::General(node.clone()),
    };
    let mut execution = Execution::new(Arc::new(copy), params.to_vec());
    execution.measure();
    loop {
        match execution.fetch(txn, ctx, None, &mut Nowhere).await? {
            Fetched::Done(Affected { .. }) => return Ok(execution.measured()),
            Fetched::Suspended { .. } => {}
        }
    }
}

/// Where the statement reads and writes: the homes of its groups, or here.
fn regions(tree: &Tree<'_>, ctx: &ExecContext<'_>) -> Vec<String> {
    let home = |g: &GroupId| match ctx.catalog.descriptors.get(&DescriptorId(g.0)).map(|d| &**d) {
        Some(Descriptor::Group(_)) if tree.places.is_past_here(*g) => Some(ctx.eval.gateway_region.to_string()),
        // Its rows are changed in the primary region.
        Some(Descriptor::Group(d)) if d.kind == GroupKind::Global && !tree.written.contains(g) => {
            Some(ctx.eval.gateway_region.to_string())
        }
        Some(Descriptor::Group(d)) => Some(d.home.clone()),
        _ => None,
    };
    let mut out: Vec<String> = tree.touched.iter().filter_map(home).collect();
    out.sort();
    out.dedup();
    out
}

struct Tree<'t> {
    lines: Vec<String>,
    show: Shown,
    stats: Option<BTreeMap<usize, Stat>>,
    ctx: &'t EvalContext,
    params: &'t [Datum],
    places: Regions<'t>,
    /// Of all operators so far.
    trips: Option<Trips>,
    /// The scan that ends when a LIMIT is reached.
    limited: Option<usize>,
    /// Groups of the tables that are changed.
    written: BTreeSet<GroupId>,
    /// Groups whose rows the operators so far may touch.
    touched: BTreeSet<GroupId>,
    /// One of them may touch rows anywhere.
    is_anywhere: bool,
    /// The common table expressions whose insides are shown already.
    shown: BTreeSet<usize>,
}

impl Tree<'_> {
    /// How many rows are expected, where statistics tell.
    fn expected(&self, estimate: Option<f64>) -> String {
        let shown = estimate.filter(|_| self.show.costs);
        shown.map_or_else(String::new, |rows| format!("  (rows={})", rows.round().max(1.0)))
    }
    fn line(&mut self, depth: usize, text: String) {
        let lead = if depth == 0 { String::new() } else { format!("{}->  ", "      ".repeat(depth - 1) + "  ") };
        self.lines.push(format!("{lead}{text}"));
    }
    fn note(&mut self, depth: usize, text: String) {
        self.lines.push(format!("{}{text}", "      ".repeat(depth) + "  "));
    }

    /// What an operator has written to temporary files.
    fn disk(&mut self, node: &Node, depth: usize) {
        let stat = self.stats.as_ref().and_then(|stats| stats.get(&(std::ptr::from_ref(node) as usize)));
        if let Some(disk) = stat.map(|stat| stat.disk).filter(|disk| *disk > 0) {
            self.note(depth, format!("Disk: {} kB", disk.div_ceil(1024)));
        }
    }

    /// How many pieces of a scan several threads have read at once.
    fn pieces(&mut self, node: &Node, depth: usize) {
        let stat = self.stats.as_ref().and_then(|stats| stats.get(&(std::ptr::from_ref(node) as usize)));
        if let Some(pieces) = stat.map(|stat| stat.pieces).filter(|pieces| *pieces > 0) {
            self.note(depth, format!("Read at Once: {pieces} pieces"));
        }
    }

    /// A line about regions.
    fn place(&mut self, depth: usize, note: Note) {
        self.note(depth, note.text);
        self.trips = Some(self.trips.unwrap_or_default().and(note.trips));
        match note.groups {
            Some(groups) => self.touched.extend(groups),
            None => self.is_anywhere = true,
        }
    }

    fn node(&mut self, node: &Arc<Node>, depth: usize) {
        let measured = self.stats.as_ref().map(|s| match s.get(&(Arc::as_ptr(node) as usize)) {
            Some(s) if !self.show.timing => format!("  (actual rows={} loops={})", s.rows, s.loops),
            Some(s) => format!("  (actual time={:.3} rows={} loops={})", s.micros as f64 / 1000.0, s.rows, s.loops),
            None => "  (never executed)".to_string(),
        });
        let measured = measured.unwrap_or_default();
        let measured = measured.as_str();
        let head = |name: &str| format!("{name}{measured}");
        match &**node {
            // A projection shows nothing that the statement does not say.
            Node::Project { input, .. } => {
                self.node(input, depth);
                return self.subplans(node, depth);
            }
            Node::Values(rows) if rows.len() == 1 => self.line(depth, head("Result")),
            Node::Values(_) => self.line(depth, head("Values Scan")),
            Node::Scan(s) => self.table(node, s, depth, measured),
            Node::Computed { of: Computed::System(table), .. } => self.line(depth, head(&format!("System Table {}", table.name))),
            Node::Computed { of: Computed::Show(_), .. } => self.line(depth, head("Show")),
            Node::Computed { of: Computed::Sequence(s), .. } => self.line(depth, head(&format!("Sequence {}", s.name))),
            Node::Function { calls, .. } => {
                let names: Vec<&str> = calls.iter().map(|c| c.0.name).collect();
                self.line(depth, head(&format!("Function Scan on {}", names.join(", "))));
            }
            Node::Numbers(_) | Node::Estimates(_) | Node::Shares(_) => self.escrow(node, depth, measured),
            Node::HashJoin { .. } | Node::LoopJoin { .. } => self.join(node, depth, measured),
            Node::Filter { input, .. }
            | Node::Aggregate { input, .. }
            | Node::Distinct { input, .. }
            | Node::Sort { input, .. }
            | Node::LockRows { input, .. }
            | Node::Limit { input, .. }
            | Node::Window { input, .. }
            | Node::ProjectSet { input, .. } => {
                self.above_input(node, depth, measured);
                self.disk(node, depth);
                self.node(input, depth + 1);
            }
            Node::SetOp { op, all, left, right } => {
                self.line(depth, head(&format!("{}{}", set_name(*op), if *all { " All" } else { "" })));
                self.disk(node, depth);
                self.node(left, depth + 1);
                self.node(right, depth + 1);
            }
            Node::Cte { name, body, step, .. } => {
                self.line(depth, head(&format!("CTE {name}")));
                // What it is made of is shown where it is named first.
                if !self.shown.insert(Arc::as_ptr(body) as usize) {
                    return;
                }
                self.node(body, depth + 1);
                if let Some((s, _)) = step {
                    self.node(s, depth + 1);
                }
            }
            Node::First { before, input } => {
                for b in before {
                    self.node(b, depth);
                }
                return self.node(input, depth);
            }
            Node::WorkTable { .. } => self.line(depth, head("WorkTable Scan")),
            Node::Dml(d) => {
                self.change(d, depth, measured);
                if is_blind(d) {
                    return;
                }
                self.node(&d.input, depth + 1);
            }
        }
        self.subplans(node, depth);
    }

    /// A scan and its regions.
    fn table(&mut self, node: &Arc<Node>, s: &Scan, depth: usize, measured: &str) {
        self.scan(s, depth, measured);
        self.pieces(node, depth);
        let is_limited = self.limited == Some(Arc::as_ptr(node) as usize);
        match self.places.of_scan(s, is_limited) {
            Some(note) => self.place(depth, note),
            None => self.touched.extend(s.table.groups()),
        }
    }

    /// What reads escrow columns.
    fn escrow(&mut self, node: &Node, depth: usize, measured: &str) {
        let head = |name: &str| format!("{name}{measured}");
        match node {
            Node::Numbers(numbers) => {
                let columns = numbers.ordinals.iter().map(|o| numbers.table.columns[*o as usize].name.as_str());
                self.line(depth, head(&format!("Escrow Numbers ({})", columns.collect::<Vec<_>>().join(", "))));
                if !numbers.filter.is_empty() {
                    let text = numbers.filter.iter().map(|c| self.named(&c.expr, &names(node))).collect::<Vec<_>>().join(" AND ");
                    self.note(depth, format!("Filter: {text}"));
                }
                self.node(&numbers.input, depth + 1);
            }
            Node::Estimates(estimates) => {
                let columns = estimates.of.iter().map(|at| &estimates.table.escrow[*at]);
                let columns: Vec<&str> = columns.map(|e| estimates.table.columns[e.ordinal as usize].name.as_str()).collect();
                self.line(depth, head(&format!("Escrow Estimates ({}), read in this region", columns.join(", "))));
                if !estimates.filter.is_empty() {
                    let conds = estimates.filter.iter().map(|c| self.named(&c.expr, &names(node)));
                    let text = conds.collect::<Vec<_>>().join(" AND ");
                    self.note(depth, format!("Filter: {text}"));
                }
                self.node(&estimates.input, depth + 1);
            }
            Node::Shares(shares) => {
                self.line(depth, head(&format!("Escrow Shares of {}", shares.table.name)));
                let mut sites: Vec<GroupId> = shares.table.escrow.iter().flat_map(|e| e.sites.iter().copied()).collect();
                sites.sort_unstable();
                sites.dedup();
                let note = self.places.of_shares(&sites);
                self.place(depth, note);
                self.node(&shares.input, depth + 1);
            }
            _ => {}
        }
    }

    fn join(&mut self, node: &Node, depth: usize, measured: &str) {
        let head = |name: &str| format!("{name}{measured}");
        match node {
            Node::HashJoin { kind, left, right, left_keys, right_keys, estimate, .. } => {
                self.line(depth, head(&format!("Hash {}{}", join_name(*kind), self.expected(*estimate))));
                let (ln, rn) = (names(left), names(right));
                let pairs = left_keys
                    .iter()
                    .zip(right_keys)
                    .map(|(l, r)| format!("({} = {})", self.named(&l.expr, &ln), self.named(&r.expr, &rn)));
                let text = pairs.collect::<Vec<_>>().join(" AND ");
                self.note(depth, format!("Hash Cond: {text}"));
                self.disk(node, depth);
                self.node(left, depth + 1);
                self.node(right, depth + 1);
            }
            Node::LoopJoin { kind, left, right, is_lookup, estimate, .. } => {
                let how = if *is_lookup { "Lookup" } else { "Nested Loop" };
                self.line(depth, head(&format!("{how} {}{}", join_name(*kind), self.expected(*estimate))));
                self.node(left, depth + 1);
                self.node(right, depth + 1);
            }
            _ => {}
        }
    }

    /// The lines of an operator over one input, without those of the input.
    fn above_input(&mut self, node: &Node, depth: usize, measured: &str) {
        let head = |name: &str| format!("{name}{measured}");
        match node {
            Node::Filter { input, conds } => {
                self.line(depth, head("Filter"));
                let text = conds.iter().map(|c| self.named(&c.expr, &names(input))).collect::<Vec<_>>().join(" AND ");
                self.note(depth, format!("Filter: {text}"));
            }
            Node::Aggregate { input, keys, aggs, in_order } => {
                let how = match in_order {
                    true => " in order",
                    false if super::batch::scan_below_aggregation(input, keys, aggs).is_some() => " in batches",
                    false => "",
                };
                self.line(depth, head(&format!("{}{how}", if keys.is_empty() { "Aggregate" } else { "Group" })));
                if !keys.is_empty() {
                    self.note(depth, format!("Group Key: {}", self.exprs(keys, &names(input))));
                }
            }
            Node::Distinct { .. } => self.line(depth, head("Unique")),
            Node::Sort { input, keys, sorted, is_gradual, most } => {
                let is_in_part = *sorted > 0 && (most.is_some() || *is_gradual);
                let is_in_batches = !is_in_part && super::batch::scan_below_order(input, keys).is_some();
                let (kind, how) =
                    (if is_in_part { "Incremental Sort" } else { "Sort" }, if is_in_batches { " in batches" } else { "" });
                self.line(depth, head(&format!("{kind}{how}")));
                let below = names(input);
                let keys = keys.iter().map(|k| format!("{}{}", self.named(&k.expr.expr, &below), direction(k)));
                let keys = keys.collect::<Vec<_>>();
                self.note(depth, format!("Sort Key: {}", keys.join(", ")));
                if is_in_part {
                    self.note(depth, format!("Presorted Key: {}", keys[..*sorted].join(", ")));
                }
            }
            Node::LockRows { plan, .. } => {
                self.line(depth, head("LockRows"));
                let tables = plan.tables.iter().map(|t| t.alias.as_str()).collect::<Vec<_>>().join(", ");
                self.note(depth, format!("Locks rows of: {tables}"));
            }
            Node::Limit { input, .. } => {
                self.limited = Some(Arc::as_ptr(below_projections(input)) as usize);
                self.line(depth, head("Limit"));
            }
            Node::Window { in_order, most, .. } => {
                self.line(depth, head(if *in_order { "WindowAgg in order" } else { "WindowAgg" }));
                if let Some(most) = most {
                    self.note(depth, format!("Run Condition: at most {}", self.named(&most.expr, &[])));
                }
            }
            Node::ProjectSet { .. } => self.line(depth, head("ProjectSet")),
            _ => {}
        }
    }

    /// The lines of a change, without those of its input.
    fn change(&mut self, d: &DmlPlan, depth: usize, measured: &str) {
        let name = match &d.kind {
            DmlPlanKind::Insert { .. } => "Insert",
            DmlPlanKind::Update { .. } => "Update",
            DmlPlanKind::Delete => "Delete",
        };
        let how = match &d.kind {
            DmlPlanKind::Update { is_blind: true, .. } => " (escrow delta, local)",
            DmlPlanKind::Update { deltas, .. } if !deltas.is_empty() => " (escrow delta, of rows that are read)",
            _ => "",
        };
        self.line(depth, format!("{name} on {}{how}{measured}", d.table.table.name));
        if let (DmlPlanKind::Update { is_blind: true, .. }, Node::Scan(s)) = (&d.kind, &*d.input) {
            self.conditions(s, depth);
            return;
        }
        self.written.extend(d.table.table.groups());
        let notes = self.places.of_change(d);
        // What is updated or deleted was read, below.
        if notes.is_empty() && matches!(d.kind, DmlPlanKind::Insert { .. }) {
            self.touched.extend(d.table.table.groups());
        }
        notes.into_iter().for_each(|note| self.place(depth, note));
    }

    /// Plans inside the node's expressions.
    fn subplans(&mut self, node: &Node, depth: usize) {
        let mut plans = Vec::new();
        for e in node.scalars() {
            e.expr.visit(&mut |e| {
                if let Expr::Subquery(s) = e
                    && let SubqueryBody::Physical(p) = &s.body
                {
                    plans.push(p.node.clone());
                }
            });
        }
        for p in plans {
            self.note(depth, "SubPlan".into());
            self.node(&p, depth + 2);
        }
    }

    /// The conditions that a range of a column answers.
    fn range(&self, column: &str, r: &KeyRangeParts) -> Vec<String> {
        let mut conds = Vec::new();
        for (e, included) in &r.lower {
            conds.push(format!("({column} {} {})", if *included { ">=" } else { ">" }, self.expr(&e.expr)));
        }
        for (e, included) in &r.upper {
            conds.push(format!("({column} {} {})", if *included { "<=" } else { "<" }, self.expr(&e.expr)));
        }
        if conds.is_empty() && r.like.is_none() {
            conds.push(format!("({column} IS NOT NULL)"));
        }
        if let Some(e) = &r.like {
            conds.push(format!("({column} ~~ {})", self.expr(&e.expr)));
        }
        conds
    }

    /// Where a scan looks one after the other: a list, if all places are values of the same
    /// columns.
    fn places(&self, s: &Scan) -> Option<String> {
        let first = s.places.first()?;
        let index = &s.table.indexes[s.index];
        let columns: Vec<&str> = index.columns.iter().map(|c| s.table.columns[c.ordinal as usize].name.as_str()).collect();
        if s.places.iter().all(|p| p.range.is_none() && p.values.len() == first.values.len()) {
            let values = s.places.iter().map(|p| format!("({})", self.exprs(&p.values, &[])));
            let columns = columns[..first.values.len()].join(", ");
            return Some(format!("(({columns}) IN ({}))", values.collect::<Vec<_>>().join(", ")));
        }
        let place = |p: &PlacePlan| {
            let values = p.values.iter().zip(&columns).map(|(v, column)| format!("({column} = {})", self.expr(&v.expr)));
            let mut conds: Vec<String> = values.collect();
            conds.extend(p.range.iter().flat_map(|r| self.range(columns[p.values.len()], r)));
            conds.join(" AND ")
        };
        Some(format!("({})", s.places.iter().map(place).collect::<Vec<_>>().join(" OR ")))
    }

    fn scan(&mut self, s: &Scan, depth: usize, measured: &str) {
        let index = &s.table.indexes[s.index];
        let name = if s.alias == s.table.name { s.alias.clone() } else { format!("{} {}", s.table.name, s.alias) };
        let back = if s.reverse { " Backward" } else { "" };
        let whole = s.prefix.is_empty() && s.places.is_empty() && s.range.is_none();
        let what = match (whole, s.is_point, s.is_covering && s.index != 0) {
            (true, _, _) if s.index == 0 => format!("Seq Scan{back} on {name}"),
            (_, true, _) => format!("Point Lookup using {} on {name}", index.name),
            (_, _, true) => format!("Index Only Scan{back} using {} on {name}", index.name),
            _ => format!("Index Scan{back} using {} on {name}", index.name),
        };
        self.line(depth, format!("{what}{}{measured}", self.expected(s.estimate)));
        self.conditions(s, depth);
        if !matches!(s.locking, Locking::None) {
            self.note(depth, "Locks rows".into());
        }
    }

    /// What a scan looks for.
    fn conditions(&mut self, s: &Scan, depth: usize) {
        let index = &s.table.indexes[s.index];
        let mut conds = Vec::new();
        for (p, c) in s.prefix.iter().zip(&index.columns) {
            let column = &s.table.columns[c.ordinal as usize].name;
            conds.push(match p {
                KeyPart::Eq(e) => format!("({column} = {})", self.expr(&e.expr)),
                KeyPart::In(v) => format!("({column} IN ({}))", self.exprs(v, &[])),
                KeyPart::Any(e) => format!("({column} = ANY ({}))", self.expr(&e.expr)),
                KeyPart::Null => format!("({column} IS NULL)"),
            });
        }
        conds.extend(self.places(s));
        if let (Some(r), Some(c)) = (&s.range, index.columns.get(s.prefix.len())) {
            conds.extend(self.range(&s.table.columns[c.ordinal as usize].name, r));
        }
        if !conds.is_empty() {
            self.note(depth, format!("Index Cond: {}", conds.join(" AND ")));
        }
        if !s.filter.is_empty() {
            let names: Vec<String> = s.columns.iter().map(|o| s.table.columns[*o as usize].name.clone()).collect();
            let text = s.filter.iter().map(|f| self.named(&f.expr, &names)).collect::<Vec<_>>().join(" AND ");
            self.note(depth, format!("Filter: {text}"));
        }
    }

    fn exprs(&self, list: &[Scalar], names: &[String]) -> String {
        list.iter().map(|s| self.named(&s.expr, names)).collect::<Vec<_>>().join(", ")
    }
    fn expr(&self, e: &Expr) -> String {
        self.named(e, &[])
    }
    fn named(&self, e: &Expr, names: &[String]) -> String {
        let list = |v: &[Expr], by: &str| v.iter().map(|e| self.named(e, names)).collect::<Vec<_>>().join(by);
        match e {
            Expr::Const(Datum::Null) => "NULL".into(),
            Expr::Const(d) => constant(d, self.ctx),
            Expr::Param(i) => match self.params.get(*i as usize) {
                Some(_) | None => format!("${}", i + 1),
            },
            Expr::Slot(i) => names.get(*i as usize).cloned().unwrap_or_else(|| format!("#{}", i + 1)),
            Expr::Arg(i) => format!("outer #{}", i + 1),
            Expr::Compare(c, p) => format!("({} {} {})", self.named(&p.0, names), c.name(), self.named(&p.1, names)),
            Expr::Call(f, args) if args.len() == 2 && !f.name.starts_with(|c: char| c.is_alphabetic()) => {
                format!("({} {} {})", self.named(&args[0], names), f.name, self.named(&args[1], names))
            }
            Expr::Call(f, args) => format!("{}({})", f.name, list(args, ", ")),
            Expr::And(v) => format!("({})", list(v, " AND ")),
            Expr::Or(v) => format!("({})", list(v, " OR ")),
            Expr::Not(e) => format!("(NOT {})", self.named(e, names)),
            Expr::IsNull(e) => format!("({} IS NULL)", self.named(e, names)),
            Expr::IsBool(e, wanted) => format!("({} IS {})", self.named(e, names), if *wanted { "TRUE" } else { "FALSE" }),
            Expr::Distinct(p) => format!("({} IS DISTINCT FROM {})", self.named(&p.0, names), self.named(&p.1, names)),
            Expr::In(e, v) => format!("({} IN ({}))", self.named(e, names), list(v, ", ")),
            Expr::OneOf(o) => {
                let row = |v: &[Expr]| if v.len() == 1 { list(v, "") } else { format!("({})", list(v, ", ")) };
                let rows: Vec<String> = o.rows.iter().map(|r| row(r)).collect();
                format!("({} IN ({}))", row(&o.left), rows.join(", "))
            }
            Expr::Cast(c) => format!("({})::{}", self.named(&c.expr, names), c.to.name()),
            Expr::Subquery(_) => "(SubPlan)".into(),
            Expr::Case(..) => "CASE".into(),
            Expr::Coalesce(v) => format!("COALESCE({})", list(v, ", ")),
            _ => "…".into(),
        }
    }
}

/// Where rows come from that are projected, or locked.
fn below_projections(mut node: &Arc<Node>) -> &Arc<Node> {
    while let Node::Project { input, .. } | Node::LockRows { input, .. } = &**node {
        node = input;
    }
    node
}

/// What the columns of an operator's output may be called.
fn names(node: &Node) -> Vec<String> {
    match node {
        Node::Scan(s) => {
            let name = |o: &u32| format!("{}.{}", s.alias, s.table.columns[*o as usize].name);
            s.columns.iter().map(name).collect()
        }
        Node::Numbers(numbers) => names(&numbers.input),
        Node::Estimates(estimates) => {
            let mut all = names(&estimates.input);
            let name = |at: &usize| {
                let column = &estimates.table.columns[estimates.table.escrow[*at].ordinal as usize];
                format!("escrow_estimate({})", column.name)
            };
            all.extend(estimates.of.iter().map(name));
            all
        }
        Node::Shares(shares) => {
            let key = shares.table.primary().columns.iter().map(|c| shares.table.columns[c.ordinal as usize].name.as_str());
            key.chain(["column_name", "region", "part", "can_take", "can_add"]).map(str::to_string).collect()
        }
        Node::Computed { of, columns } => columns.iter().map(|c| format!("{}.{}", of.name(), of.columns()[*c].0)).collect(),
        Node::Filter { input, .. } | Node::Sort { input, .. } | Node::Limit { input, .. } | Node::Distinct { input, .. } => {
            names(input)
        }
        Node::First { input, .. } | Node::LockRows { input, .. } => names(input),
        Node::Project { input, exprs } => {
            let below = names(input);
            let name = |e: &Scalar| match &e.expr {
                Expr::Slot(i) => below.get(*i as usize).cloned(),
                _ => None,
            };
            exprs.iter().enumerate().map(|(i, e)| name(e).unwrap_or_else(|| format!("column {}", i + 1))).collect()
        }
        Node::HashJoin { kind, left, .. } | Node::LoopJoin { kind, left, .. } if kind.is_test() => names(left),
        Node::HashJoin { left, right, .. } | Node::LoopJoin { left, right, .. } => {
            let mut all = names(left);
            all.extend(names(right));
            all
        }
        Node::Aggregate { input, keys, aggs, .. } => {
            let below = names(input);
            let key = |e: &Scalar| match &e.expr {
                Expr::Slot(i) => below.get(*i as usize).cloned().unwrap_or_default(),
                _ => "key".to_string(),
            };
            keys.iter().map(key).chain(aggs.iter().map(|a| format!("{}()", a.aggregate.name))).collect()
        }
        Node::Function { calls, .. } => calls.iter().flat_map(|(f, _)| f.columns.iter().map(|c| c.0.clone())).collect(),
        _ => Vec::new(),
    }
}

fn constant(d: &Datum, ctx: &EvalContext) -> String {
    let ty = match d {
        Datum::Bool(_) => Type::Bool,
        Datum::Int(_) => Type::Int8,
        Datum::Float(_) => Type::Float8,
        Datum::Numeric(_) => Type::Numeric(None),
        Datum::Text(_) => Type::Text,
        Datum::Uuid(_) => Type::Uuid,
        Datum::Date(_) => Type::Date,
        Datum::Timestamp(_) => Type::Timestamp,
        _ => return "…".into(),
    };
    let text = d.to_text(&ty, ctx);
    if matches!(ty, Type::Bool | Type::Int8 | Type::Float8 | Type::Numeric(_)) { text } else { format!("'{text}'") }
}

/// Whether deltas are added to a row that is not read.
fn is_blind(d: &DmlPlan) -> bool {
    matches!((&d.kind, &*d.input), (DmlPlanKind::Update { is_blind: true, .. }, Node::Scan(_)))
}

fn set_name(op: SetOp) -> &'static str {
    match op {
        SetOp::Union => "Union",
        SetOp::Intersect => "Intersect",
        SetOp::Except => "Except",
    }
}

fn join_name(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "Join",
        JoinKind::Left => "Left Join",
        JoinKind::Right => "Right Join",
        JoinKind::Full => "Full Join",
        JoinKind::Semi => "Semi Join",
        JoinKind::Anti => "Anti Join",
    }
}

/// How a key of an order is written, as far as it is not the usual one.
fn direction(k: &SortPlan) -> &'static str {
    match (k.descending, k.nulls_first) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    }
}
