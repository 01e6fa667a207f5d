//! The rows of the catalog's group.
//!
//! The key of a row is its index id and more:
//!
//! | index | key | value |
//! | --- | --- | --- |
//! | 1 | – | [`Meta`]; its commit timestamp is the version's |
//! | 2 | descriptor id | (version that changed it, descriptor) |
//! | 3 | node id | [`NodeRow`] |
//! | 4 | group id | `region::Granted`: the schema lease |
//! | 5 | version | the id of the step that made it, of the newest [`STEPS_KEPT`] versions |
//! | 6 | token of a new node | the node's id, kept for ever: a node that asks twice gets the same one |
//! | 7 | id of a join token | `pki::join::StoredToken`, until a day after its end |
//! | 8 | – | `pki::rotation::StoredRotation`: the last rotation of the authority |

use crate::transport::wire::NodeRecord;
use meridian_base::key::encode;
use meridian_base::version::{ClusterVersion, Versions};
use meridian_base::{
    ColumnMask, DescriptorId, Error, GroupId, Key, KeyRange, NodeId, Result, SchemaVersion, Timestamp, TxnId, Write, envelope,
};
use meridian_pki::join::TokenId;
use meridian_sql::catalog::{Catalog, CatalogChange, Descriptor};
use meridian_store::{GroupStore, ScanLimits};
use serde::{Deserialize, Serialize};

const META: u32 = 1;
pub(super) const DESCRIPTORS: u32 = 2;
pub(super) const NODES: u32 = 3;
const LEASES: u32 = 4;
const STEPS: u32 = 5;
/// Versions whose steps are remembered: more than are made while a gateway asks what became of one
/// ([`crate::gateway::env`]), were each to take no longer than one write to a log.
pub(crate) const STEPS_KEPT: u64 = 10_000;
const TOKENS: u32 = 6;
const JOIN_TOKENS: u32 = 7;
pub(super) const ROTATION: u32 = 8;

/// The catalog's own row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub cluster: u128,
    pub version: SchemaVersion,
    pub next_id: u32,
    pub next_node: u32,
    /// [`Catalog::seen`] and when, if it is not this version.
    pub seen: Option<(SchemaVersion, Timestamp)>,
    /// Which formats may be written.
    #[serde(default)]
    pub cluster_version: ClusterVersion,
}

/// A node's row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeRow {
    pub record: NodeRecord,
    /// What the program understands that it was last started with.
    #[serde(default)]
    pub versions: Versions,
}

pub(crate) fn meta_key() -> Key {
    let mut key = Vec::new();
    encode::index(&mut key, META);
    key.into()
}

fn numbered(index: u32, id: impl Into<i64>) -> Key {
    let mut key = Vec::new();
    encode::index(&mut key, index);
    encode::i64(&mut key, id.into());
    key.into()
}

pub(crate) fn descriptor_key(id: DescriptorId) -> Key {
    numbered(DESCRIPTORS, id.0)
}

pub(crate) fn node_key(id: NodeId) -> Key {
    numbered(NODES, id.0)
}

pub(crate) fn token_key(token: u128) -> Key {
    let mut key = Vec::new();
    encode::index(&mut key, TOKENS);
    key.extend_from_slice(&token.to_be_bytes());
    key.into()
}

pub(crate) fn join_token_key(id: TokenId) -> Key {
    let mut key = Vec::new();
    encode::index(&mut key, JOIN_TOKENS);
    key.extend_from_slice(&id.0);
    key.into()
}

pub(crate) fn join_token_range() -> KeyRange {
    KeyRange::prefix(&JOIN_TOKENS.to_be_bytes())
}

pub(crate) fn rotation_key() -> Key {
    let mut key = Vec::new();
    encode::index(&mut key, ROTATION);
    key.into()
}

pub(crate) fn lease_key(id: GroupId) -> Key {
    numbered(LEASES, id.0)
}

fn step_key(version: SchemaVersion) -> Key {
    numbered(STEPS, version.0 as i64)
}

pub(crate) fn lease_range() -> KeyRange {
    KeyRange::prefix(&LEASES.to_be_bytes())
}

/// The group that a lease row's key names.
pub(crate) fn lease_group(key: &Key) -> Option<GroupId> {
    let mut bytes = key.as_bytes();
    let _ = meridian_base::key::decode::index(&mut bytes)?;
    meridian_base::key::decode::is_null(&mut bytes, false)?;
    Some(GroupId(meridian_base::key::decode::i64(&mut bytes, false)? as u32))
}

/// A row to write.
pub(crate) fn row<T: Serialize>(key: Key, value: &T) -> Result<Write> {
    Ok(Write { key, value: Some(envelope::encode(value).into()), columns: ColumnMask::ALL })
}

/// Reads a row. A row that does not decode was written by another version, or is damaged.
pub(crate) fn read_row<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    envelope::decode(bytes).map_err(|e| Error::fatal(format!("a row of the catalog cannot be read: {e}")))
}

