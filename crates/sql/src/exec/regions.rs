//! What `EXPLAIN` says about regions: where an operator reads and writes, and the round trips
//! between regions that this takes.
//!
//! Rows of other regions are read at the nearest replica, and what was read is certified with the
//! commit: one round trip, however many regions there are.
//! GLOBAL rows are read in every region for nothing, and written in the primary one. So a
//! prediction is 0, 1, or from 0 to 1 where it depends on what is found. A conflict costs more;
//! `EXPLAIN ANALYZE` counts.

use super::groups::Groups;
use super::write::{Reach, reach};
use crate::catalog::{Catalog, Descriptor, Group, GroupKind, Table};
use crate::plan::eval::{Env, Memo, eval, finish};
use crate::plan::expr::Expr;
use crate::plan::node::{DmlPlan, DmlPlanKind, KeyPart, Node, Scalar, Scan};
use crate::types::{Datum, EvalContext};
use meridian_base::{DescriptorId, GroupId};

/// The least and the most round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trips(u32, u32);

impl Trips {
    const MAYBE: Trips = Trips(0, 1);

    /// Of two operators of one statement: they share the commit's round trip.
    pub(super) fn and(self, other: Trips) -> Trips {
        Trips(self.0.max(other.0), self.1.max(other.1))
    }
}

impl std::fmt::Display for Trips {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trips(least, most) if least == most => write!(f, "{least}"),
            Trips(least, most) => write!(f, "{least} to {most}"),
        }
    }
}

/// The catalog's groups as a gateway sees them.
pub(super) struct Regions<'c> {
    pub(super) catalog: &'c Catalog,
    pub(super) ctx: &'c EvalContext,
    /// Whether the gateway's group is read before the others.
    pub(super) is_near_first: bool,
    /// See [`super::ExecContext::reads_past`].
    pub(super) reads_past: bool,
}

/// A line about an operator.
pub(super) struct Note {
    pub(super) text: String,
    /// What it costs.
    pub(super) trips: Trips,
    /// Whose rows it may touch; `None` if that depends on values that are not known.
    pub(super) groups: Option<Vec<GroupId>>,
}

impl Note {
    fn of(self, groups: &[GroupId]) -> Note {
        Note { groups: Some(groups.to_vec()), ..self }
    }
}

