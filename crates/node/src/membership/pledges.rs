//! What a process without an identity promises others: the rules of founding
//! ([`crate::membership::founding`]) as a state machine, and the file `joining`.

use crate::transport::wire::{Ask, Mustered, Newcomer};
use meridian_base::Result;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

pub(crate) const HEADER: &str = "meridian joining, format 1";

/// A process that promised a candidate not to found a cluster and not to help another candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pledge {
    pub to: Newcomer,
    pub candidacy: u64,
}

/// What a process without an identity knows. See the rules in [`crate::membership::founding`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub me: Newcomer,
    /// Durable.
    pub pledge: Option<Pledge>,
    /// Not durable: a process that is started again has given it up.
    pub candidacy: Option<u64>,
}

impl State {
    pub fn new(me: Newcomer) -> State {
        State { me, pledge: None, candidacy: None }
    }

    /// Answers another process. A pledge has to be durable before the answer leaves.
    pub fn answer(&mut self, from: &Newcomer, ask: Ask) -> Mustered {
        if from.token == self.me.token {
            return Mustered::Newcomer(self.me.clone());
        }
        match ask {
            Ask::Who => Mustered::Newcomer(self.me.clone()),
            Ask::IsOver { candidacy } => Mustered::Over(self.candidacy != Some(candidacy)),
            Ask::Pledge { candidacy } => {
                let pledge = Pledge { to: from.clone(), candidacy };
                match (&self.candidacy, &self.pledge) {
                    (Some(_), _) => Mustered::Refused { why: format!("{} is about to found a cluster itself", self.me.addr) },
                    (None, Some(given)) if *given != pledge => {
                        Mustered::Refused { why: format!("{} is about to join {}", self.me.addr, given.to.addr) }
                    }
                    (None, _) => {
                        self.pledge = Some(pledge);
                        Mustered::Pledged
                    }
                }
            }
        }
    }

    /// Stands as a candidate, unless it is pledged.
    pub fn stand(&mut self, candidacy: u64) -> bool {
        let may = self.pledge.is_none();
        if may {
            self.candidacy = Some(candidacy);
        }
        may
    }

    pub fn give_up(&mut self) {
        self.candidacy = None;
    }

    /// The candidate has said that this candidacy is over.
    pub fn release(&mut self, over: &Pledge) {
        if self.pledge.as_ref() == Some(over) {
            self.pledge = None;
        }
    }

    pub fn text(&self) -> String {
        let mut lines = format!("{HEADER}\ntoken {:032x}\n", self.me.token);
        if let Some(Pledge { to, candidacy }) = &self.pledge {
            lines += &format!("pledged {candidacy:016x} {:032x} {}\n", to.token, to.addr);
        }
        let checksum = crc32c::crc32c(lines.as_bytes());
        format!("{lines}checksum {checksum:08x}\n")
    }

    /// `None` if anything is not as it was written.
    pub fn parse(text: &str, addr: &str) -> Option<State> {
        let (lines, checksum) = text.rsplit_once("checksum ")?;
        if u32::from_str_radix(checksum.trim(), 16).ok()? != crc32c::crc32c(lines.as_bytes()) {
            return None;
        }
        let mut lines = lines.strip_prefix(HEADER)?.strip_prefix('\n')?.lines();
        let token = u128::from_str_radix(lines.next()?.strip_prefix("token ")?, 16).ok()?;
        let mut state = State::new(Newcomer { addr: addr.to_string(), token });
        if let Some(line) = lines.next() {
            let mut words = line.strip_prefix("pledged ")?.splitn(3, ' ');
            let candidacy = u64::from_str_radix(words.next()?, 16).ok()?;
            let token = u128::from_str_radix(words.next()?, 16).ok()?;
            state.pledge = Some(Pledge { to: Newcomer { token, addr: words.next()?.to_string() }, candidacy });
        }
        lines.next().is_none().then_some(state)
    }
}

/// The part that answers others while this process has no identity.
#[derive(Default)]
pub(crate) struct Founding {
    /// None: this process has an identity, or has not looked yet.
    pub state: tokio::sync::Mutex<Option<State>>,
    pub operator: Mutex<Option<mpsc::Sender<oneshot::Sender<Result<()>>>>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::NodeId;
    use proptest::prelude::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use std::collections::{BTreeMap, BTreeSet};

    fn newcomer(n: usize) -> Newcomer {
        Newcomer { addr: format!("n{n}:7000"), token: n as u128 + 1 }
    }

