//! Scripts of a replica's life (`life/*.txt`): it leads, hands over, loses its term, takes a
//! snapshot, leaves.
//!
//! A script is a list of commands (`> …`), each followed by what it prints. The cluster is
//! simulated; which node leads is chance, so scripts name it by a variable: `let p = primary of d`
//! and from then on `$p`.
//!
//! | command | meaning |
//! | --- | --- |
//! | `start R regions of Z zones, seed S` | a node in each zone, all started |
//! | `let NAME = primary of DATABASE` | the node that leads the database's group |
//! | `let NAME = another than NODE …` | the first running node that is none of these |
//! | `sql NODE DATABASE: TEXT` | the rows of the last statement, or the error |
//! | `until sql NODE DATABASE: TEXT` | the same, again and again until it is no error |
//! | `until primary of DATABASE is [not] NODE` | waits for the leader to be there, or elsewhere |
//! | `until NODE votes in DATABASE`, `until NODE holds no replica of DATABASE` | waits for replicas to come or go (`catalog`: the catalog's) |
//! | `until NODE ends` | waits until its process ends by itself |
//! | `pass N s` | time passes |
//! | `kill`, `restart`, `lose disk of`, `sleep`, `wake`, `drain`, `decommission NODE` | what happens to a node |
//! | `cut off NODE`, `join NODE` | from and to all other nodes |

use super::script::{Cluster, nodes_in};
use meridian_base::{GroupId, NodeId};
use meridian_node::wire::Standing;
use meridian_sim::cluster::meridian::Tuning;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much simulated time a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

struct Script {
    cluster: Option<Cluster>,
    named: BTreeMap<String, String>,
    down: BTreeSet<String>,
}

impl Script {
    fn cluster(&mut self) -> &mut Cluster {
        self.cluster.as_mut().expect("a script begins with `start`")
    }

    fn nodes(&mut self) -> Vec<String> {
        self.cluster().nodes()
    }

    /// A node that can be asked.
    fn running(&mut self, but: &[&str]) -> String {
        let down = self.down.clone();
        let mut nodes = self.nodes().into_iter();
        nodes.find(|n| !down.contains(n) && !but.contains(&n.as_str())).expect("a running node")
    }

    /// Runs one command and returns what it prints.
    fn run(&mut self, command: &str) -> String {
        let mut words = String::new();
        for word in command.split_inclusive(' ') {
            let name = word.trim_end().trim_end_matches([':', ',']);
            match name.strip_prefix('$') {
                Some(variable) => words.push_str(&word.replace(name, &self.named[variable])),
                None => words.push_str(word),
            }
        }
        let command = words.as_str();
        if let Some(statement) = command.strip_prefix("until sql ") {
            return self.until(command, |s| s.sql(statement).ok());
        }
        if let Some(statement) = command.strip_prefix("sql ") {
            return self.sql(statement).unwrap_or_else(|error| error);
        }
        match command.split(' ').collect::<Vec<_>>()[..] {
            ["start", regions, "regions" | "region", "of", zones, "zones,", "seed", seed] => {
                let number = |text: &str| text.parse().expect("a number");
                self.cluster = Some(Cluster::start(number(regions), number(zones), number(seed) as u64, Tuning::default()));
                String::new()
            }
            ["let", name, "=", "primary", "of", database] => {
                let primary = self.until(command, |s| s.primary(database));
                self.named.insert(name.to_string(), primary);
                String::new()
            }
            ["let", name, "=", "another", "than", ref others @ ..] => {
                let other = self.running(others);
                self.named.insert(name.to_string(), other);
                String::new()
            }
            ["until", "primary", "of", database, "is", "not", node] => {
                self.until(command, |s| s.primary(database).filter(|p| p != node).map(|_| String::new()))
            }
            ["until", "primary", "of", database, "is", node] => {
                self.until(command, |s| s.primary(database).filter(|p| p == node).map(|_| String::new()))
            }
            ["until", node, "holds", "no", "replica", "of", database] => {
                self.until(command, |s| (!s.is_among(node, database, &[6, 7])?).then(String::new))
            }
            ["until", node, "votes", "in", database] => {
                self.until(command, |s| s.is_among(node, database, &[6])?.then(String::new))
            }
            ["until", node, "ends"] => {
                self.down.insert(node.to_string());
                self.until(command, |s| s.cluster().has_ended(node).then(String::new))
            }
            ["pass", seconds, "s"] => {
                self.cluster().pass(Duration::from_secs(seconds.parse().expect("a number")));
                String::new()
            }
            ["kill", node] => self.stops(node, Cluster::kill),
            ["restart", node] => self.goes_on(node, Cluster::restart),
            ["lose", "disk", "of", node] => {
                self.cluster().lose_disk(node);
                String::new()
            }
            ["sleep", node] => self.stops(node, Cluster::sleep),
            ["wake", node] => self.goes_on(node, Cluster::wake),
            ["cut", "off", node] => self.stops(node, |c, node| each_other(c, node, Cluster::cut)),
            ["join", node] => self.goes_on(node, |c, node| each_other(c, node, Cluster::mend)),
            ["drain", node] => self.stand(node, Standing::Draining),
            ["decommission", node] => self.stand(node, Standing::Decommissioning),
            _ => panic!("no such command: {command}"),
        }
    }

