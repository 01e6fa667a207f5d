//! Descriptors back to SQL text: what `pg_get_indexdef`, `pg_get_constraintdef`, `pg_get_expr`,
//! `pg_get_viewdef` and `SHOW CREATE TABLE` print.

use super::quote;
use crate::catalog::escrow::EscrowProtocol;
use crate::catalog::expression::{constraint_text, parse_expression};
use crate::catalog::names::{Name, Names};
use crate::catalog::relation::Relation;
use crate::catalog::{
    Catalog, Column, Database, Descriptor, FkAction, ForeignKey, Identity, Index, IndexColumn, IndexState, Locality, Table, View,
    is_implicit_primary,
};
use crate::catalog::{REGION_COLUMN, REGION_DEFAULT};
use crate::types::Type;
use meridian_base::DescriptorId;
use meridian_placement::Survival;
use std::fmt::Write;

/// The ordinals of the columns that a stored expression names.
pub fn columns_of(table: &Table, expression: &str) -> Vec<u32> {
    let names = parse_expression(expression).map(|e| crate::catalog::expression::columns_named(&e)).unwrap_or_default();
    names.iter().filter_map(|n| table.column(n).map(|(o, _)| o)).collect()
}

/// A relation's name as `regclass` shows it: qualified if the search path does not lead there.
pub fn relation_name(catalog: &Catalog, names: &Names, oid: u32) -> Option<String> {
    if let Some(t) = super::table_by_oid(oid) {
        let visible = names.effective_path().any(|s| s == t.schema);
        return Some(if visible { quote(t.name) } else { format!("{}.{}", t.schema, quote(t.name)) });
    }
    let (schema, name) = relation_by_oid(catalog, oid)?;
    let schema = catalog.schema_by_id(schema)?;
    let bare = Name::bare(&name);
    let found = catalog.find_relation(names, &bare).ok().flatten();
    match found {
        Some(r) if r.oid() == oid => Some(quote(&name)),
        _ => Some(format!("{}.{}", quote(&schema.name), quote(&name))),
    }
}

/// The schema and name of a table, view, sequence or index.
pub fn relation_by_oid(catalog: &Catalog, oid: u32) -> Option<(DescriptorId, String)> {
    let id = super::from_oid(oid)?;
    match catalog.descriptors.get(&id).map(|d| &**d) {
        Some(d @ (Descriptor::Table(_) | Descriptor::View(_) | Descriptor::Sequence(_))) => {
            Some((d.parent(), d.name().unwrap_or_default().to_string()))
        }
        Some(_) => None,
        None => index_by_oid(catalog, oid).map(|(t, i)| (t.schema, i.name.clone())),
    }
}

/// An index and its table.
pub fn index_by_oid(catalog: &Catalog, oid: u32) -> Option<(&Table, &Index)> {
    let id = super::from_oid(oid)?.0;
    catalog.descriptors.values().find_map(|d| match &**d {
        Descriptor::Table(t) => visible_indexes(t).find(|i| i.id == id).map(|i| (t, i)),
        _ => None,
    })
}

/// A stored expression as it is shown: with the names of the sequences it draws from.
pub fn expression(catalog: &Catalog, names: &Names, stored: &str) -> String {
    let mut shown = String::new();
    let mut rest = stored;
    while let Some(start) = rest.find('\'') {
        let (before, literal) = rest.split_at(start);
        let Some(len) = literal[1..].find('\'') else { break };
        let (digits, after) = (&literal[1..=len], &literal[len + 2..]);
        shown.push_str(before);
        let is_pin = after.get(..10).is_some_and(|c| c.eq_ignore_ascii_case("::regclass"));
        let name = digits.parse::<u32>().ok().filter(|_| is_pin).and_then(|oid| relation_name(catalog, names, oid));
        match name {
            Some(name) => {
                let _ = write!(shown, "'{}'::regclass", name.replace('\'', "''"));
                rest = &after[10..];
            }
            None => {
                shown.push_str(&literal[..len + 2]);
                rest = after;
            }
        }
    }
    shown + rest
}

fn key_column(table: &Table, c: &IndexColumn) -> String {
    let mut shown = quote(&table.columns[c.ordinal as usize].name);
    if c.descending {
        shown.push_str(" DESC");
    }
    // The default puts NULLs where they are the largest.
    match (c.descending, c.nulls_first) {
        (false, true) => shown.push_str(" NULLS FIRST"),
        (true, false) => shown.push_str(" NULLS LAST"),
        _ => {}
    }
    shown
}

