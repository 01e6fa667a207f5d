//! Golden scripts of the schema lease's coordinator: what it is told, and what it does
//! (`golden_leases/*.txt`, whose names say what they show). `UPDATE_GOLDEN=1 cargo test -p
//! meridian-region` rewrites them; the difference is then reviewed.
//!
//! Times are milliseconds; `100+3` is the third timestamp after the first of millisecond 100. `2#3`
//! is the third grant of group 2.
//!
//! ```text
//! > catalog v5 2#1:1000 3#0:0      a coordinator of version 5; the groups' rows, with their bounds
//! > round trip 10                  the largest one; a commit takes as long, and clocks differ by 250
//! > 500                            it is so late; all that follows happens then
//! > tick
//! > logged 2#2 | failed 2#2        the row is durable, or was not written
//! > answer 2#2 [until 700]         the group answers that grant, with its bound or a later one
//! > heard 2                        by other ways
//! > step [with transaction [of 300]]  a step of descriptor 7 begins; the work of its votes
//! > committed v6 at 700            its transaction
//! > abandoned
//! > add 4 | remove 4               groups
//! > waits out                      whom the step waits out, and until when
//! ```

use crate::golden::{millis, rerun_all, show, timestamp};
use meridian_base::record::SchemaGrant;
use meridian_base::{DescriptorId, GroupId, SchemaVersion, Timestamp};
use meridian_region::schema_lease::{Action, Delays, Granted, SchemaLeases};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

struct Script {
    now: Timestamp,
    delays: Delays,
    leases: Option<SchemaLeases>,
    /// The bounds of the grants.
    bounds: BTreeMap<(GroupId, u64), Timestamp>,
}

fn version(text: &str) -> SchemaVersion {
    SchemaVersion(text.strip_prefix('v').expect("a version, as v3").parse().expect("a number"))
}
fn group(text: &str) -> GroupId {
    GroupId(text.parse().expect("a group"))
}
fn grant(text: &str) -> (GroupId, u64) {
    let (of, seq) = text.split_once('#').expect("a grant, as 2#3");
    (group(of), seq.parse().expect("a number"))
}
fn delays(round_trip: Duration) -> Delays {
    Delays { round_trip, commit: round_trip, max_offset: Duration::from_millis(250) }
}

impl Script {
    fn new() -> Script {
        Script { now: Timestamp::MIN, delays: delays(Duration::from_millis(10)), leases: None, bounds: BTreeMap::new() }
    }

    fn run(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (now, mut actions, mut out) = (self.now, Vec::new(), String::new());
        if let ["catalog", current, ref rows @ ..] = words[..] {
            let rows = rows.iter().map(|row| {
                let (of, bound) = row.split_once(':').expect("a row, as 2#1:1000");
                let (group, seq) = grant(of);
                (group, Granted { seq, bound: timestamp(bound) })
            });
            let current = SchemaGrant { version: version(current), ..SchemaGrant::default() };
            self.leases = Some(SchemaLeases::new(current, rows.collect(), self.delays));
            return out;
        }
        let leases = self.leases.as_mut().expect("`catalog` comes first");
        match words[..] {
            [time] if time.starts_with(|c: char| c.is_ascii_digit()) => self.now = timestamp(time),
            ["round", "trip", t] => {
                self.delays = delays(Duration::from_millis(millis(t)));
                leases.set_delays(self.delays);
            }
            ["tick"] => leases.tick(now, &mut actions),
            ["logged", of] => {
                let (group, seq) = grant(of);
                leases.logged(group, seq, now, &mut actions);
            }
            ["failed", of] => {
                let (group, seq) = grant(of);
                leases.log_failed(group, seq);
            }
            ["answer", of, ref until @ ..] => {
                let (group, seq) = grant(of);
                let bound = if let ["until", t] = until { timestamp(t) } else { self.bounds[&(group, seq)] };
                leases.answered(group, seq, bound, now, &mut actions);
            }
            ["heard", of] => leases.heard(group(of), now),
            ["step", ref with @ ..] => {
                let certifying = match with {
                    [] => None,
                    ["with", "transaction"] => Some(Duration::ZERO),
                    ["with", "transaction", "of", t] => Some(Duration::from_millis(millis(t))),
                    _ => panic!("unknown command: {line}"),
                };
                assert!(leases.begin_step(vec![DescriptorId(7)], certifying, now, &mut actions), "one at a time");
            }
            ["committed", made, "at", t] => leases.step_committed(version(made), timestamp(t), now, &mut actions),
            ["abandoned"] => leases.step_abandoned(now, &mut actions),
            ["add", of] => leases.add_group(group(of)),
            ["remove", of] => leases.remove_group(group(of)),
            ["waits", "out"] => {
                let answer = match leases.waits_out(now) {
                    Some((groups, until)) => {
                        let groups: Vec<String> = groups.iter().map(|g| g.0.to_string()).collect();
                        format!("{} until {}", groups.join(" "), show(until))
                    }
                    None => "nobody".into(),
                };
                writeln!(out, "{answer}").expect("a string grows");
            }
            _ => panic!("unknown command: {line}"),
        }
        for action in actions {
            self.tell(action, &mut out);
        }
        out
    }

    fn tell(&mut self, action: Action, out: &mut String) {
        let told = match action {
            Action::Log { group, row, grant } => {
                self.bounds.insert((group, row.seq), grant.bound);
                let row_bound = if row.bound == grant.bound { String::new() } else { format!(", row {}", show(row.bound)) };
                format!("log {}#{} v{} until {}{row_bound}", group.0, row.seq, grant.version.0, show(grant.bound))
            }
            Action::Send { group, grant } => {
                self.bounds.insert((group, grant.seq), grant.bound);
                format!("send {}#{} v{} until {}", group.0, grant.seq, grant.version.0, show(grant.bound))
            }
            Action::Commit { above, seqs, rows } => {
                let rows = seqs.iter().map(|(g, seq)| format!(", {}#{seq} until {}", g.0, show(rows[g].bound)));
                format!("commit above {}{}", show(above), rows.collect::<String>())
            }
            Action::Acknowledge { version } => format!("acknowledge v{}", version.0),
        };
        writeln!(out, "{told}").expect("a string grows");
    }
}

#[test]
fn golden_scripts_of_the_schema_lease_do_as_they_say() {
    rerun_all("golden_leases", || {
        let mut script = Script::new();
        move |command: &str| script.run(command)
    });
}
