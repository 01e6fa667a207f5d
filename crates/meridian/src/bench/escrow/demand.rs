//! Events of all sites: a series, shifted per site, thinned, and compressed in time (Samya,
//! §5.1.2).
//!
//! Each creation is an acquisition of one token, each deletion the release of one that its site
//! holds. Which one it releases is drawn when the events are made: any that the site would hold if
//! nothing was ever refused. So all modes and the oracle have the same events, and a client
//! releases only what it has acquired: the release of a refused acquisition is never sent.

use super::series::{Bin, HOUR, Random};
use super::sites::Site;
use std::time::Duration;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Acquire,
    Release(Held),
    /// The exact number.
    Read,
}

/// A token of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Since before the first event.
    Before,
    /// Acquired by the event at this position of the same site.
    Since(usize),
}

/// A request of a site's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// From the start of the run.
    pub at: Duration,
    pub what: What,
}

/// How events are made of a series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Where UTC begins: a position in the series.
    pub start: usize,
    /// How long the run takes.
    pub time: Duration,
    /// How long a bin takes.
    pub bin: Duration,
    /// The share of events, and of tokens in use, that is kept.
    pub scale: f64,
    /// The share of requests that are reads, added to the others.
    pub reads: f64,
    pub seed: u64,
}

/// What all sites ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    /// Per site, in the order of time.
    pub sites: Vec<Vec<Event>>,
    /// Tokens that each site holds at the start.
    pub held: Vec<i64>,
}

impl Demand {
    pub fn new(series: &[Bin], sites: &[Site], load: &Load) -> Demand {
        let mut demand = Demand::default();
        for (n, site) in sites.iter().enumerate() {
            let held = (f64::from(at_site(series, site, load.start, -1).in_use) * load.scale).floor() as i64;
            let mut random = Random::new(load.seed.wrapping_mul(1_000).wrapping_add(n as u64));
            let bins = (0..bins_of(load.time, load.bin)).map(|bin| at_site(series, site, load.start, bin));
            let arrivals = arrivals(bins, load, &mut random);
            demand.sites.push(paired(&arrivals, held, &mut random));
            demand.held.push(held);
        }
        demand
    }

    /// How many tokens are in use at the start.
    pub fn in_use(&self) -> i64 {
        self.held.iter().sum()
    }
}

/// A bin of the series as a site has it. After the series' end it begins again.
fn at_site(series: &[Bin], site: &Site, start: usize, bin: i64) -> Bin {
    let at = start as i64 + i64::from(site.shift) * HOUR as i64 + bin;
    series[at.rem_euclid(series.len() as i64) as usize]
}

fn bins_of(time: Duration, bin: Duration) -> i64 {
    (time.as_secs_f64() / bin.as_secs_f64()).ceil() as i64
}

/// Where to start in the last bins of a series, so that what all sites have in use rises most until
/// the end of the run: the bound means little where demand falls. No site comes to the series' end,
/// behind which demand jumps.
pub(super) fn rising_start(series: &[Bin], sites: &[Site], last: usize, time: Duration, bin: Duration) -> usize {
    let bins = bins_of(time, bin);
    let rise = |start: &usize| -> i64 {
        let of_site = |site| (0..bins).map(|bin| at_site(series, site, *start, bin).net()).sum::<i64>();
        sites.iter().map(of_site).sum()
    };
    let ahead = sites.iter().map(|site| site.shift.max(0) as usize * HOUR).max().unwrap_or(0);
    let end = series.len().saturating_sub(ahead + bins as usize);
    // Of equal ones the first.
    (end.saturating_sub(last)..=end).rev().max_by_key(rise).unwrap_or(0)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Create,
    Delete,
    Read,
}

/// When what happens, in order: each event at a random moment of its bin.
fn arrivals(bins: impl Iterator<Item = Bin>, load: &Load, random: &mut Random) -> Vec<(Duration, Kind)> {
    let mut all = Vec::new();
    let (mut creations, mut deletions) = (Thinned::new(load.scale), Thinned::new(load.scale));
    for (n, bin) in (0..).zip(bins) {
        let kinds = [(Kind::Create, creations.keep(bin.creations)), (Kind::Delete, deletions.keep(bin.deletions))];
        for (kind, count) in kinds {
            all.extend((0..count).map(|_| (load.bin * n + load.bin.mul_f64(random.share()), kind)));
        }
    }
    all.retain(|(at, _)| *at < load.time);
    let reads = (all.len() as f64 * load.reads / (1.0 - load.reads)).round() as usize;
    all.extend((0..reads).map(|_| (load.time.mul_f64(random.share()), Kind::Read)));
    all.sort();
    all
}

/// Keeps a share of what is counted; what a division leaves counts for the next one.
struct Thinned {
    scale: f64,
    seen: f64,
    kept: u64,
}

impl Thinned {
    fn new(scale: f64) -> Thinned {
        Thinned { scale, seen: 0.0, kept: 0 }
    }
    fn keep(&mut self, count: u32) -> u64 {
        self.seen += f64::from(count);
        let kept = (self.seen * self.scale).floor() as u64;
        let more = kept - self.kept;
        self.kept = kept;
        more
    }
}

