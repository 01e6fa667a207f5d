//! Foresight for escrow columns: what the sites that this node leads will need, and rounds that
//! bring it before a statement is short (`docs/design/escrow.md`, «Redistribution» and
//! `docs/design/forecasters.md`; Samya, §4).
//!
//! An *epoch* has the length that the column says. What the deltas of a site took of each pool in
//! an epoch is its demand; a forecaster (crate `forecast`) makes of past demands the next one's. A
//! site says what it expects whenever a round asks it for an offer. It leads a round itself when it
//! has less than that, and less than a fifth of the most that it had in this epoch; or less than it
//! needs before a round can end, at the rate of the last second.
//!
//! All of it is in memory, and begins anew with the node. Numbers at rest take none: a row is known
//! from its first delta on, for at most [`ROWS_MAX`] rows, until it has been idle for
//! [`IDLE_EPOCHS`].

use super::Gateway;
use super::txn::Txn;
use crate::local::metrics::Counter;
use meridian_base::escrow::{self, Demand, Free};
use meridian_base::{DescriptorId, GroupId, Key, SchemaVersion};
use meridian_forecast::{HISTORY_MAX, Job, Kind, Limits, Season, Worker};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How often demands are collected, and the present tokens compared with what is expected.
const TICK: Duration = Duration::from_secs(1);
const ROWS_MAX: usize = 1_000;
/// A row without demand for so long is forgotten: a day, if epochs have their usual length.
const IDLE_EPOCHS: usize = 288;
/// A round is led when what is free lasts for fewer ticks: a tick may pass before that is seen, and
/// a round takes two round trips.
const TICKS_AHEAD: i128 = 2;
/// A site with less than this part of the most that it had in an epoch is short.
const LOW: i128 = 5;

/// A column, as far as foresight needs it.
#[derive(Clone)]
struct Column {
    table: DescriptorId,
    sites: Vec<GroupId>,
    kind: Kind,
    epoch: Duration,
}

/// A row at a site that this node leads.
#[derive(Default)]
struct Row {
    /// The number of the present epoch, and its demand so far.
    epoch: u64,
    demand: Demand,
    /// The demand of the last tick.
    lately: Free,
    /// Of both pools, oldest first, up to the epoch before.
    past: VecDeque<Free>,
    /// Epochs without demand, up to now.
    idle: usize,
    /// What the present epoch is expected to need.
    expected: Free,
    /// The most that was free in the present epoch.
    most: Free,
}

impl Row {
    /// Epochs have ended. Whether one has.
    fn advance(&mut self, to: u64) -> bool {
        if to <= self.epoch {
            return false;
        }
        let gap = usize::try_from(to - self.epoch - 1).unwrap_or(usize::MAX).min(HISTORY_MAX);
        let ended = std::mem::take(&mut self.demand).tokens();
        self.idle = if ended == Free::default() { self.idle + 1 + gap } else { gap };
        self.past.push_back(ended);
        self.past.extend(std::iter::repeat_n(Free::default(), gap));
        self.past.drain(..self.past.len().saturating_sub(HISTORY_MAX));
        (self.epoch, self.expected, self.most) = (to, Free::default(), Free::default());
        true
    }

    /// What the rest of the epoch is expected to need.
    fn remaining(&self) -> Free {
        let so_far = self.demand.tokens();
        Free { down: (self.expected.down - so_far.down).max(0), up: (self.expected.up - so_far.up).max(0) }
    }

    /// What a round is to bring; `None`: what is free is enough.
    fn wants(&mut self, free: Free) -> Option<Free> {
        self.most = Free { down: self.most.down.max(free.down), up: self.most.up.max(free.up) };
        let remaining = self.remaining();
        let missing = |free: i128, most: i128, remaining: i128, lately: i128| {
            let soon = lately * TICKS_AHEAD;
            match free < soon || (free * LOW < most && free < remaining) {
                true => remaining.max(soon),
                false => 0,
            }
        };
        let wanted = Free {
            down: missing(free.down, self.most.down, remaining.down, self.lately.down),
            up: missing(free.up, self.most.up, remaining.up, self.lately.up),
        };
        (wanted != Free::default()).then_some(wanted)
    }
}