fn names_of(table: &Table, ordinals: &[u32]) -> String {
    ordinals.iter().map(|o| quote(&table.columns[*o as usize].name)).collect::<Vec<_>>().join(", ")
}

/// `CREATE INDEX …`, the table qualified if a schema is given.
pub fn index(table: &Table, index: &Index, schema: Option<&str>) -> String {
    let unique = if index.unique { "UNIQUE " } else { "" };
    let schema = schema.map(|s| format!("{}.", quote(s))).unwrap_or_default();
    let columns = index.columns.iter().map(|c| key_column(table, c)).collect::<Vec<_>>().join(", ");
    let mut text =
        format!("CREATE {unique}INDEX {} ON {schema}{} USING btree ({columns})", quote(&index.name), quote(&table.name));
    if !index.stored.is_empty() {
        let _ = write!(text, " INCLUDE ({})", names_of(table, &index.stored));
    }
    if let Some(predicate) = &index.predicate {
        let _ = write!(text, " WHERE {}", constraint_text(predicate));
    }
    if index.is_hidden {
        text.push_str(" NOT VISIBLE");
    }
    text
}

/// One key or stored column of an index, from 1 on.
pub fn index_column(table: &Table, index: &Index, number: usize) -> Option<String> {
    let mut ordinals = index.columns.iter().map(|c| c.ordinal).chain(index.stored.iter().copied());
    let ordinal = ordinals.nth(number.checked_sub(1)?)?;
    Some(quote(&table.columns[ordinal as usize].name))
}

/// `PRIMARY KEY (…)` or `UNIQUE (…)`.
pub fn index_constraint(table: &Table, index: &Index) -> String {
    let kind = if index.id == table.primary().id { "PRIMARY KEY" } else { "UNIQUE" };
    let ordinals: Vec<u32> = index.columns.iter().map(|c| c.ordinal).collect();
    let mut text = format!("{kind} ({})", names_of(table, &ordinals));
    if !index.stored.is_empty() {
        let _ = write!(text, " INCLUDE ({})", names_of(table, &index.stored));
    }
    text
}

/// `CHECK ((…))`.
pub fn check(expression: &str, validated: bool) -> String {
    format!("CHECK ({}){}", constraint_text(expression), not_valid(validated))
}

fn not_valid(validated: bool) -> &'static str {
    if validated { "" } else { " NOT VALID" }
}

/// The words of a referential action.
pub fn action(a: FkAction) -> &'static str {
    match a {
        FkAction::NoAction => "NO ACTION",
        FkAction::Restrict => "RESTRICT",
        FkAction::Cascade => "CASCADE",
        FkAction::SetNull => "SET NULL",
        FkAction::SetDefault => "SET DEFAULT",
    }
}

/// `FOREIGN KEY (…) REFERENCES …`.
pub fn foreign_key(catalog: &Catalog, names: &Names, table: &Table, fk: &ForeignKey) -> String {
    let parent_name = relation_name(catalog, names, super::oid(fk.parent)).unwrap_or_default();
    let parent_columns = match catalog.table_by_id(fk.parent) {
        Some(parent) => names_of(&parent, &fk.parent_columns),
        None => String::new(),
    };
    let mut text = format!("FOREIGN KEY ({}) REFERENCES {parent_name}({parent_columns})", names_of(table, &fk.columns));
    if fk.match_full {
        text.push_str(" MATCH FULL");
    }
    for (when, what) in [("UPDATE", fk.on_update), ("DELETE", fk.on_delete)] {
        if what != FkAction::NoAction {
            let _ = write!(text, " ON {when} {}", action(what));
        }
    }
    text + not_valid(fk.validated)
}

/// Any constraint by its oid.
pub fn constraint_by_oid(catalog: &Catalog, names: &Names, oid: u32) -> Option<String> {
    let id = super::from_oid(oid)?;
    if let Some((t, i)) = index_by_oid(catalog, oid) {
        return i.is_constraint.then(|| index_constraint(t, i));
    }
    catalog.descriptors.values().find_map(|d| match &**d {
        Descriptor::Table(t) => {
            let check = t.checks.iter().find(|c| c.id == id).map(|c| check(&c.expression, c.validated));
            check.or_else(|| t.foreign_keys.iter().find(|f| f.id == id).map(|f| foreign_key(catalog, names, t, f)))
        }
        _ => None,
    })
}

/// A view's query, as PostgreSQL prints it: behind a space, with a semicolon.
pub fn view(view: &View) -> String {
    format!(" {};", view.query)
}

