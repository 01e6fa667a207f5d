//! `usertable` in every shape that a database over regions has for it, and the statements on it.

use super::Table;
use super::rows::{FIELDS, Key, field_name};
use crate::client::Value;
use crate::schema::{quoted, schema_of};

/// The table's name: of each shape its own, so that they can be compared in one database.
fn name(table: Table) -> String {
    match table {
        Table::ByRow => "usertable".to_string(),
        other => format!("usertable_{}", other.name()),
    }
}

/// The statements of clients of one region.
pub(super) struct Statements {
    pub table: Table,
    /// The tables: one, or a copy for each region, the client's own first.
    tables: Vec<String>,
    /// The client's, which a computed region is never told.
    regions: Vec<String>,
    knows_regions: bool,
}

impl Statements {
    pub fn new(table: Table, regions: &[String], own: &str, knows_regions: bool) -> Statements {
        let name = name(table);
        let tables = match table == Table::Duplicates && knows_regions {
            false => vec![name],
            true => {
                let mut homes: Vec<&String> = regions.iter().collect();
                homes.sort_by_key(|region| *region != own);
                homes.into_iter().map(|region| format!("{name}_{}", schema_of(region))).collect()
            }
        };
        Statements { table, tables, regions: regions.to_vec(), knows_regions }
    }

