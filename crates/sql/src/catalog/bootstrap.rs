//! The first catalog of a cluster.

use super::ids::{FIRST_ID, ROOT_ID, ROOT_ROLE};
use super::privileges::Access;
use super::{Catalog, CatalogChange, Database, Descriptor, Schema};
use meridian_base::{DescriptorId, SchemaVersion, Timestamp};
use meridian_placement::Survival;

/// Where a client lands that names no database: PostgreSQL's tools expect `postgres`, CockroachDB's
/// `defaultdb`.
pub const FIRST_DATABASES: [&str; 2] = ["postgres", "defaultdb"];
/// The databases a new cluster starts with, each with a schema `public`, homed in the region of the
/// node that makes it. Pure: every node computes the same change from the same region.
pub fn first_change(first_region: &str) -> CatalogChange {
    let mut change = CatalogChange { next_id: FIRST_ID, ..CatalogChange::default() };
    for name in FIRST_DATABASES {
        let (database, schema) = (DescriptorId(change.next_id), DescriptorId(change.next_id + 1));
        change.next_id += 2;
        change.put.push(Descriptor::Database(new_database(database, name, first_region)));
        change.put.push(Descriptor::Schema(public_schema(schema, database)));
    }
    change
}

/// The first catalog itself.
pub fn first_catalog(first_region: &str, version: SchemaVersion, committed_at: Timestamp) -> Catalog {
    Catalog::default().apply(&first_change(first_region), version, committed_at)
}

fn new_database(id: DescriptorId, name: &str, region: &str) -> Database {
    Database {
        id,
        name: name.into(),
        primary_region: region.into(),
        is_multi_region: false,
        regions: vec![region.into()],
        secondary_region: None,
        dropping: Vec::new(),
        survival: Survival::Zone,
        owner: ROOT_ROLE.into(),
        comment: None,
        access: Access::of(ROOT_ID),
    }
}

/// The schema every database starts with.
pub(crate) fn public_schema(id: DescriptorId, database: DescriptorId) -> Schema {
    let mut public = Schema::new(id, database, "public", ROOT_ROLE, Access::of_public_schema());
    public.comment = Some("standard public schema".into());
    public
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::names::Names;

    #[test]
    fn a_new_cluster_has_two_databases_with_a_public_schema() {
        let catalog = first_catalog("eu", SchemaVersion(1), Timestamp::from_micros(7));
        for name in FIRST_DATABASES {
            let database = catalog.database(name).unwrap();
            assert_eq!((database.primary_region.as_str(), database.is_multi_region), ("eu", false));
            assert_eq!(catalog.creation_schema(&Names::new(name, "root")).unwrap().name, "public");
        }
        assert!(catalog.descriptors.keys().all(|id| id.0 < catalog.next_id && id.0 >= FIRST_ID));
    }
}