/// `CREATE TABLE …`, with its indexes inside as CockroachDB prints them, so that the text makes the
/// same table again.
pub fn create_table(catalog: &Catalog, names: &Names, table: &Table) -> String {
    let mut parts = Vec::new();
    // Hidden ones that come with the table are not shown: its row id, and its region.
    let row_id = if is_implicit_primary(table, table.primary()) { &table.primary().columns[..] } else { &[] };
    let region = region_of_itself(table);
    let comes_along = |o: u32| region.is_some_and(|(region, _)| region == o) || row_id.iter().any(|key| key.ordinal == o);
    for (ordinal, c) in table.live_columns().filter(|(o, _)| !comes_along(*o)) {
        let mut part = format!("{} {}", quote(&c.name), c.ty.name());
        if c.is_hidden {
            part.push_str(" NOT VISIBLE");
        }
        if c.not_null {
            part.push_str(" NOT NULL");
        }
        if let Some(e) = &c.default {
            let _ = write!(part, " DEFAULT {}", expression(catalog, names, e));
        }
        if let Some(e) = &c.on_update {
            let _ = write!(part, " ON UPDATE {e}");
        }
        if table.escrow_column(ordinal).is_some() {
            part.push_str(" ESCROW");
        }
        if let Some(e) = &c.generated {
            let _ = write!(part, " GENERATED ALWAYS AS ({e}) STORED");
        }
        if let Some(i) = &c.identity {
            let _ = write!(part, " GENERATED {} AS IDENTITY", if i.always { "ALWAYS" } else { "BY DEFAULT" });
            part.push_str(&identity_options(catalog, i));
        }
        parts.push(part);
    }
    for i in table.indexes.iter().filter(|i| i.is_constraint && i.state == IndexState::Public && !is_implicit_primary(table, i)) {
        parts.push(format!("CONSTRAINT {} {}", quote(&i.name), index_constraint(table, i)));
    }
    for c in &table.checks {
        parts.push(format!("CONSTRAINT {} {}", quote(&c.name), check(&c.expression, c.validated)));
    }
    for f in &table.foreign_keys {
        parts.push(format!("CONSTRAINT {} {}", quote(&f.name), foreign_key(catalog, names, table, f)));
    }
    let schema = catalog.schema_by_id(table.schema).map(|s| s.name.as_str()).unwrap_or_default();
    let name = format!("{}.{}", quote(schema), quote(&table.name));
    let mut text = format!("CREATE TABLE {name} (\n    {}\n)", parts.join(",\n    "));
    if let Some(fk) = table.foreign_keys.iter().find(|f| Some(f.id) == table.infers_region_by) {
        let _ = write!(text, " WITH (infer_rbr_region_col_using_constraint = '{}')", fk.name.replace('\'', "''"));
    }
    if let Some(locality) = locality(catalog, table) {
        let _ = write!(text, " LOCALITY {locality}");
    }
    text.push(';');
    for i in visible_indexes(table).filter(|i| !i.is_constraint) {
        let _ = write!(text, "\n{};", index(table, i, Some(schema)));
    }
    if let Some((_, c)) = region {
        let column = quote(&c.name);
        match &c.default {
            Some(e) if e.replace("::public.", "::") == REGION_DEFAULT => {}
            Some(e) => {
                let _ = write!(text, "\nALTER TABLE {name} ALTER COLUMN {column} SET DEFAULT {e};");
            }
            None => {
                let _ = write!(text, "\nALTER TABLE {name} ALTER COLUMN {column} DROP DEFAULT;");
            }
        }
        if let Some(e) = &c.on_update {
            let _ = write!(text, "\nALTER TABLE {name} ALTER COLUMN {column} SET ON UPDATE {e};");
        }
    }
    for of in &table.escrow {
        let forecaster = of.forecaster.as_ref().map(|kind| format!("escrow.forecaster = '{kind}'"));
        let epoch = of.epoch.map(|epoch| format!("escrow.epoch = '{} seconds'", epoch.as_secs_f64()));
        let protocol = (of.protocol() != EscrowProtocol::Any).then(|| format!("escrow.protocol = '{}'", of.protocol().name()));
        let settings: Vec<String> = protocol.into_iter().chain(forecaster).chain(epoch).collect();
        if !settings.is_empty() {
            let column = quote(&table.columns[of.ordinal as usize].name);
            let _ = write!(text, "\nALTER TABLE {name} ALTER COLUMN {column} SET ({});", settings.join(", "));
        }
    }
    if let Some(comment) = &table.comment {
        let _ = write!(text, "\nCOMMENT ON TABLE {name} IS {};", literal(comment));
    }
    for (_, c) in table.live_columns() {
        if let Some(comment) = &c.comment {
            let _ = write!(text, "\nCOMMENT ON COLUMN {name}.{} IS {};", quote(&c.name), literal(comment));
        }
    }
    for i in visible_indexes(table) {
        if let Some(comment) = &i.comment {
            let _ = write!(text, "\nCOMMENT ON INDEX {}.{} IS {};", quote(schema), quote(&i.name), literal(comment));
        }
    }
    text
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// What of a column's own sequence is not as it would be by default.
fn identity_options(catalog: &Catalog, identity: &Identity) -> String {
    let Some(Descriptor::Sequence(s)) = catalog.descriptors.get(&identity.sequence).map(|d| &**d) else { return String::new() };
    let most = match s.ty {
        Type::Int2 => i64::from(i16::MAX),
        Type::Int4 => i64::from(i32::MAX),
        _ => i64::MAX,
    };
    let (least, most) = if s.increment > 0 { (1, most) } else { (-most - 1, -1) };
    let first = if s.increment > 0 { s.min } else { s.max };
    let options = [
        (s.start != first).then(|| format!("START WITH {}", s.start)),
        (s.increment != 1).then(|| format!("INCREMENT BY {}", s.increment)),
        (s.min != least).then(|| format!("MINVALUE {}", s.min)),
        (s.max != most).then(|| format!("MAXVALUE {}", s.max)),
        (s.cache != 1).then(|| format!("CACHE {}", s.cache)),
        s.cycle.then(|| "CYCLE".to_string()),
    ];
    let options: Vec<String> = options.into_iter().flatten().collect();
    if options.is_empty() { String::new() } else { format!(" ({})", options.join(" ")) }
}

/// A database as `CREATE DATABASE` makes it.
pub fn create_database(database: &Database) -> String {
    let name = quote(&database.name);
    if !database.is_multi_region {
        return format!("CREATE DATABASE {name}");
    }
    let quoted = |region: &String| format!("\"{}\"", region.replace('"', "\"\""));
    let regions: Vec<String> = database.regions.iter().map(quoted).collect();
    let primary = quoted(&database.primary_region);
    let goal = if database.survival == Survival::Region { "REGION" } else { "ZONE" };
    let mut text =
        format!("CREATE DATABASE {name} PRIMARY REGION {primary} REGIONS = {} SURVIVE {goal} FAILURE", regions.join(", "));
    if database.survival == Survival::Restricted {
        text.push_str(" PLACEMENT RESTRICTED");
    }
    if let Some(secondary) = &database.secondary_region {
        let _ = write!(text, " SECONDARY REGION {}", quoted(secondary));
    }
    text
}

/// The region column that `REGIONAL BY ROW` makes by itself, unless the table has one of its own,
/// with its ordinal.
fn region_of_itself(table: &Table) -> Option<(u32, &Column)> {
    let ordinal = table.region_column()?;
    let column = &table.columns[ordinal as usize];
    let is_it = column.is_hidden_region() && column.name == REGION_COLUMN && column.generated.is_none();
    is_it.then_some((ordinal, column))
}

/// A table's locality as `CREATE TABLE` takes it; `None` in a database without regions.
pub fn locality(catalog: &Catalog, table: &Table) -> Option<String> {
    let schema = catalog.schema_by_id(table.schema)?;
    let database = catalog.database_by_id(schema.database)?;
    database.is_multi_region.then(|| match &table.locality {
        Locality::RegionalByTable => "REGIONAL BY TABLE IN PRIMARY REGION".to_string(),
        Locality::RegionalByTableIn(region) => format!("REGIONAL BY TABLE IN \"{}\"", region.replace('"', "\"\"")),
        Locality::RegionalByRow { .. } if region_of_itself(table).is_some() => "REGIONAL BY ROW".to_string(),
        Locality::RegionalByRow { column } => {
            format!("REGIONAL BY ROW AS {}", quote(&table.columns[*column as usize].name))
        }
        Locality::Global => "GLOBAL".to_string(),
    })
}

/// Whether an unqualified name leads to the relation.
pub fn is_visible(catalog: &Catalog, names: &Names, oid: u32) -> Option<bool> {
    let name = match super::table_by_oid(oid) {
        Some(t) => t.name.to_string(),
        None => relation_by_oid(catalog, oid)?.1,
    };
    let found = catalog.find_relation(names, &Name::bare(&name)).ok().flatten();
    Some(found.is_some_and(|r: Relation| r.oid() == oid))
}

/// The indexes of a table that SQL sees.
pub(super) fn visible_indexes(table: &Table) -> impl Iterator<Item = &Index> {
    table.indexes.iter().filter(|i| !is_implicit_primary(table, i))
}