    fn is_told_regions(&self) -> bool {
        self.table == Table::Partitioned && self.knows_regions
    }
    /// Whether rows say where they are.
    pub fn has_regions(&self) -> bool {
        self.knows_regions && self.region_column().is_some()
    }
    fn region_column(&self) -> Option<&'static str> {
        match self.table {
            Table::ByRow | Table::Rehoming | Table::Computed => Some("crdb_region"),
            Table::Partitioned => Some("home"),
            Table::Regional | Table::Global | Table::Duplicates => None,
        }
    }

    /// What creates the tables, as one transaction.
    pub fn create(&self) -> Vec<String> {
        let fields: Vec<String> = (0..FIELDS).map(|f| format!("{} TEXT NOT NULL", field_name(f))).collect();
        let fields = fields.join(", ");
        let plain = format!("ycsb_key TEXT PRIMARY KEY, {fields}");
        let table = &self.tables[0];
        if !self.knows_regions {
            return vec![format!("CREATE TABLE {table} ({plain})")];
        }
        match self.table {
            Table::Regional => vec![format!("CREATE TABLE {table} ({plain}) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION")],
            Table::Global => vec![format!("CREATE TABLE {table} ({plain}) LOCALITY GLOBAL")],
            Table::ByRow => vec![format!("CREATE TABLE {table} ({plain}) LOCALITY REGIONAL BY ROW")],
            Table::Rehoming => vec![
                "SET LOCAL enable_auto_rehoming = on".to_string(),
                format!("CREATE TABLE {table} ({plain}) LOCALITY REGIONAL BY ROW"),
            ],
            Table::Computed => {
                let cases: Vec<String> = (0..self.regions.len())
                    .map(|at| format!("WHEN '{}' THEN {}", Key::prefix(at), self.region_literal(at)))
                    .collect();
                let region = format!("CASE left(ycsb_key, {}) {} END", Key::prefix(0).len(), cases.join(" "));
                vec![format!(
                    "CREATE TABLE {table} ({plain}, crdb_region crdb_internal_region NOT NULL AS ({region}) STORED) \
                     LOCALITY REGIONAL BY ROW"
                )]
            }
            Table::Partitioned => vec![format!(
                "CREATE TABLE {table} (home crdb_internal_region NOT NULL, ycsb_key TEXT NOT NULL, {fields}, \
                 PRIMARY KEY (home, ycsb_key)) LOCALITY REGIONAL BY ROW AS home"
            )],
            Table::Duplicates => self
                .regions
                .iter()
                .map(|region| {
                    let table = format!("{}_{}", name(self.table), schema_of(region));
                    format!("CREATE TABLE {table} ({plain}) LOCALITY REGIONAL BY TABLE IN {}", quoted(region))
                })
                .collect(),
        }
    }

    fn region_literal(&self, at: usize) -> String {
        Value::from(self.regions[at].as_str()).literal()
    }
    fn row_is(&self, key: Key) -> String {
        let told =
            if self.is_told_regions() { format!(" AND home = {}", self.region_literal(key.region)) } else { String::new() };
        format!("ycsb_key = $1{told}")
    }
    /// What is read of a row: where it is, and its fields.
    fn columns(&self) -> String {
        let region = self.region_column().filter(|_| self.knows_regions).map_or("NULL".to_string(), |c| format!("{c}::TEXT"));
        let fields: Vec<String> = (0..FIELDS).map(field_name).collect();
        format!("{region}, {}", fields.join(", "))
    }

    /// A row's place and fields. `as_of`: a clause, or nothing.
    pub fn read(&self, key: Key, as_of: &str) -> String {
        format!("SELECT {} FROM {}{as_of} WHERE {}", self.columns(), self.tables[0], self.row_is(key))
    }
    /// Every row's key, place and fields, of one copy.
    pub fn read_all(&self, copy: usize) -> String {
        format!("SELECT ycsb_key, {} FROM {}", self.columns(), self.tables[copy])
    }
    /// How many copies there are.
    pub fn copies(&self) -> usize {
        self.tables.len()
    }
    /// The copies in the order in which every client changes them: clients that queue for the
    /// copies of a row in orders of their own wait for each other in circles.
    fn to_change(&self) -> impl Iterator<Item = &String> {
        let mut tables: Vec<&String> = self.tables.iter().collect();
        tables.sort();
        tables.into_iter()
    }
    /// A field's update, a statement for each copy.
    pub fn update(&self, key: Key, field: usize) -> impl Iterator<Item = String> + '_ {
        let (field, row) = (field_name(field), self.row_is(key));
        self.to_change().map(move |table| format!("UPDATE {table} SET {field} = $2 WHERE {row}"))
    }
    /// One row's insert, a statement for each copy.
    pub fn insert(&self, key: Key) -> impl Iterator<Item = String> + '_ {
        let values: Vec<String> = (1..=FIELDS + 1).map(|n| format!("${n}")).collect();
        let values = format!("({})", self.with_region(key, &values.join(", ")));
        self.to_change().map(move |table| self.insert_into(table, &values))
    }
    /// Many rows' insert: their keys, and the text of their other values. Rows that are there stay.
    pub fn load(&self, rows: &[(Key, String)]) -> impl Iterator<Item = String> + '_ {
        let rows: Vec<String> = rows.iter().map(|(key, row)| format!("({})", self.with_region(*key, row))).collect();
        let rows = rows.join(", ");
        self.tables.iter().map(move |table| format!("{} ON CONFLICT DO NOTHING", self.insert_into(table, &rows)))
    }
    fn with_region(&self, key: Key, row: &str) -> String {
        if self.is_told_regions() { format!("{row}, {}", self.region_literal(key.region)) } else { row.to_string() }
    }
    fn insert_into(&self, table: &str, rows: &str) -> String {
        let fields: Vec<String> = (0..FIELDS).map(field_name).collect();
        let region = if self.is_told_regions() { ", home" } else { "" };
        format!("INSERT INTO {table} (ycsb_key, {}{region}) VALUES {rows}", fields.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(table: Table, knows_regions: bool) -> Statements {
        Statements::new(table, &["us-east1".into(), "eu".into()], "eu", knows_regions)
    }

    #[test]
    fn only_a_partitioned_table_is_told_where_a_row_is() {
        let key = Key { region: 1, number: 7 };
        for table in Table::ALL {
            let statements = of(table, true);
            let texts = [
                statements.read(key, ""),
                statements.update(key, 3).next().expect("one"),
                statements.insert(key).next().expect("one"),
            ];
            for text in texts {
                assert_eq!(text.contains("'eu'"), table == Table::Partitioned, "{text}");
            }
            assert!(!of(table, false).create().concat().contains("LOCALITY"));
        }
    }

    #[test]
    fn a_copy_for_each_region_is_written_and_the_clients_own_is_read() {
        let statements = of(Table::Duplicates, true);
        assert_eq!(statements.create().len(), 2);
        let key = Key { region: 0, number: 7 };
        let updates: Vec<String> = statements.update(key, 0).collect();
        assert!(updates[0].contains("usertable_duplicates_eu ") && updates[1].contains("usertable_duplicates_us_east1 "));
        assert!(statements.read(key, "").contains("FROM usertable_duplicates_eu "));
        assert_eq!(of(Table::Duplicates, false).copies(), 1);
    }
}