    #[test]
    fn files_of_earlier_programs_are_read() {
        let file = include_str!("../../tests/fixtures/files/joining");
        let mut known = State::new(Newcomer { addr: "a.example:7000".into(), token: 0xabc });
        known.pledge = Some(Pledge { to: Newcomer { addr: "b.example:7000".into(), token: 0xdef }, candidacy: 0x17 });
        assert_eq!(known.text(), file);
        assert_eq!(State::parse(file, &known.me.addr), Some(known));
    }

    #[test]
    fn what_was_written_is_read_back_and_damage_is_noticed() {
        let mut state = State::new(newcomer(3));
        assert_eq!(State::parse(&state.text(), "n3:7000"), Some(state.clone()));
        assert_eq!(state.answer(&newcomer(1), Ask::Pledge { candidacy: 77 }), Mustered::Pledged);
        assert_eq!(State::parse(&state.text(), "n3:7000"), Some(state.clone()));
        let text = state.text();
        for bad in [text.replace("n1", "n2"), text.replace("token", "taken"), text.replace("checksum", ""), String::new()] {
            assert_eq!(State::parse(&bad, "n3:7000"), None, "{bad}");
        }
    }

    #[test]
    fn a_pledge_binds_until_its_candidacy_is_over() {
        let mut state = State::new(newcomer(3));
        assert_eq!(state.answer(&newcomer(1), Ask::Pledge { candidacy: 77 }), Mustered::Pledged);
        assert_eq!(state.answer(&newcomer(1), Ask::Pledge { candidacy: 77 }), Mustered::Pledged, "the answer was lost");
        // A candidacy of the same process is another one, and which of the two is over only that
        // process knows.
        for (from, candidacy) in [(newcomer(1), 78), (newcomer(2), 77)] {
            assert!(matches!(state.answer(&from, Ask::Pledge { candidacy }), Mustered::Refused { .. }));
        }
        assert!(!state.stand(5));
        state.release(&Pledge { to: newcomer(1), candidacy: 76 });
        assert!(!state.stand(5));
        state.release(&Pledge { to: newcomer(1), candidacy: 77 });
        assert!(state.stand(5));
        assert!(matches!(state.answer(&newcomer(1), Ask::Pledge { candidacy: 77 }), Mustered::Refused { .. }));
        assert_eq!(state.answer(&newcomer(1), Ask::IsOver { candidacy: 5 }), Mustered::Over(false));
        state.give_up();
        assert_eq!(state.answer(&newcomer(1), Ask::IsOver { candidacy: 5 }), Mustered::Over(true));
    }

    proptest! {
        #[test]
        fn no_text_panics_the_parser(text: String) {
            let _ = State::parse(&text, "");
            let _ = State::parse(&format!("{HEADER}\n{text}"), "");
        }
    }

    /// A question or an answer on its way.
    #[derive(Clone, Debug)]
    enum Message {
        Ask { from: usize, to: usize, ask: Ask },
        Answer { from: usize, to: usize, about: Ask, answer: Mustered },
    }

    struct Process {
        /// Empty when it has an identity.
        state: Option<State>,
        /// Its cluster is named after its founder.
        cluster: Option<usize>,
        list: BTreeSet<usize>,
        pledged: BTreeSet<usize>,
    }

    /// Processes that stand, ask, crash and lose messages at random, with no regard to order or to
    /// who should stand.
    struct World {
        processes: Vec<Process>,
        messages: Vec<Message>,
        last: u64,
        founders: BTreeSet<usize>,
        has_bug: bool,
    }

    impl World {
        fn step(&mut self, rng: &mut SmallRng) {
            let at = rng.random_range(0..self.processes.len());
            match rng.random_range(0..100) {
                0..=9 => self.stand(at),
                10..=14 => self.crash(at),
                15..=24 => self.ask_of_pledge(at),
                25..=34 => self.look_around(at, rng),
                _ => self.deliver(rng),
            }
        }

        fn stand(&mut self, at: usize) {
            self.last += 1;
            let (candidacy, process) = (self.last, &mut self.processes[at]);
            let Some(state) = &mut process.state else { return };
            // Whoever stands again has given up what it stood for before.
            state.give_up();
            if state.stand(candidacy) {
                process.pledged.clear();
                let asks = process.list.iter().map(|to| Message::Ask { from: at, to: *to, ask: Ask::Pledge { candidacy } });
                self.messages.extend(asks);
                self.found_if_all_pledged(at);
            }
        }

        fn crash(&mut self, at: usize) {
            let process = &mut self.processes[at];
            if let Some(state) = &mut process.state {
                *state = State::parse(&state.text(), &state.me.addr).expect("it was written");
                process.pledged.clear();
            }
        }