/// What [`keep`] knows.
struct Known {
    worker: Worker,
    rows: BTreeMap<(GroupId, Key), Row>,
    columns: BTreeMap<u32, Column>,
    /// The catalog that `columns` is of.
    version: Option<SchemaVersion>,
}

/// Foresees until the node ends.
pub(crate) async fn keep(gateway: Arc<Gateway>) {
    let start = Instant::now();
    let worker = Worker::new(Limits { rows: 2 * ROWS_MAX, ..Limits::default() }, Arc::new(move || start.elapsed()));
    let has_work = Arc::new(Notify::new());
    let (computing, due) = (worker.clone(), has_work.clone());
    gateway.shared.runtime.spawn_io(
        "forecast",
        Box::pin(async move {
            loop {
                due.notified().await;
                while computing.run_next() {
                    tokio::task::yield_now().await;
                }
            }
        }),
    );
    let mut known = Known { worker, rows: BTreeMap::new(), columns: BTreeMap::new(), version: None };
    loop {
        tokio::time::sleep(TICK).await;
        known.learn_columns(&gateway);
        if known.columns.is_empty() {
            continue;
        }
        if known.collect(&gateway) {
            has_work.notify_one();
        }
        known.look(&gateway);
    }
}

impl Known {
    fn learn_columns(&mut self, gateway: &Gateway) {
        let catalog = gateway.shared.catalog.at(|| gateway.shared.runtime.physical_micros());
        if self.version == Some(catalog.version) {
            return;
        }
        self.version = Some(catalog.version);
        let before = std::mem::take(&mut self.columns);
        for table in catalog.tables_with_escrow() {
            for column in &table.escrow {
                let (sites, kind, epoch) = (column.open_sites().collect(), column.forecaster(), column.epoch());
                self.columns.insert(column.index, Column { table: table.id, sites, kind, epoch });
            }
        }
        // Epochs of another length have other numbers.
        let epoch = |columns: &BTreeMap<u32, Column>, index: u32| columns.get(&index).map(|c| c.epoch);
        let is_as_it_was = |index: u32| epoch(&before, index).is_some() && epoch(&before, index) == epoch(&self.columns, index);
        self.rows.retain(|(_, share), _| escrow::index_of(share).is_some_and(is_as_it_was));
    }

    /// Takes in what was needed since the last time, and asks for forecasts where an epoch has
    /// ended. Whether it has asked for any.
    fn collect(&mut self, gateway: &Gateway) -> bool {
        let now = Duration::from_micros(gateway.shared.runtime.physical_micros());
        let number = |epoch: Duration| u64::try_from(now.as_micros() / epoch.as_micros().max(1)).unwrap_or(u64::MAX);
        let sites: BTreeSet<GroupId> = self.columns.values().flat_map(|c| c.sites.iter().copied()).collect();
        let mut led = BTreeSet::new();
        self.rows.values_mut().for_each(|row| row.lately = Free::default());
        for site in sites {
            let Some(replica) = gateway.shared.groups.local_primary(site) else { continue };
            led.insert(site);
            for (share, demand) in replica.take_demands() {
                let column = escrow::index_of(&share).and_then(|index| self.columns.get(&index));
                let Some(column) = column.filter(|c| c.kind != Kind::None && c.sites.len() > 1) else { continue };
                let place = (site, share);
                if !self.rows.contains_key(&place) && self.rows.len() >= ROWS_MAX {
                    continue;
                }
                let row = self.rows.entry(place).or_insert_with(|| Row { epoch: number(column.epoch), ..Row::default() });
                row.lately = demand.tokens();
                row.demand = row.demand.then(&demand);
            }
        }
        // What another node leads now is its matter.
        self.rows.retain(|(site, _), row| led.contains(site) && row.idle < IDLE_EPOCHS);
        let mut has_asked = false;
        for ((site, share), row) in &mut self.rows {
            let Some(column) = escrow::index_of(share).and_then(|index| self.columns.get(&index)) else { continue };
            if !row.advance(number(column.epoch)) {
                continue;
            }
            has_asked = true;
            for is_up in [false, true] {
                let past = row.past.iter().map(|of| if is_up { of.up } else { of.down } as f64).collect();
                let (kind, season, epoch) = (column.kind, Season::day(column.epoch), row.epoch - 1);
                self.worker.put(Job { row: name(*site, share, is_up), kind, season, epoch, past });
            }
        }
        has_asked
    }

