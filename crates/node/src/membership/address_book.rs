//! Where the other nodes are: the file `nodes`, for the moment after a start.
//!
//! The catalog says where nodes are, and the catalog is in a replicated log: what of it is not
//! flushed yet comes back only when the log's members have elected a leader, for which they must
//! find each other. After a power failure of a whole young cluster no node would know another. So
//! every node keeps a copy of the addresses beside its identity, written anew when they change. It
//! is advice: a copy that is missing, old or damaged costs time, never correctness, since nodes say
//! who they are when they are connected to.

use crate::local::small_file;
use crate::membership::shared::Shared;
use crate::transport::wire::{NodeRecord, Standing};
use meridian_base::NodeId;
use meridian_base::runtime::Runtime;
use std::io;
use std::sync::Arc;

const FILE: &str = "nodes";
const HEADER: &str = "meridian nodes, format 1";
/// A file that is longer is not ours: more nodes than any cluster has, at the longest addresses.
const BYTES_MAX: u64 = 4 << 20;

/// The addresses that were last written down. None, if there is no file that can be read.
pub(crate) async fn load(runtime: &Arc<dyn Runtime>) -> Vec<NodeRecord> {
    let of_node = runtime.clone();
    match runtime.run_io("addresses", move || small_file::read(&of_node, FILE, BYTES_MAX)).await {
        Ok(text) => parse(&text),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => {
            tracing::warn!("cannot read {}: {e}", runtime.disk().describe(FILE));
            Vec::new()
        }
    }
}

/// Writes the addresses down, all at once.
pub(crate) async fn save(runtime: &Arc<dyn Runtime>, nodes: &[NodeRecord]) {
    if let Err(e) = small_file::write(runtime, FILE, format(nodes)).await {
        tracing::info!("cannot write {}: {e}", runtime.disk().describe(FILE));
    }
}

/// Keeps the copy equal to what the catalog says.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let mut changed = shared.catalog.watch();
    let mut written = format(&load(&shared.runtime).await);
    loop {
        changed.borrow_and_update();
        let nodes = shared.catalog.nodes();
        let text = format(&nodes);
        if !nodes.is_empty() && text != written {
            save(&shared.runtime, &nodes).await;
            written = text;
        }
        if changed.changed().await.is_err() {
            return;
        }
    }
}

fn format(nodes: &[NodeRecord]) -> String {
    // Nobody asks a node that is out, and it tells nobody that another one is.
    let members = nodes.iter().filter(|n| n.standing != Standing::Decommissioned);
    let lines = members.map(|n| format!("{} {}\n", n.id.0, n.addr));
    format!("{HEADER}\n{}", lines.collect::<String>())
}

/// Lines that do not parse are passed over.
fn parse(text: &str) -> Vec<NodeRecord> {
    let Some(lines) = text.strip_prefix(HEADER) else { return Vec::new() };
    let of_line = |line: &str| {
        let (id, addr) = line.split_once(' ')?;
        let id = NodeId(id.parse().ok()?);
        let known_later = String::new;
        let addr = addr.to_string();
        Some(NodeRecord {
            id,
            addr,
            sql_addr: known_later(),
            region: known_later(),
            zone: known_later(),
            standing: Standing::Active,
        })
    };
    lines.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(id: u32, addr: &str) -> NodeRecord {
        let (sql_addr, region, zone) = Default::default();
        NodeRecord { id: NodeId(id), addr: addr.into(), sql_addr, region, zone, standing: Standing::Active }
    }

    #[test]
    fn files_of_earlier_programs_are_read() {
        let file = include_str!("../../tests/fixtures/files/nodes");
        let nodes = [node(1, "a.example:7000"), node(12, "[::1]:7001")];
        assert_eq!(format(&nodes), file);
        assert_eq!(parse(file), nodes);
    }

    #[test]
    fn what_was_written_is_read_back_and_damage_is_passed_over() {
        let nodes = [node(1, "a.example:7000"), node(12, "[::1]:7001")];
        assert_eq!(parse(&format(&nodes)), nodes);
        assert_eq!(parse(&format(&nodes).replace("\n1 ", "\nx ")), nodes[1..]);
        assert_eq!(parse("1 a.example:7000\n"), []);
        let out = NodeRecord { standing: Standing::Decommissioned, ..nodes[0].clone() };
        assert_eq!(parse(&format(&[out, nodes[1].clone()])), nodes[1..]);
    }

    proptest! {
        #[test]
        fn no_text_panics_the_parser(text: String) {
            let _ = parse(&text);
            let _ = parse(&format!("{HEADER}\n{text}"));
        }
    }
}
