//! Starting nodes for tests.

use meridian_base::SessionId;
use meridian_node::{Node, NodeConfig, Place};
use meridian_server::MachineRuntime;
use meridian_sql::session::{ClientSession, SessionOptions, Shared};
use meridian_store::Backend;
use std::path::Path;
use std::sync::Arc;

pub type TestNode = Node;

/// A node on a directory, joining `join`.
pub async fn start(dir: &Path, region: &str, zone: &str, listen: &str, join: &[String]) -> meridian_base::Result<TestNode> {
    let runtime = MachineRuntime::open(dir).expect("a free directory");
    let place = Place { region: region.into(), zone: zone.into() };
    let mut config = NodeConfig::new(place, listen, "127.0.0.1:0", Backend::Fjall { path: dir.join("store") });
    config.join = join.to_vec();
    config.log_options.segment_bytes = 4 << 20;
    Node::start(Arc::new(runtime), config).await
}

/// A session in `defaultdb`.
pub async fn session(node: &TestNode, shared: &Arc<Shared>, id: u64) -> Box<dyn ClientSession> {
    let options = SessionOptions {
        id: SessionId(id),
        user: "root".into(),
        database: "defaultdb".into(),
        application_name: "test".into(),
        ..SessionOptions::default()
    };
    node.sessions().open(options, shared.clone()).await.expect("the database exists")
}

/// Rows of the last statement, as text.
pub async fn rows(session: &mut Box<dyn ClientSession>, sql: &str) -> Vec<Vec<Option<String>>> {
    let results = session.query_text(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    results.into_iter().next_back().map(|r| r.rows).unwrap_or_default()
}