/// Gives each deletion a token that its site holds. One that would find none is left out.
fn paired(arrivals: &[(Duration, Kind)], held: i64, random: &mut Random) -> Vec<Event> {
    let mut before = usize::try_from(held).unwrap_or(0);
    let mut since: Vec<usize> = Vec::new();
    let mut events: Vec<Event> = Vec::new();
    for (at, kind) in arrivals {
        let what = match kind {
            Kind::Read => What::Read,
            Kind::Create => {
                since.push(events.len());
                What::Acquire
            }
            Kind::Delete if before + since.len() == 0 => continue,
            Kind::Delete => match random.below(before + since.len()) {
                drawn if drawn < before => {
                    before -= 1;
                    What::Release(Held::Before)
                }
                drawn => What::Release(Held::Since(since.swap_remove(drawn - before))),
            },
        };
        events.push(Event { at: *at, what });
    }
    events
}

#[cfg(test)]
mod tests {
    use super::super::series::synthetic;
    use super::super::sites::sites;
    use super::*;
    use std::collections::BTreeSet;

    const LOAD: Load =
        Load { start: 0, time: Duration::from_secs(20), bin: Duration::from_secs(5), scale: 1.0, reads: 0.0, seed: 1 };

    fn flat(bins: usize) -> Vec<Bin> {
        vec![Bin { creations: 10, deletions: 10, in_use: 100 }; bins]
    }
    fn count(events: &[Event], which: impl Fn(What) -> bool) -> usize {
        events.iter().filter(|e| which(e.what)).count()
    }
    fn is_release(what: What) -> bool {
        matches!(what, What::Release(_))
    }

    #[test]
    fn a_bin_is_as_many_events_in_its_time() {
        let demand = Demand::new(&flat(1_000), &sites(2), &LOAD);
        assert_eq!(demand.held, [100, 100]);
        for events in &demand.sites {
            assert_eq!((count(events, |w| w == What::Acquire), count(events, is_release)), (40, 40));
            assert!(events.is_sorted_by_key(|e| e.at));
            let in_second_bin = events.iter().filter(|e| (5..10).contains(&e.at.as_secs())).count();
            assert_eq!(in_second_bin, 20);
        }
        assert_ne!(demand.sites[0], demand.sites[1], "sites draw their own moments");
        assert_eq!(demand, Demand::new(&flat(1_000), &sites(2), &LOAD));
    }

    #[test]
    fn a_part_of_a_bin_and_a_part_of_the_events_are_kept() {
        let load = Load { time: Duration::from_millis(12_500), scale: 0.25, ..LOAD };
        let events = &Demand::new(&flat(1_000), &sites(1), &load).sites[0];
        assert!(events.iter().all(|e| e.at < load.time));
        let acquired = count(events, |w| w == What::Acquire);
        assert!((5..=7).contains(&acquired), "{acquired}");
        let whole = &Demand::new(&flat(1_000), &sites(1), &Load { scale: 0.25, ..LOAD });
        assert_eq!((count(&whole.sites[0], is_release), whole.held[0]), (10, 25), "remainders are carried over");
    }

    #[test]
    fn every_site_has_its_own_time_of_day() {
        let mut series = flat(1_000);
        // Eight hours after the start, one more creation: at the start in Hong Kong, and nowhere
        // else.
        series[8 * HOUR].creations = 11;
        let demand = Demand::new(&series, &sites(5), &LOAD);
        let acquired: Vec<usize> = demand.sites.iter().map(|s| count(s, |w| w == What::Acquire)).collect();
        assert_eq!(acquired, [40, 41, 40, 40, 40]);
        // Before the start there is the end.
        series[1_000 - 8 * HOUR - 1].in_use = 7;
        assert_eq!(Demand::new(&series, &sites(5), &LOAD).held, [7, 100, 100, 100, 100]);
    }

    #[test]
    fn a_token_is_released_once_and_after_it_was_acquired() {
        let demand = Demand::new(&synthetic(), &sites(3), &Load { scale: 0.3, ..LOAD });
        for (events, held) in demand.sites.iter().zip(&demand.held) {
            let mut released = BTreeSet::new();
            let before = count(events, |w| w == What::Release(Held::Before)) as i64;
            for (at, event) in events.iter().enumerate() {
                if let What::Release(Held::Since(of)) = event.what {
                    assert!(of < at && events[of].what == What::Acquire && released.insert(of));
                }
            }
            assert!(before <= *held && before > 0);
        }
        // Nothing held at the start: all that is released was acquired here.
        let empty = vec![Bin { creations: 5, deletions: 9, in_use: 0 }; 100];
        let events = &Demand::new(&empty, &sites(1), &LOAD).sites[0];
        assert_eq!(count(events, |w| w == What::Release(Held::Before)), 0);
        assert!(count(events, is_release) <= count(events, |w| w == What::Acquire));
    }

    #[test]
    fn a_run_starts_where_demand_rises() {
        let mut series = flat(1_000);
        // In the morning of the site, long before, and where the series ends.
        (900..904).for_each(|at| series[at].creations = 12);
        (100..104).for_each(|at| series[at].creations = 99);
        series[999].creations = 13;
        series[0].creations = 999;
        let sites = &sites(2)[1..];
        let start = |last| rising_start(&series, sites, last, LOAD.time, LOAD.bin);
        assert_eq!(start(300), 900 - 8 * HOUR);
        assert_eq!(start(1_000), 100 - 8 * HOUR);
        let all = Demand::new(&series, sites, &Load { start: start(300), ..LOAD });
        assert_eq!(count(&all.sites[0], |w| w == What::Acquire), 48);
    }

    #[test]
    fn reads_are_a_share_of_all() {
        let load = Load { reads: 0.75, ..LOAD };
        let events = &Demand::new(&flat(1_000), &sites(1), &load).sites[0];
        assert_eq!((events.len(), count(events, |w| w == What::Read)), (320, 240));
    }
}