    /// Takes forecasts that are there, and leads rounds for rows that will be short.
    fn look(&mut self, gateway: &Arc<Gateway>) {
        for ((site, share), row) in &mut self.rows {
            let Some(column) = escrow::index_of(share).and_then(|index| self.columns.get(&index)) else { continue };
            let expected = |is_up| {
                let forecast = row.epoch.checked_sub(1).and_then(|e| self.worker.forecast(&name(*site, share, is_up), e));
                forecast.and_then(|f| f.tokens()).unwrap_or(0)
            };
            row.expected = Free { down: expected(false), up: expected(true) };
            let Some(replica) = gateway.shared.groups.local_primary(*site) else { continue };
            replica.expect(share, row.remaining());
            let Some(free) = replica.free(share) else { continue };
            let Some(wanted) = row.wants(free) else { continue };
            let mut sites = column.sites.clone();
            // The first one is who gets them.
            sites.sort_by_key(|other| other != site);
            let (gateway, share, table) = (gateway.clone(), share.clone(), column.table);
            gateway.clone().shared.spawn(async move {
                let txn = Txn::of_node(gateway.clone(), &[table]);
                if let Ok(true) = txn.bring_ahead(&sites, &share, wanted).await {
                    gateway.shared.groups.common.metrics.add(Counter::EscrowRoundsAhead);
                }
            });
        }
    }
}

/// What a row's pool at a site is called among forecasts.
fn name(site: GroupId, share: &Key, is_up: bool) -> Vec<u8> {
    let mut name = Vec::with_capacity(share.as_bytes().len() + 5);
    name.extend_from_slice(&site.0.to_be_bytes());
    name.push(u8::from(is_up));
    name.extend_from_slice(share.as_bytes());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(down: i128, up: i128) -> Free {
        Free { down, up }
    }

    #[test]
    fn epochs_without_demand_count_as_none() {
        let mut row = Row { epoch: 7, ..Row::default() };
        row.demand.add(5);
        row.demand.add(-8);
        assert!(!row.advance(7));
        assert!(row.advance(8));
        assert_eq!((row.past.clone(), row.idle), (VecDeque::from([free(3, 5)]), 0));
        assert!(row.advance(11));
        assert_eq!(row.past, [free(3, 5), free(0, 0), free(0, 0), free(0, 0)]);
        assert_eq!(row.idle, 3);
        row.advance(u64::MAX);
        assert_eq!(row.past.len(), HISTORY_MAX);
    }

    #[test]
    fn a_round_is_led_when_less_is_left_than_is_expected() {
        let mut row = Row { expected: free(0, 30), ..Row::default() };
        assert_eq!(row.wants(free(0, 100)), None);
        assert_eq!(row.wants(free(0, 20)), None, "still a fifth of what there was");
        assert_eq!(row.wants(free(0, 19)), Some(free(0, 30)));
        row.demand.add(12);
        assert_eq!(row.wants(free(0, 19)), None, "18 more are expected");
        assert_eq!(row.wants(free(0, 17)), Some(free(0, 18)));
    }

    #[test]
    fn a_round_is_led_when_what_is_left_does_not_last_until_it_ends() {
        let mut row = Row { lately: free(3, 10), ..Row::default() };
        assert_eq!(row.wants(free(6, 20)), None, "enough for two ticks");
        assert_eq!(row.wants(free(6, 19)), Some(free(0, 20)));
        assert_eq!(row.wants(free(5, 20)), Some(free(6, 0)));
        row.expected = free(0, 30);
        assert_eq!(row.wants(free(6, 19)), Some(free(0, 30)), "more is expected in this epoch");
    }
}
