//! The tables that queries are about, and their rows: extremes, NULLs and duplicates among them.

use super::choices::Choices;

/// The types of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    Int4,
    Int8,
    Int2,
    Numeric,
    Float8,
    Text,
    Bool,
    Date,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Jsonb,
}

/// Those that many columns have are more frequent.
pub const TYPES: [Ty; 18] = [
    Ty::Int4,
    Ty::Text,
    Ty::Int8,
    Ty::Numeric,
    Ty::Bool,
    Ty::Date,
    Ty::Int4,
    Ty::Text,
    Ty::Timestamp,
    Ty::Numeric,
    Ty::Int4,
    Ty::Text,
    Ty::Float8,
    Ty::Int2,
    Ty::Timestamptz,
    Ty::Interval,
    Ty::Uuid,
    Ty::Jsonb,
];

impl Ty {
    pub fn name(self) -> &'static str {
        match self {
            Ty::Int2 => "int2",
            Ty::Int4 => "int4",
            Ty::Int8 => "int8",
            Ty::Numeric => "numeric",
            Ty::Float8 => "float8",
            Ty::Text => "text",
            Ty::Bool => "bool",
            Ty::Date => "date",
            Ty::Timestamp => "timestamp",
            Ty::Timestamptz => "timestamptz",
            Ty::Interval => "interval",
            Ty::Uuid => "uuid",
            Ty::Jsonb => "jsonb",
        }
    }
    /// Values of columns, without quotes; the first ones are the simplest.
    pub fn values(self) -> &'static [&'static str] {
        match self {
            Ty::Int2 => &["1", "2", "0", "-1", "3", "7", "32767", "-32768"],
            Ty::Int4 => &["1", "2", "3", "0", "-1", "5", "7", "10", "100", "2147483647", "-2147483648"],
            Ty::Int8 => &["1", "2", "0", "-1", "7", "42", "1000000", "4294967296", "9223372036854775807", "-9223372036854775808"],
            Ty::Numeric => &[
                "1",
                "2",
                "0",
                "-1",
                "1.0",
                "1.50",
                "0.001",
                "-0.5",
                "2.675",
                "99999.99",
                "123456789012345678901234567890.123",
                "NaN",
                "Infinity",
                "-Infinity",
            ],
            Ty::Float8 => {
                &["1", "2", "0", "-1", "1.5", "-0", "0.1", "1e15", "1e-7", "1e300", "-1e300", "NaN", "Infinity", "-Infinity"]
            }
            Ty::Text => {
                &["a", "b", "", "ab", "A", "abc", "a b", "1", "10", "B", "%", "a_c", "é", "null", "xyz", " a ", "\\", "日本"]
            }
            Ty::Bool => &["t", "f"],
            Ty::Date => &[
                "2024-01-01",
                "2024-02-29",
                "2023-12-31",
                "1970-01-01",
                "2000-01-01",
                "1999-12-31",
                "9999-12-31",
                "0001-01-01",
                "0044-03-15 BC",
                "infinity",
                "-infinity",
            ],
            Ty::Timestamp => &[
                "2024-01-01 00:00:00",
                "2024-02-29 12:34:56",
                "2024-01-01 00:00:00.000001",
                "1999-12-31 23:59:59.999999",
                "1970-01-01 00:00:00",
                "9999-12-31 23:59:59",
                "0044-03-15 10:00:00 BC",
                "infinity",
                "-infinity",
            ],
            Ty::Timestamptz => &[
                "2024-01-01 00:00:00+00",
                "2024-03-31 01:30:00+00",
                "2024-06-30 23:59:59.5+02",
                "1970-01-01 00:00:00+00",
                "0044-03-15 10:00:00+00 BC",
                "infinity",
                "-infinity",
            ],
            Ty::Interval => &[
                "1 day",
                "00:00:00",
                "01:00:00",
                "1 mon",
                "30 days",
                "-1 day",
                "1 year 2 mons 3 days 04:05:06.789",
                "-2 days +03:00:00",
                "24:00:00",
            ],
            Ty::Uuid => &[
                "00000000-0000-0000-0000-000000000000",
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                "ffffffff-ffff-ffff-ffff-ffffffffffff",
            ],
            Ty::Jsonb => &[
                "1",
                "null",
                "\"a\"",
                "{}",
                "[]",
                "{\"a\": 1}",
                "[1, 2]",
                "{\"a\": {\"b\": \"x\"}}",
                "true",
                "{\"b\": null, \"a\": [1, {\"c\": 2}]}",
                "-1.5",
            ],
        }
    }
}

pub struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, Ty)],
    /// The first of them are the primary key.
    pub key: usize,
    pub rows: usize,
    constraints: &'static str,
    indexes: &'static [&'static str],
}