impl Regions<'_> {
    fn group(&self, id: GroupId) -> Option<&Group> {
        match self.catalog.descriptors.get(&DescriptorId(id.0)).map(|d| &**d) {
            Some(Descriptor::Group(g)) => Some(g),
            _ => None,
        }
    }
    /// Whether there is anything to say: a database of one region has no other to go to.
    fn is_multi_region(&self, table: &Table) -> bool {
        table.groups().any(|g| self.group(g).is_some_and(|g| g.regions.len() > 1))
    }
    fn home(&self, id: GroupId) -> &str {
        self.group(id).map_or("an unknown region", |g| &g.home)
    }
    fn homes(&self, groups: &[GroupId]) -> String {
        let mut homes: Vec<&str> = groups.iter().map(|g| self.home(*g)).collect();
        homes.sort_unstable();
        homes.join(", ")
    }
    fn is_global(&self, id: GroupId) -> bool {
        self.group(id).is_some_and(|g| g.kind == GroupKind::Global)
    }
    /// Whether reading there leaves the gateway's region.
    fn is_far(&self, id: GroupId) -> bool {
        !self.is_global(id) && self.home(id) != &*self.ctx.gateway_region && !self.is_past_here(id)
    }
    /// Whether its past is read at a replica in the gateway's region.
    pub(super) fn is_past_here(&self, id: GroupId) -> bool {
        self.reads_past && self.group(id).is_some_and(|g| g.has_replica_in(&self.ctx.gateway_region))
    }
    /// Reading all of these.
    fn all(&self, groups: &[GroupId]) -> Trips {
        let far = u32::from(groups.iter().any(|g| self.is_far(*g)));
        Trips(far, far)
    }
    /// Writing GLOBAL rows.
    fn written_globally(&self, id: GroupId) -> Note {
        let home = self.home(id);
        let far = u32::from(home != &*self.ctx.gateway_region);
        self.note("Regions", format!("{home} (GLOBAL, told when every region can read it)"), Trips(far, far)).of(&[id])
    }
    fn note(&self, what: &str, place: String, trips: Trips) -> Note {
        Note { text: format!("{what}: {place} (round trips between regions: {trips})"), trips, groups: None }
    }
    /// Reading the first, and the others for what it lacks.
    fn in_turn(&self, what: &str, groups: &Groups) -> Note {
        match groups.near {
            Some(near) if !groups.far.is_empty() && !groups.iter().all(|g| self.is_past_here(g)) => {
                let trips = if self.is_far(near) { Trips(1, 1) } else { Trips::MAYBE };
                let place = format!("{}, else {}", self.home(near), self.homes(&groups.far));
                self.note(what, place, trips).of(&groups.iter().collect::<Vec<_>>())
            }
            _ => self.together(what, &groups.iter().collect::<Vec<_>>()),
        }
    }
    fn together(&self, what: &str, groups: &[GroupId]) -> Note {
        let place = match groups {
            [] => "none".to_string(),
            [one] if self.is_global(*one) => format!("{} (GLOBAL, read here)", self.ctx.gateway_region),
            groups if groups.iter().all(|g| self.is_past_here(*g)) => {
                format!("{} (of the past, read here)", self.homes(groups))
            }
            groups => self.homes(groups),
        };
        self.note(what, place, self.all(groups)).of(groups)
    }

    /// Where a scan reads. `is_limited`: it ends when enough is found.
    pub(super) fn of_scan(&self, s: &Scan, is_limited: bool) -> Option<Note> {
        if !self.is_multi_region(&s.table) {
            return None;
        }
        let gateway = &self.ctx.gateway_region;
        let groups = match &s.regions {
            None => Groups::all(&s.table, gateway),
            Some(regions) => match self.values(&regions.part) {
                Some(values) => Groups::in_regions(&s.table, &values, gateway),
                None => return Some(self.note("Regions", "of the values".into(), Trips::MAYBE)),
            },
        };
        Some(match self.is_near_first && (s.is_point || (is_limited && !s.is_merged)) {
            true => self.in_turn("Regions", &groups),
            false => self.together("Regions", &groups.iter().collect::<Vec<_>>()),
        })
    }

    /// Where the shares of numbers are read.
    pub(super) fn of_shares(&self, sites: &[GroupId]) -> Note {
        self.together("Shares", sites)
    }

    /// What a change touches besides the rows it has read.
    pub(super) fn of_change(&self, d: &DmlPlan) -> Vec<Note> {
        let table = &d.table;
        if !self.is_multi_region(&table.table) {
            return Vec::new();
        }
        let mut notes = Vec::new();
        let changed: Option<Vec<u32>> = match &d.kind {
            DmlPlanKind::Insert { targets, .. } => {
                notes.push(self.inserted(d, targets));
                None
            }
            DmlPlanKind::Update { set, .. } => {
                let mut changed: Vec<u32> = set.iter().map(|s| s.0).collect();
                let follows = |e: &Expr| e.slots().iter().any(|o| set.iter().any(|s| s.0 == *o));
                changed.extend(table.generated.iter().filter(|(_, e)| follows(e)).map(|(o, _)| *o));
                if table.table.region_column().is_some_and(|o| changed.contains(&o)) {
                    notes.push(self.note("Moves Rows", "to the regions of the values".into(), Trips::MAYBE));
                }
                Some(changed)
            }
            DmlPlanKind::Delete => Some(Vec::new()),
        };
        if let Some(group) = table.table.only_group().filter(|g| self.is_global(*g) && changed.is_some()) {
            notes.push(self.written_globally(group));
        }
        let is_written = |o: &u32| changed.as_ref().is_none_or(|c| c.contains(o));
        let random = match &d.kind {
            DmlPlanKind::Insert { random, .. } => random.as_slice(),
            _ => &[],
        };
        let groups: Vec<GroupId> = table.table.groups().collect();
        for (at, index) in table.table.indexes.iter().enumerate().filter(|(_, i)| i.unique) {
            // NULLs are distinct from each other.
            let is_null = |o: u32| matches!(&d.kind, DmlPlanKind::Insert { targets, .. } if !targets.contains(&o));
            let is_checked = !index.columns.iter().any(|c| is_null(c.ordinal));
            if is_checked && reach(table, at, random) == Reach::All && index.columns.iter().any(|c| is_written(&c.ordinal)) {
                notes.push(self.together(&format!("Unique {}", index.name), &groups));
            }
        }
        let id = table.table.id;
        for (fk, parent, _) in d.keys.parents.get(&id).into_iter().flatten() {
            if fk.columns.iter().any(is_written) {
                let groups = Groups::all(&parent.table, &self.ctx.gateway_region);
                notes.push(self.in_turn(&format!("Foreign Key {}", fk.name), &groups));
            }
        }
        for (child, fk) in d.keys.children.get(&id).into_iter().flatten() {
            let is_gone =
                matches!(d.kind, DmlPlanKind::Delete) || fk.parent_columns.iter().any(|o| changed.is_some() && is_written(o));
            if is_gone {
                // What follows from that may go on in other tables.
                let note = self.together(&format!("Foreign Key {}", fk.name), &child.table.groups().collect::<Vec<_>>());
                notes.push(Note { groups: None, ..note });
            }
        }
        notes
    }

    /// Where new rows go.
    fn inserted(&self, d: &DmlPlan, targets: &[u32]) -> Note {
        let table = &d.table.table;
        match table.only_group() {
            Some(group) if self.is_global(group) => return self.written_globally(group),
            Some(group) => return self.together("Regions", &[group]),
            None => {}
        }
        if matches!(d.kind, DmlPlanKind::Insert { infers: true, .. }) {
            return self.note("Regions", "of the parents".into(), Trips::MAYBE);
        }
        let region = table.region_column().and_then(|o| targets.iter().position(|t| *t == o));
        let values: Option<Vec<Datum>> = match (&*d.input, region) {
            (Node::Values(rows), Some(at)) => rows.iter().map(|r| self.value(&r[at])).collect(),
            _ => None,
        };
        match values {
            Some(values) => {
                let groups = Groups::in_regions(table, &values, &self.ctx.gateway_region);
                self.together("Regions", &groups.iter().collect::<Vec<_>>())
            }
            None => self.note("Regions", "of the values".into(), Trips::MAYBE),
        }
    }

    fn values(&self, part: &KeyPart) -> Option<Vec<Datum>> {
        match part {
            KeyPart::Null => Some(Vec::new()),
            KeyPart::Eq(e) => Some(vec![self.value(e)?]),
            KeyPart::In(list) => list.iter().map(|e| self.value(e)).collect(),
            KeyPart::Any(e) => match self.value(e)? {
                Datum::Array(a) => Some(a.items.clone()),
                _ => Some(Vec::new()),
            },
        }
    }
    /// The value of an expression that needs no row, parameter or query.
    fn value(&self, e: &Scalar) -> Option<Datum> {
        let is_open = |e: &Expr| matches!(e, Expr::Param(_) | Expr::Slot(_) | Expr::Arg(_) | Expr::Column(_));
        if e.pending || e.expr.any(&is_open) {
            return None;
        }
        finish(eval(&e.expr, &Env { row: &[], args: &[], params: &[], ctx: self.ctx, memo: &Memo::default() })).ok()
    }
}