/// The rows by which the step `id` turns a catalog into its next version. `seen`: the last one that
/// transactions can tell from the one before.
pub(crate) fn change_rows(
    id: TxnId,
    meta: &Meta,
    seen: (SchemaVersion, Timestamp),
    change: &CatalogChange,
) -> Result<(Meta, Vec<Write>)> {
    let version = SchemaVersion(meta.version.0 + 1);
    let seen = (!change.is_seen()).then_some(seen);
    let next = Meta { version, next_id: meta.next_id.max(change.next_id), seen, ..meta.clone() };
    let mut writes = vec![row(meta_key(), &next)?, row(step_key(version), &id)?];
    if let Some(old) = version.0.checked_sub(STEPS_KEPT) {
        writes.push(Write { key: step_key(SchemaVersion(old)), value: None, columns: ColumnMask::ALL });
    }
    for d in &change.put {
        writes.push(row(descriptor_key(d.id()), &(next.version, d))?);
    }
    for id in &change.delete {
        writes.push(Write { key: descriptor_key(*id), value: None, columns: ColumnMask::ALL });
    }
    Ok((next, writes))
}

/// The step that made a version, and when; `None` if that is not remembered.
pub(crate) fn step_of(store: &GroupStore, version: SchemaVersion) -> Result<Option<(TxnId, Timestamp)>> {
    let Some(found) = store.get(step_key(version).as_bytes(), newest_readable(store))? else { return Ok(None) };
    found.value.map(|bytes| Ok((read_row(&bytes)?, found.at))).transpose()
}

/// The catalog's own row as it is now.
pub(crate) fn stored_meta(store: &GroupStore) -> Result<Meta> {
    match store.get(meta_key().as_bytes(), newest_readable(store))? {
        Some(v) => read_row(v.value.as_deref().unwrap_or_default()),
        None => Ok(Meta::default()),
    }
}

/// The catalog's rows as they were.
pub(super) fn stored(store: &GroupStore, at: Timestamp) -> Result<Option<(Catalog, Meta)>> {
    let Some(row) = store.get(meta_key().as_bytes(), at)? else { return Ok(None) };
    let Some(bytes) = &row.value else { return Ok(None) };
    let meta: Meta = read_row(bytes)?;
    let mut descriptors = Vec::new();
    for (_, bytes) in scan_all(store, &KeyRange::prefix(&DESCRIPTORS.to_be_bytes()), at)? {
        let (changed_in, d): (SchemaVersion, Descriptor) = read_row(&bytes)?;
        descriptors.push((d, changed_in));
    }
    let seen = meta.seen.unwrap_or((meta.version, row.at));
    Ok(Some((Catalog::from_stored(descriptors, meta.next_id, meta.version, row.at, seen), meta)))
}

/// The timestamp to read the newest versions at: the newest one applied, or the threshold of
/// garbage collection if that is later. The threshold never passes the closed timestamp, so no
/// version appears below either of them.
pub(crate) fn newest_readable(store: &GroupStore) -> Timestamp {
    store.applied_ts().max(store.gc_threshold())
}

/// All rows of a range.
pub(crate) fn scan_all(store: &GroupStore, range: &KeyRange, at: Timestamp) -> Result<Vec<(Key, bytes::Bytes)>> {
    let mut rows = Vec::new();
    let mut rest = Some(range.clone());
    while let Some(range) = rest {
        let page = store.scan(&range, at, false, ScanLimits::default())?;
        rows.extend(page.rows.into_iter().filter_map(|(k, v)| Some((k, v.value?))));
        rest = page.rest;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::wire::Standing;

    #[test]
    fn what_was_written_is_read() {
        let mut fixtures = meridian_fixtures::Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/catalog.txt"));
        fixtures.value::<Meta>("meta");
        fixtures.value::<NodeRow>("node");
        fixtures.value::<TxnId>("step");
        fixtures.value::<NodeId>("token");
        fixtures.value::<meridian_pki::join::StoredToken>("join token");
        fixtures.finish();
    }

    /// What is in directories from before there was a cluster version.
    #[test]
    fn rows_without_versions_are_of_the_first_one() {
        #[derive(Serialize)]
        struct Before {
            cluster: u128,
            version: SchemaVersion,
            next_id: u32,
            next_node: u32,
            seen: Option<(SchemaVersion, Timestamp)>,
        }
        let before = Before { cluster: 7, version: SchemaVersion(9), next_id: 120, next_node: 4, seen: None };
        let meta: Meta = read_row(&envelope::encode(&before)).unwrap();
        assert_eq!((meta.cluster, meta.next_node, meta.cluster_version), (7, 4, ClusterVersion::FIRST));
        let record = NodeRecord {
            id: NodeId(3),
            addr: "a:1".into(),
            sql_addr: "a:2".into(),
            region: "r".into(),
            zone: "z".into(),
            standing: Standing::Draining,
        };
        let row: NodeRow = read_row(&envelope::encode(&record)).unwrap();
        assert_eq!(row, NodeRow { record, versions: Versions::default() });
    }
}
