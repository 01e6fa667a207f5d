//! `SHOW RANGES`, also called `SHOW GROUPS`: where the replicas are, of which types, who leads, and
//! what they wait for.

use crate::catalog::names::Name;
use crate::catalog::system::SystemContext;
use crate::catalog::{Catalog, Group};
use crate::parse::ShowOf;
use crate::rows::{GroupRow, NodeLocality};
use crate::types::{Datum, Type};
use meridian_base::{GroupId, NodeId, Result};
use sqlparser::ast::{Ident, ObjectName};

pub(super) fn columns() -> Vec<(&'static str, Type)> {
    [
        "range_id",
        "database",
        "home_region",
        "survival_goal",
        "lease_holder",
        "lease_holder_locality",
        "voting_replicas",
        "non_voting_replicas",
        "replica_localities",
        "waits_for",
    ]
    .map(|name| (name, Type::Text))
    .to_vec()
}

pub(super) async fn rows(context: &dyn SystemContext, of: &ShowOf) -> Result<Vec<Vec<Datum>>> {
    let catalog = context.catalog();
    let shown: Option<Vec<GroupId>> = match of {
        ShowOf::Cluster => None,
        ShowOf::Database(name) => {
            let database = catalog.database(name.as_ref().unwrap_or(&context.names().database))?.id;
            Some(catalog.groups_of(database).map(|g| g.id).collect())
        }
        ShowOf::Table(path) => {
            let name = ObjectName::from(path.iter().map(|p| Ident::with_quote('"', p)).collect::<Vec<_>>());
            Some(catalog.table(context.names(), &Name::from_ast(&name)?)?.groups().collect())
        }
    };
    let groups = context.groups().await?.into_iter();
    let nodes = context.nodes();
    Ok(groups.filter(|g| shown.as_ref().is_none_or(|shown| shown.contains(&g.group))).map(|g| row(catalog, &nodes, g)).collect())
}

fn row(catalog: &Catalog, nodes: &[NodeLocality], g: GroupRow) -> Vec<Datum> {
    let locality = |id: &NodeId| {
        let node = nodes.iter().find(|n| n.node == *id);
        node.map_or_else(|| "?".to_string(), |n| format!("region={},zone={}", n.region, n.zone))
    };
    let text = |text: Option<String>| text.map_or(Datum::Null, Datum::text);
    let list = |nodes: &[NodeId]| {
        let names: Vec<String> = nodes.iter().map(ToString::to_string).collect();
        Datum::text(format!("{{{}}}", names.join(",")))
    };
    let localities: Vec<String> = g.voters.iter().chain(&g.non_voters).map(|n| format!("{n}: {}", locality(n))).collect();
    let group: Option<&Group> = catalog.group_by_id(g.group);
    let database = group.and_then(|d| catalog.database_by_id(d.database)).map(|d| d.name.clone());
    vec![
        Datum::text(g.group.to_string()),
        text(database),
        text(group.map(|d| d.home.clone())),
        text(group.map(|d| d.survival.as_str().to_string())),
        text(g.primary.map(|n| n.to_string())),
        text(g.primary.map(|n| locality(&n))),
        list(&g.voters),
        list(&g.non_voters),
        Datum::text(localities.join("; ")),
        text(g.waits_for),
    ]
}