    fn stops(&mut self, node: &str, how: impl Fn(&mut Cluster, &str)) -> String {
        self.down.insert(node.to_string());
        how(self.cluster(), node);
        String::new()
    }

    fn goes_on(&mut self, node: &str, how: impl Fn(&mut Cluster, &str)) -> String {
        self.down.remove(node);
        how(self.cluster(), node);
        String::new()
    }

    fn stand(&mut self, node: &str, standing: Standing) -> String {
        let asked = self.running(&[]);
        let id = self.cluster().id_at(&asked, node);
        match self.cluster().stand(&asked, id, standing) {
            Ok(()) => String::new(),
            Err(e) => format!("{} {}", e.sqlstate(), e.message()),
        }
    }

    /// `NODE DATABASE: TEXT`. Rows, or the error.
    fn sql(&mut self, statement: &str) -> Result<String, String> {
        let (place, text) = statement.split_once(": ").expect("NODE DATABASE: TEXT");
        let (node, database) = place.split_once(' ').expect("a node and a database");
        match self.cluster().try_sql_at(node, database, text) {
            Ok(rows) => Ok(rows.iter().map(|row| row.join(" | ") + "\n").collect()),
            Err(e) => Err(format!("{} {}\n", e.sqlstate(), e.message())),
        }
    }

    /// The row of `SHOW RANGES` about a database's group, if it can be told now.
    fn range(&mut self, database: &str) -> Option<Vec<String>> {
        let asked = self.running(&[]);
        if database == "catalog" {
            let rows = self.cluster().try_sql_at(&asked, "defaultdb", "SHOW RANGES").ok()?;
            return rows.into_iter().find(|row| row[0].trim_start_matches('g') == GroupId::CATALOG.0.to_string());
        }
        let rows = self.cluster().try_sql_at(&asked, "defaultdb", &format!("SHOW RANGES FROM DATABASE {database}"));
        rows.ok()?.into_iter().next()
    }

    fn name_of(&mut self, id: NodeId) -> Option<String> {
        let asked = self.running(&[]);
        self.nodes().into_iter().find(|name| self.cluster().id_at(&asked, name) == id)
    }

    /// The node that leads a database's group, if that can be told now.
    fn primary(&mut self, database: &str) -> Option<String> {
        let range = self.range(database)?;
        let id = range[4].trim_start_matches('n').parse().ok()?;
        self.name_of(NodeId(id))
    }

    /// Whether a node is named in one of these columns of `SHOW RANGES`: 6 has the voters of a
    /// group, 7 its other replicas.
    fn is_among(&mut self, node: &str, database: &str, columns: &[usize]) -> Option<bool> {
        let range = self.range(database)?;
        let asked = self.running(&[]);
        let id = self.cluster().id_at(&asked, node);
        Some(columns.iter().any(|column| nodes_in(&range[*column]).contains(&id)))
    }

    fn until(&mut self, command: &str, mut look: impl FnMut(&mut Script) -> Option<String>) -> String {
        let end = self.cluster().elapsed() + PATIENCE;
        loop {
            if let Some(seen) = look(self) {
                return seen;
            }
            assert!(self.cluster().elapsed() < end, "waited in vain: {command}");
            self.cluster().pass(Duration::from_millis(500));
        }
    }
}

fn each_other(cluster: &mut Cluster, node: &str, how: impl Fn(&mut Cluster, &str, &str)) {
    for other in cluster.nodes().into_iter().filter(|other| other != node) {
        how(cluster, node, &other);
    }
}

/// Runs a script and compares what it prints; with `UPDATE_GOLDEN` set, writes it into the file.
fn check(path: &Path) {
    let text = std::fs::read_to_string(path).expect("a script");
    let mut script = Script { cluster: None, named: BTreeMap::new(), down: BTreeSet::new() };
    let mut printed = String::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            printed.push_str(&format!("{line}\n{}", script.run(command)));
        } else if line.is_empty() || line.starts_with('#') {
            printed.push_str(&format!("{line}\n"));
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, printed).expect("the script");
    } else {
        assert_eq!(text, printed, "{}", path.display());
    }
}

macro_rules! scripts {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(&directory().join(concat!(stringify!($name), ".txt")));
        })*

        #[test]
        fn every_script_runs() {
            let files = std::fs::read_dir(directory()).expect("scripts");
            let files: BTreeSet<PathBuf> = files.map(|f| f.expect("a file").path()).collect();
            let run = [$(stringify!($name)),*].map(|name| directory().join(name).with_extension("txt"));
            assert_eq!(files, BTreeSet::from(run));
        }
    };
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regions/life")
}

scripts! {
    a_primary_that_is_killed_is_followed_by_another
    a_primary_that_is_cut_off_commits_nothing
    a_primary_that_sleeps_answers_nothing_old
    a_node_that_drains_hands_over
    a_node_without_its_disk_gets_a_snapshot
    a_replica_leaves_with_its_node
    a_node_that_owes_a_dropped_index_leads
}
