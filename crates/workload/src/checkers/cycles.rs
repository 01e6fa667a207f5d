//! Finding and naming cycles in a dependency graph.
//!
//! Classes are tried from the worst to the mildest, first without real-time edges and, only if the
//! history is serializable so far, with them. A class is found by fixing one edge that the class
//! needs and looking for a way back over the edges that the class allows, inside one strongly
//! connected component.

use super::anomaly::Kind;
use super::graph::{Graph, Node};
use std::collections::BTreeSet;

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// The second overwrote the first's version.
    WriteWrite,
    /// The second read the first's version.
    WriteRead,
    /// The second overwrote the version that the first read.
    ReadWrite,
    /// The second inserted a row that the first's predicate would have found.
    ReadWritePredicate,
    /// The first was over before the second began.
    RealTime,
}

impl Edge {
    fn is_anti_dependency(self) -> bool {
        matches!(self, Edge::ReadWrite | Edge::ReadWritePredicate)
    }
}

/// A cycle, and its class.
#[derive(Clone, Debug)]
pub struct Cycle {
    pub kind: Kind,
    /// Each step starts where the one before ended, and the last ends where the first starts.
    pub steps: Vec<(Node, Edge, Node)>,
}

/// Cycles of one class that are reported; one is enough to condemn, some more help to understand.
const REPORTED_PER_KIND: usize = 3;

/// The edge that a cycle of a class must have, and those that it may have.
struct Class {
    kind: Kind,
    needs: fn(Edge) -> bool,
    may: fn(Edge) -> bool,
}

const CLASSES: [Class; 5] = [
    Class { kind: Kind::G0, needs: |e| e == Edge::WriteWrite, may: |e| e == Edge::WriteWrite },
    Class { kind: Kind::G1c, needs: |e| e == Edge::WriteRead, may: |e| matches!(e, Edge::WriteWrite | Edge::WriteRead) },
    Class { kind: Kind::GSingle, needs: Edge::is_anti_dependency, may: |e| matches!(e, Edge::WriteWrite | Edge::WriteRead) },
    Class {
        kind: Kind::G2Item,
        needs: |e| e == Edge::ReadWrite,
        may: |e| matches!(e, Edge::WriteWrite | Edge::WriteRead | Edge::ReadWrite),
    },
    Class { kind: Kind::G2, needs: |e| e == Edge::ReadWritePredicate, may: |e| e != Edge::RealTime },
];

/// The cycles of a graph. If there are some without real-time edges, only those.
pub fn find(graph: &Graph<Edge>) -> Vec<Cycle> {
    let without: Vec<Cycle> = CLASSES.iter().flat_map(|class| of_class(graph, class, false)).collect();
    if !without.is_empty() {
        return without;
    }
    CLASSES.iter().flat_map(|class| of_class(graph, class, true)).collect()
}

fn of_class(graph: &Graph<Edge>, class: &Class, real_time: bool) -> Vec<Cycle> {
    let may = |edge: Edge| (class.may)(edge) || (real_time && edge == Edge::RealTime);
    // The way back may use other edges than the one that is needed (G-single), so components are
    // those of both.
    let component = graph.components(|edge| may(edge) || (class.needs)(edge));
    let mut cycles: Vec<Cycle> = Vec::new();
    let mut covered = BTreeSet::new();
    for from in 0..graph.len() {
        for (to, edge) in graph.edges(from) {
            // One cycle per component is telling enough.
            if !(class.needs)(*edge) || component[from] != component[*to] || covered.contains(&component[from]) {
                continue;
            }
            let inside = |next: Node, edge: Edge| may(edge) && component[next] == component[from];
            let Some(back) = graph.path(*to, from, inside) else { continue };
            let mut steps = vec![(from, *edge, *to)];
            steps.extend(back);
            // The shortest way back may make it a milder class's cycle, which is reported as that.
            if class_of(&steps) != class.kind {
                continue;
            }
            covered.insert(component[from]);
            let kind = if real_time { class.kind.with_real_time() } else { class.kind };
            cycles.push(Cycle { kind, steps });
            if cycles.len() == REPORTED_PER_KIND {
                return cycles;
            }
        }
    }
    cycles
}

/// The class of a cycle, real-time edges aside.
fn class_of(steps: &[(Node, Edge, Node)]) -> Kind {
    let count = |wanted: fn(Edge) -> bool| steps.iter().filter(|(_, edge, _)| wanted(*edge)).count();
    match count(Edge::is_anti_dependency) {
        0 if count(|e| e == Edge::WriteRead) == 0 => Kind::G0,
        0 => Kind::G1c,
        1 => Kind::GSingle,
        _ if count(|e| e == Edge::ReadWritePredicate) == 0 => Kind::G2Item,
        _ => Kind::G2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(nodes: usize, edges: &[(Node, Edge, Node)]) -> Vec<Kind> {
        let mut graph = Graph::new(nodes);
        edges.iter().for_each(|(from, edge, to)| graph.add_edge(*from, *to, *edge));
        let cycles = find(&graph);
        for cycle in &cycles {
            let (first, last) = (cycle.steps[0], cycle.steps[cycle.steps.len() - 1]);
            assert_eq!(first.0, last.2, "closed");
        }
        cycles.iter().map(|c| c.kind).collect()
    }

    #[test]
    fn each_class_is_named() {
        use Edge::*;
        assert_eq!(kinds(2, &[(0, WriteWrite, 1), (1, WriteWrite, 0)])[0], Kind::G0);
        assert_eq!(kinds(2, &[(0, WriteRead, 1), (1, WriteRead, 0)])[0], Kind::G1c);
        assert_eq!(kinds(2, &[(0, WriteRead, 1), (1, ReadWrite, 0)])[0], Kind::GSingle);
        assert_eq!(kinds(2, &[(0, ReadWrite, 1), (1, ReadWrite, 0)]), vec![Kind::G2Item]);
        assert_eq!(kinds(2, &[(0, ReadWritePredicate, 1), (1, ReadWrite, 0)]), vec![Kind::G2]);
        assert_eq!(kinds(2, &[(0, WriteWrite, 1), (1, RealTime, 0)]), vec![Kind::G0RealTime]);
        assert_eq!(kinds(2, &[(0, WriteRead, 1), (1, RealTime, 0)]), vec![Kind::G1cRealTime]);
        assert_eq!(kinds(2, &[(0, ReadWrite, 1), (1, RealTime, 0)])[0], Kind::GSingleRealTime);
        let skew = [(0, ReadWrite, 1), (1, RealTime, 2), (2, ReadWrite, 0)];
        assert_eq!(kinds(3, &skew), vec![Kind::G2ItemRealTime]);
        let phantom = [(0, ReadWritePredicate, 1), (1, RealTime, 2), (2, ReadWritePredicate, 0)];
        assert_eq!(kinds(3, &phantom), vec![Kind::G2RealTime]);
    }

    #[test]
    fn no_cycle_no_report() {
        use Edge::*;
        let edges = [(0, WriteWrite, 1), (1, WriteRead, 2), (0, ReadWrite, 2), (2, RealTime, 3), (0, RealTime, 3)];
        assert_eq!(kinds(4, &edges), vec![]);
    }
}