pub const TABLES: [Table; 6] = [
    Table {
        name: "a",
        columns: &[
            ("id", Ty::Int4),
            ("i4", Ty::Int4),
            ("t", Ty::Text),
            ("i8", Ty::Int8),
            ("n", Ty::Numeric),
            ("b", Ty::Bool),
            ("d", Ty::Date),
            ("ts", Ty::Timestamp),
            ("f", Ty::Float8),
            ("i2", Ty::Int2),
            ("tz", Ty::Timestamptz),
            ("iv", Ty::Interval),
            ("u", Ty::Uuid),
            ("j", Ty::Jsonb),
        ],
        key: 1,
        rows: 30,
        constraints: "primary key (id)",
        indexes: &["(i4)", "(t, i4 desc)", "(n)", "(d) include (b)", "(f)", "(i2, ts)", "(u)", "(tz desc)"],
    },
    Table {
        name: "b",
        columns: &[
            ("k", Ty::Int4),
            ("l", Ty::Text),
            ("a_id", Ty::Int4),
            ("v", Ty::Int8),
            ("n", Ty::Numeric),
            ("t", Ty::Text),
            ("ts", Ty::Timestamp),
        ],
        key: 2,
        rows: 40,
        constraints: "primary key (k, l), foreign key (a_id) references a (id)",
        indexes: &["(a_id)", "(v, t)", "(t)"],
    },
    Table {
        name: "c",
        columns: &[
            ("id", Ty::Int8),
            ("g", Ty::Int4),
            ("h", Ty::Int4),
            ("t", Ty::Text),
            ("d", Ty::Date),
            ("b", Ty::Bool),
            ("f", Ty::Float8),
        ],
        key: 1,
        rows: 300,
        constraints: "primary key (id)",
        indexes: &["(g, h)", "(t desc, id)", "(d)"],
    },
    Table {
        name: "e",
        columns: &[("id", Ty::Int4), ("i4", Ty::Int4), ("t", Ty::Text), ("n", Ty::Numeric), ("b", Ty::Bool)],
        key: 1,
        rows: 0,
        constraints: "primary key (id)",
        indexes: &["(i4)"],
    },
    Table {
        name: "m",
        columns: &[("i4", Ty::Int4), ("t", Ty::Text), ("b", Ty::Bool), ("n", Ty::Numeric), ("iv", Ty::Interval)],
        key: 0,
        rows: 20,
        constraints: "",
        indexes: &["(i4, t)"],
    },
    Table {
        name: "p",
        columns: &[("id", Ty::Int4), ("up", Ty::Int4), ("t", Ty::Text), ("d", Ty::Date)],
        key: 1,
        rows: 15,
        constraints: "primary key (id), foreign key (up) references p (id)",
        indexes: &["(up)"],
    },
];

/// The statements that make the tables and fill them with the rows of a seed.
pub fn statements(seed: u64, with_indexes: bool) -> Vec<String> {
    let mut r = Choices::of_seed(seed);
    let mut all = Vec::new();
    for t in &TABLES {
        let columns: Vec<String> = t.columns.iter().map(|(n, ty)| format!("{n} {}", ty.name())).collect();
        let comma = if t.constraints.is_empty() { "" } else { ", " };
        all.push(format!("create table {} ({}{comma}{})", t.name, columns.join(", "), t.constraints));
        if with_indexes {
            all.extend(t.indexes.iter().map(|i| format!("create index on {} {i}", t.name)));
        }
        let rows: Vec<String> = (0..t.rows).map(|at| row(&mut r, t, at)).collect();
        if !rows.is_empty() {
            all.push(format!("insert into {} values {}", t.name, rows.join(", ")));
        }
    }
    all
}

fn row(r: &mut Choices, t: &Table, at: usize) -> String {
    let value = |r: &mut Choices, i: usize, (name, ty): (&str, Ty)| -> String {
        match (t.name, name) {
            (_, "id") => (at as i64 + 1).to_string(),
            ("b", "k") => (at / 4).to_string(),
            ("b", "l") => format!("'{}'", ["", "a", "b", "ab"][at % 4]),
            // A tree, with several roots.
            ("p", "up") if at < 2 || r.percent(10) => "null".into(),
            ("p", "up") => (r.below(at) + 1).to_string(),
            _ if i >= t.key && r.percent(15) => "null".into(),
            ("b", "a_id") => (r.below(12) + 1).to_string(),
            ("c", "g") => r.below(6).to_string(),
            ("c", "h") => r.below(50).to_string(),
            // Half of them from the simple ones, so that there are partners.
            _ if r.percent(50) => format!("'{}'", ty.values()[r.below(3).min(ty.values().len() - 1)]),
            _ => format!("'{}'", ty.values()[r.below(ty.values().len())]),
        }
    };
    let values: Vec<String> = t.columns.iter().enumerate().map(|(i, c)| value(r, i, *c)).collect();
    format!("({})", values.join(", "))
}