        fn ask_of_pledge(&mut self, at: usize) {
            let pledge = self.processes[at].state.as_ref().and_then(|s| s.pledge.clone());
            if let Some(pledge) = pledge {
                let to = pledge.to.token as usize - 1;
                self.messages.push(Message::Ask { from: at, to, ask: Ask::IsOver { candidacy: pledge.candidacy } });
            }
        }

        fn look_around(&mut self, at: usize, rng: &mut SmallRng) {
            let list: Vec<usize> = self.processes[at].list.iter().copied().collect();
            if self.processes[at].state.is_some() && !list.is_empty() {
                let to = list[rng.random_range(0..list.len())];
                self.messages.push(Message::Ask { from: at, to, ask: Ask::Who });
            }
        }

        fn deliver(&mut self, rng: &mut SmallRng) {
            if self.messages.is_empty() {
                return;
            }
            let at = rng.random_range(0..self.messages.len());
            let message = match rng.random_range(0..10) {
                0 => self.messages[at].clone(),
                1 => return drop(self.messages.swap_remove(at)),
                _ => self.messages.swap_remove(at),
            };
            match message {
                Message::Ask { from, to, ask } => {
                    let answer = match &mut self.processes[to] {
                        Process { state: Some(state), .. } => state.answer(&newcomer(from), ask),
                        Process { cluster, .. } => {
                            let cluster = cluster.expect("whoever has no state is a member") as u128 + 1;
                            Mustered::Member { cluster, node: NodeId(1) }
                        }
                    };
                    self.messages.push(Message::Answer { from: to, to: from, about: ask, answer });
                }
                Message::Answer { from, to, about, answer } => self.hear(from, to, about, answer),
            }
        }

        fn hear(&mut self, from: usize, to: usize, about: Ask, answer: Mustered) {
            let process = &mut self.processes[to];
            let Some(state) = &mut process.state else { return };
            match (about, answer) {
                (_, Mustered::Member { cluster, .. }) => {
                    process.cluster = Some(cluster as usize - 1);
                    process.state = None;
                }
                (Ask::Pledge { candidacy }, Mustered::Pledged) if state.candidacy == Some(candidacy) => {
                    process.pledged.insert(from);
                    self.found_if_all_pledged(to);
                }
                (Ask::IsOver { candidacy }, Mustered::Over(true)) => {
                    let over = state.pledge.clone().filter(|p| p.candidacy == candidacy || self.has_bug);
                    over.iter().for_each(|over| state.release(over));
                }
                _ => {}
            }
        }

        fn found_if_all_pledged(&mut self, at: usize) {
            let process = &mut self.processes[at];
            if process.pledged == process.list {
                (process.state, process.cluster) = (None, Some(at));
                self.founders.insert(at);
            }
        }
    }

    /// Two founders that could have known of each other; and how many runs founded anything.
    fn explore(seeds: u64, has_bug: bool) -> (Option<(u64, BTreeSet<usize>)>, u64) {
        let mut founded = 0;
        for seed in 0..seeds {
            let mut rng = SmallRng::seed_from_u64(seed);
            let count = rng.random_range(2..6);
            // Everybody knows the first one and is known by nobody in particular; the rest of the
            // lists is chance.
            let list = |at: usize, rng: &mut SmallRng| -> BTreeSet<usize> {
                (0..count).filter(|other| *other != at && (*other == 0 || rng.random_bool(0.5))).collect()
            };
            let mut processes: Vec<Process> = Vec::new();
            for at in 0..count {
                let mut list = list(at, &mut rng);
                if list.is_empty() {
                    list.insert(count - 1);
                }
                let state = Some(State::new(newcomer(at)));
                processes.push(Process { state, cluster: None, list, pledged: BTreeSet::new() });
            }
            let mut world = World { processes, messages: Vec::new(), last: 0, founders: BTreeSet::new(), has_bug };
            for _ in 0..600 {
                world.step(&mut rng);
            }
            if world.founders.len() > 1 {
                return (Some((seed, world.founders)), founded);
            }
            let clusters: BTreeMap<usize, ()> = world.processes.iter().filter_map(|p| Some((p.cluster?, ()))).collect();
            assert!(clusters.len() <= 1);
            founded += u64::from(!world.founders.is_empty());
        }
        (None, founded)
    }

    #[test]
    fn processes_that_share_one_found_one_cluster() {
        const SEEDS: u64 = 4_000;
        let (two, founded) = explore(SEEDS, false);
        assert_eq!(two, None);
        assert!(founded > SEEDS / 2, "only {founded} of {SEEDS} runs founded anything");
    }

    /// Believing that whatever is asked about is over is what the numbers are for.
    #[test]
    fn the_exploration_finds_two_clusters_where_a_rule_is_left_out() {
        assert!(explore(4_000, true).0.is_some());
    }
}
