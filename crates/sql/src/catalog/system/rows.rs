//! Building the rows of a system table by column name: what is not said is NULL, or the type's zero
//! where PostgreSQL has NOT NULL.

use super::{SystemTable, table};
use crate::catalog::privileges::{Access, acl_item};
use crate::catalog::relation::{SequenceRef, TableRef, ViewRef};
use crate::catalog::roles::oid_of;
use crate::catalog::{Catalog, Descriptor, Schema};
use crate::types::{ArrayValue, Datum, Type};
use meridian_base::DescriptorId;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct Rows {
    positions: BTreeMap<&'static str, usize>,
    blank: Vec<Datum>,
    rows: Vec<Vec<Datum>>,
}

impl Rows {
    /// Rows of a table that there is.
    pub fn of(schema: &str, name: &str) -> Rows {
        let table = table(schema, name).expect("a filler belongs to a table");
        Rows::of_table(table)
    }
    fn of_table(table: &'static SystemTable) -> Rows {
        let zero = |(i, (_, ty)): (usize, &(&str, Type))| match ty {
            _ if !table.not_null[i] => Datum::Null,
            Type::Bool => Datum::Bool(false),
            Type::Float4 | Type::Float8 => Datum::Float(0.0),
            Type::Array(e) => array((**e).clone(), Vec::new()),
            ty if ty.is_string() || *ty == Type::InternalChar => text(""),
            _ => Datum::Int(0),
        };
        Rows {
            positions: table.columns.iter().enumerate().map(|(i, (name, _))| (*name, i)).collect(),
            blank: table.columns.iter().enumerate().map(zero).collect(),
            rows: Vec::new(),
        }
    }
    pub fn push<const N: usize>(&mut self, values: [(&str, Datum); N]) {
        let mut row = self.blank.clone();
        for (name, value) in values {
            let at = self.positions.get(name).unwrap_or_else(|| panic!("no column {name}"));
            row[*at] = value;
        }
        self.rows.push(row);
    }
    pub fn finish(self) -> Vec<Vec<Datum>> {
        self.rows
    }
}

pub(super) fn text(s: impl AsRef<str>) -> Datum {
    Datum::Text(s.as_ref().into())
}
pub(super) fn opt_text(s: Option<impl AsRef<str>>) -> Datum {
    s.map_or(Datum::Null, text)
}
pub(super) fn int(n: impl Into<i64>) -> Datum {
    Datum::Int(n.into())
}
pub(super) fn bool(b: bool) -> Datum {
    Datum::Bool(b)
}
/// The oid of something the catalog holds.
pub(super) fn oid(id: DescriptorId) -> Datum {
    Datum::Int(super::oid(id).into())
}
pub(super) fn yes(b: bool) -> Datum {
    text(if b { "YES" } else { "NO" })
}
/// An array with the lower bound 1.
pub(super) fn array(element: Type, items: Vec<Datum>) -> Datum {
    let dims = if items.is_empty() { Vec::new() } else { vec![(items.len(), 1)] };
    Datum::Array(Arc::new(ArrayValue { element, dims, items }))
}
pub(super) fn ordinals(ordinals: impl IntoIterator<Item = u32>) -> Datum {
    array(Type::Int2, ordinals.into_iter().map(|o| int(o + 1)).collect())
}

/// The objects of the current database.
pub(super) struct Objects<'c> {
    pub catalog: &'c Catalog,
    pub schemas: Vec<&'c Schema>,
    pub tables: Vec<TableRef>,
    pub views: Vec<ViewRef>,
    pub sequences: Vec<SequenceRef>,
}

impl<'c> Objects<'c> {
    pub fn of(catalog: &'c Catalog, database: &str) -> Objects<'c> {
        let id = catalog.find_database(database).map_or(DescriptorId(0), |d| d.id);
        let schemas: Vec<&Schema> = catalog.schemas(id).collect();
        let mut objects = Objects { catalog, schemas, tables: Vec::new(), views: Vec::new(), sequences: Vec::new() };
        for d in catalog.descriptors.values() {
            if !objects.schemas.iter().any(|s| s.id == d.parent()) {
                continue;
            }
            match &**d {
                Descriptor::Table(_) => objects.tables.extend(TableRef::new(d)),
                Descriptor::View(_) => objects.views.extend(ViewRef::new(d)),
                Descriptor::Sequence(_) => objects.sequences.extend(SequenceRef::new(d)),
                _ => {}
            }
        }
        objects
    }
    pub fn schema_name(&self, id: DescriptorId) -> &'c str {
        self.catalog.schema_by_id(id).map_or("", |s| s.name.as_str())
    }
}

/// The grants on an object as a value of `aclitem[]`; NULL if nothing was granted or revoked.
pub(super) fn acl(catalog: &Catalog, access: &Access) -> Datum {
    let name = |role| catalog.role_name(role);
    let Some(granted) = access.granted() else { return Datum::Null };
    ArrayValue::datum(Type::Text, granted.iter().map(|g| Datum::text(acl_item(g, &name))).collect())
}

/// The oid of an object's owner.
pub(super) fn owner(access: &Access) -> Datum {
    int(oid_of(access.owner()))
}
