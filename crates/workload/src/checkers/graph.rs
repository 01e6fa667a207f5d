//! A directed graph with labelled edges, its strongly connected components, and shortest paths.

use std::collections::VecDeque;

/// A node's number.
pub type Node = usize;

/// A graph whose edges carry a label.
#[derive(Clone, Debug)]
pub struct Graph<L> {
    out: Vec<Vec<(Node, L)>>,
}

impl<L: Copy + PartialEq> Graph<L> {
    /// Nodes `0..nodes`, no edges.
    pub fn new(nodes: usize) -> Graph<L> {
        Graph { out: vec![Vec::new(); nodes] }
    }
    /// Adds a node.
    pub fn add_node(&mut self) -> Node {
        self.out.push(Vec::new());
        self.out.len() - 1
    }
    /// Adds an edge unless there is the same one. An edge to oneself says nothing and is not added.
    pub fn add_edge(&mut self, from: Node, to: Node, label: L) {
        if from != to && !self.out[from].contains(&(to, label)) {
            self.out[from].push((to, label));
        }
    }
    /// The edges that leave a node.
    pub fn edges(&self, from: Node) -> &[(Node, L)] {
        &self.out[from]
    }
    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.out.len()
    }
    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The component of every node, using only edges whose label passes; two nodes are in one
    /// component if each reaches the other. Tarjan's algorithm, with a stack of its own since
    /// histories are deep.
    pub fn components(&self, allowed: impl Fn(L) -> bool) -> Vec<usize> {
        const UNSEEN: usize = usize::MAX;
        let nodes = self.out.len();
        let (mut order, mut low, mut component) = (vec![UNSEEN; nodes], vec![0; nodes], vec![UNSEEN; nodes]);
        let (mut next_order, mut next_component) = (0, 0);
        let mut open: Vec<Node> = Vec::new();
        let mut work: Vec<(Node, usize)> = Vec::new();
        for root in 0..nodes {
            if order[root] != UNSEEN {
                continue;
            }
            work.push((root, 0));
            while let Some((node, edge)) = work.pop() {
                if edge == 0 {
                    (order[node], low[node]) = (next_order, next_order);
                    next_order += 1;
                    open.push(node);
                }
                let Some((to, label)) = self.out[node].get(edge).copied() else {
                    if low[node] == order[node] {
                        loop {
                            let member = open.pop().expect("the component's root is on it");
                            component[member] = next_component;
                            if member == node {
                                break;
                            }
                        }
                        next_component += 1;
                    }
                    if let Some((parent, _)) = work.last() {
                        low[*parent] = low[*parent].min(low[node]);
                    }
                    continue;
                };
                work.push((node, edge + 1));
                if !allowed(label) {
                    continue;
                }
                if order[to] == UNSEEN {
                    work.push((to, 0));
                } else if component[to] == UNSEEN {
                    low[node] = low[node].min(order[to]);
                }
            }
        }
        component
    }

    /// A shortest path from one node to another over edges that pass, as labelled steps; `None` if
    /// there is none. The test gets the edge's target too, so that a search can be kept inside a
    /// component.
    pub fn path(&self, from: Node, to: Node, allowed: impl Fn(Node, L) -> bool) -> Option<Vec<(Node, L, Node)>> {
        let mut came: Vec<Option<(Node, L)>> = vec![None; self.out.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for (next, label) in &self.out[node] {
                if *next == from || came[*next].is_some() || !allowed(*next, *label) {
                    continue;
                }
                came[*next] = Some((node, *label));
                if *next == to {
                    return Some(Self::walk_back(&came, from, to));
                }
                queue.push_back(*next);
            }
        }
        None
    }

    fn walk_back(came: &[Option<(Node, L)>], from: Node, to: Node) -> Vec<(Node, L, Node)> {
        let mut steps = Vec::new();
        let mut at = to;
        while at != from {
            let (before, label) = came[at].expect("on the path");
            steps.push((before, label, at));
            at = before;
        }
        steps.reverse();
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    fn random(rng: &mut SmallRng) -> Graph<u8> {
        let nodes = rng.random_range(1..12);
        let mut graph = Graph::new(nodes);
        for _ in 0..rng.random_range(0..20) {
            graph.add_edge(rng.random_range(0..nodes), rng.random_range(0..nodes), rng.random_range(0..3));
        }
        graph
    }

    #[test]
    fn components_are_mutual_reachability() {
        let mut rng = SmallRng::seed_from_u64(1);
        for _ in 0..500 {
            let graph = random(&mut rng);
            let allowed = |label: u8| label < 2;
            let component = graph.components(allowed);
            for a in 0..graph.len() {
                for b in 0..graph.len() {
                    let reaches = |x, y| x == y || graph.path(x, y, |_, label| allowed(label)).is_some();
                    assert_eq!(component[a] == component[b], reaches(a, b) && reaches(b, a), "{graph:?}: {a} and {b}");
                }
            }
        }
    }

    #[test]
    fn a_path_is_made_of_edges() {
        let mut rng = SmallRng::seed_from_u64(2);
        let mut found = 0;
        for _ in 0..500 {
            let graph = random(&mut rng);
            let last = graph.len() - 1;
            if let Some(path) = graph.path(0, last, |_, _| true) {
                found += 1;
                assert_eq!((path[0].0, path[path.len() - 1].2), (0, last));
                assert!(path.windows(2).all(|w| w[0].2 == w[1].0));
                assert!(path.iter().all(|(a, label, b)| graph.edges(*a).contains(&(*b, *label))));
            }
        }
        assert!(found > 50);
    }
}
