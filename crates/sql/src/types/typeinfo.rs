//! What PostgreSQL's `pg_type` says about each type: oids, names, categories, lengths, modifiers.

use super::Type;

/// `pg_type.typcategory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    Array,
    Boolean,
    Composite,
    DateTime,
    Enum,
    Numeric,
    Pseudo,
    String,
    Timespan,
    UserDefined,
    Unknown,
    /// `"char"`, which resolves like nothing else.
    Internal,
}

impl Category {
    /// The letter in `pg_type`.
    pub fn letter(self) -> char {
        match self {
            Category::Array => 'A',
            Category::Boolean => 'B',
            Category::Composite => 'C',
            Category::DateTime => 'D',
            Category::Enum => 'E',
            Category::Numeric => 'N',
            Category::Pseudo => 'P',
            Category::String => 'S',
            Category::Timespan => 'T',
            Category::UserDefined => 'U',
            Category::Unknown => 'X',
            Category::Internal => 'Z',
        }
    }
}

/// Every scalar type: (type, oid, oid of its array type, internal name, SQL name, length).
const SCALARS: &[(Type, u32, u32, &str, &str, i16)] = &[
    (Type::Bool, 16, 1000, "bool", "boolean", 1),
    (Type::Bytea, 17, 1001, "bytea", "bytea", -1),
    (Type::InternalChar, 18, 1002, "char", "\"char\"", 1),
    (Type::Name, 19, 1003, "name", "name", 64),
    (Type::Int8, 20, 1016, "int8", "bigint", 8),
    (Type::Int2, 21, 1005, "int2", "smallint", 2),
    (Type::Int4, 23, 1007, "int4", "integer", 4),
    (Type::Regproc, 24, 1008, "regproc", "regproc", 4),
    (Type::Text, 25, 1009, "text", "text", -1),
    (Type::Oid, 26, 1028, "oid", "oid", 4),
    (Type::Json, 114, 199, "json", "json", -1),
    (Type::Float4, 700, 1021, "float4", "real", 4),
    (Type::Float8, 701, 1022, "float8", "double precision", 8),
    (Type::Unknown, 705, 0, "unknown", "unknown", -2),
    (Type::Char(0), 1042, 1014, "bpchar", "character", -1),
    (Type::Varchar(None), 1043, 1015, "varchar", "character varying", -1),
    (Type::Date, 1082, 1182, "date", "date", 4),
    (Type::Time, 1083, 1183, "time", "time without time zone", 8),
    (Type::Timestamp, 1114, 1115, "timestamp", "timestamp without time zone", 8),
    (Type::Timestamptz, 1184, 1185, "timestamptz", "timestamp with time zone", 8),
    (Type::Interval, 1186, 1187, "interval", "interval", 16),
    (Type::Numeric(None), 1700, 1231, "numeric", "numeric", -1),
    (Type::Regclass, 2205, 2210, "regclass", "regclass", 4),
    (Type::Regtype, 2206, 2211, "regtype", "regtype", 4),
    (Type::Record, 2249, 2287, "record", "record", -1),
    (Type::Void, 2278, 0, "void", "void", 4),
    (Type::Uuid, 2950, 2951, "uuid", "uuid", 16),
    (Type::Jsonb, 3802, 3807, "jsonb", "jsonb", -1),
    (Type::Regnamespace, 4089, 4090, "regnamespace", "regnamespace", 4),
    // PostgreSQL gives oids below 16384 to no type of its users, and those near it to none of its
    // own.
    (Type::Region, 16300, 16301, "crdb_internal_region", "crdb_internal_region", 4),
];

fn entry(t: &Type) -> &'static (Type, u32, u32, &'static str, &'static str, i16) {
    let base = t.without_modifier();
    SCALARS.iter().find(|e| e.0 == base).expect("every scalar type is in the table")
}

impl Type {
    /// Every type the database has, arrays included: what `pg_type` lists.
    pub fn all() -> Vec<Type> {
        let scalars = SCALARS.iter().map(|e| e.0.clone());
        let arrays = SCALARS.iter().filter(|e| e.2 != 0).map(|e| Type::Array(Box::new(e.0.clone())));
        scalars.chain(arrays).collect()
    }

    /// The object id that drivers know it by.
    pub fn oid(&self) -> u32 {
        match self {
            // The common ones without a search.
            Type::Int4 => 23,
            Type::Int8 => 20,
            Type::Text => 25,
            Type::Array(e) => entry(e.innermost()).2,
            t => entry(t).1,
        }
    }
    /// The type with an oid; without modifier.
    pub fn from_oid(oid: u32) -> Option<Type> {
        SCALARS.iter().find_map(|e| match oid {
            _ if e.1 == oid => Some(e.0.clone()),
            _ if e.2 == oid && oid != 0 => Some(Type::Array(Box::new(e.0.clone()))),
            _ => None,
        })
    }
    /// The oid of the array over it; 0 if there is none.
    pub fn array_oid(&self) -> u32 {
        match self {
            Type::Array(_) => 0,
            t => entry(t).2,
        }
    }
    /// As `format_type(oid, typmod)` names it: `character varying(20)`, `integer[]`.
    pub fn name(&self) -> String {
        match self {
            Type::Numeric(Some((p, s))) => format!("numeric({p},{s})"),
            Type::Varchar(Some(n)) => format!("character varying({n})"),
            Type::Char(0) => "bpchar".to_string(),
            Type::Char(n) => format!("character({n})"),
            Type::Array(e) => format!("{}[]", e.innermost().name()),
            t => entry(t).4.to_string(),
        }
    }
    /// The name without modifier, as error messages give it: `character varying`, `numeric`.
    pub fn base_name(&self) -> String {
        match self {
            Type::Array(e) => format!("{}[]", e.innermost().base_name()),
            t => entry(t).4.to_string(),
        }
    }
    /// `pg_type.typname`: `varchar`, `_int4`.
    pub fn internal_name(&self) -> String {
        match self {
            Type::Array(e) => format!("_{}", entry(e.innermost()).3),
            t => entry(t).3.to_string(),
        }
    }
    /// A type by one of its names, without modifier: SQL names, internal names, CockroachDB's
    /// aliases, `x[]`. Case and a `pg_catalog.` prefix do not matter.
    pub fn from_name(name: &str) -> Option<Type> {
        let lower = name.trim().to_ascii_lowercase();
        let name = lower.strip_prefix("pg_catalog.").unwrap_or(&lower);
        if let Some(element) = name.strip_suffix("[]") {
            return match Type::from_name(element.trim())? {
                Type::Array(e) => Some(Type::Array(e)),
                t if t.array_oid() == 0 => None,
                t => Some(Type::Array(Box::new(t))),
            };
        }
        if let Some(e) = SCALARS.iter().find(|e| e.4 == name) {
            return Some(if e.0 == Type::Char(0) { Type::Char(1) } else { e.0.clone() });
        }
        if let Some(e) = SCALARS.iter().find(|e| e.3 == name && name != "char") {
            return Some(e.0.clone());
        }
        if let Some(element) = name.strip_prefix('_') {
            return SCALARS.iter().find(|e| e.3 == element && e.2 != 0).map(|e| Type::Array(Box::new(e.0.clone())));
        }
        Some(match name {
            "int" => Type::Int4,
            "decimal" | "dec" => Type::Numeric(None),
            "float" => Type::Float8,
            "char" => Type::Char(1),
            "string" => Type::Text,
            "bytes" => Type::Bytea,
            "time" => Type::Time,
            "timestamp" => Type::Timestamp,
            "timestamp with time zone" => Type::Timestamptz,
            _ => return None,
        })
    }
    /// `pg_attribute.atttypmod`; -1 for none.
    pub fn typmod(&self) -> i32 {
        match self {
            Type::Numeric(Some((p, s))) => (((*p as i32) << 16) | ((*s as i32) & 0x7FF)) + 4,
            Type::Varchar(Some(n)) => *n as i32 + 4,
            Type::Char(n) if *n > 0 => *n as i32 + 4,
            Type::Array(e) => e.typmod(),
            _ => -1,
        }
    }
    /// The type with a modifier as `pg_attribute` holds it: the inverse of [`Type::typmod`].
    pub fn with_typmod(self, typmod: i32) -> Type {
        if typmod < 4 {
            return self;
        }
        let m = typmod - 4;
        match self {
            Type::Numeric(_) => {
                // The scale is an 11-bit signed number.
                let scale = ((m & 0x7FF) ^ 0x400) - 0x400;
                Type::Numeric(Some(((m >> 16) as u16, scale as i16)))
            }
            Type::Varchar(_) => Type::Varchar(Some(m as u32)),
            Type::Char(_) => Type::Char(m as u32),
            Type::Array(e) => Type::Array(Box::new(e.with_typmod(typmod))),
            t => t,
        }
    }
    /// The type without precision, scale or length; `char(n)` becomes `bpchar`, which is `Char(0)`.
    pub fn without_modifier(&self) -> Type {
        match self {
            Type::Numeric(_) => Type::Numeric(None),
            Type::Varchar(_) => Type::Varchar(None),
            Type::Char(_) => Type::Char(0),
            Type::Array(e) => Type::Array(Box::new(e.without_modifier())),
            t => t.clone(),
        }
    }
    /// Whether the two are the same but for modifiers.
    pub fn same_base(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Numeric(_), Type::Numeric(_)) | (Type::Varchar(_), Type::Varchar(_)) | (Type::Char(_), Type::Char(_)) => true,
            (Type::Array(a), Type::Array(b)) => a.innermost().same_base(b.innermost()),
            (a, b) => a == b,
        }
    }
    /// `pg_type.typlen`: bytes of a fixed-length type, -1 for variable ones.
    pub fn typlen(&self) -> i16 {
        match self {
            Type::Array(_) => -1,
            t => entry(t).5,
        }
    }
    /// `pg_type.typcategory`.
    pub fn category(&self) -> Category {
        match self {
            Type::Bool => Category::Boolean,
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Float4 | Type::Float8 | Type::Numeric(_) => Category::Numeric,
            Type::Oid | Type::Regclass | Type::Regtype | Type::Regproc | Type::Regnamespace => Category::Numeric,
            Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name => Category::String,
            Type::InternalChar => Category::Internal,
            Type::Date | Type::Time | Type::Timestamp | Type::Timestamptz => Category::DateTime,
            Type::Interval => Category::Timespan,
            Type::Region => Category::Enum,
            Type::Bytea | Type::Uuid | Type::Json | Type::Jsonb => Category::UserDefined,
            Type::Array(_) => Category::Array,
            Type::Unknown => Category::Unknown,
            Type::Void | Type::Record => Category::Pseudo,
        }
    }
    /// Whether resolution prefers it within its category (PostgreSQL manual, 10.1).
    pub fn is_preferred(&self) -> bool {
        matches!(self, Type::Bool | Type::Float8 | Type::Oid | Type::Text | Type::Timestamptz | Type::Interval)
    }
    /// The element type, if it is an array.
    pub fn element(&self) -> Option<&Type> {
        match self {
            Type::Array(e) => Some(e.innermost()),
            _ => None,
        }
    }
    /// The array type over it; an array's is itself (PostgreSQL's arrays carry their dimensions in
    /// the value).
    pub fn array_of(&self) -> Type {
        match self {
            Type::Array(_) => self.clone(),
            t => Type::Array(Box::new(t.clone())),
        }
    }
    fn innermost(&self) -> &Type {
        match self {
            Type::Array(e) => e.innermost(),
            t => t,
        }
    }
    /// Whether values are `Datum::Text`.
    pub fn is_string(&self) -> bool {
        self.category() == Category::String || *self == Type::Unknown
    }
    /// `oid` and the `reg*` types.
    pub fn is_oid_like(&self) -> bool {
        matches!(self, Type::Oid | Type::Regclass | Type::Regtype | Type::Regproc | Type::Regnamespace)
    }
}

/// PostgreSQL's types that this database does not have (manual, chapter 8).
const MISSING: [&str; 36] = [
    "bit",
    "box",
    "cidr",
    "circle",
    "datemultirange",
    "daterange",
    "inet",
    "int4multirange",
    "int4range",
    "int8multirange",
    "int8range",
    "jsonpath",
    "line",
    "lseg",
    "macaddr",
    "macaddr8",
    "money",
    "nummultirange",
    "numrange",
    "path",
    "pg_lsn",
    "pg_snapshot",
    "point",
    "polygon",
    "refcursor",
    "timetz",
    "tsmultirange",
    "tsquery",
    "tsrange",
    "tstzmultirange",
    "tstzrange",
    "tsvector",
    "txid_snapshot",
    "varbit",
    "xid8",
    "xml",
];

/// Whether a name is that of one of them.
pub(crate) fn is_missing(name: &str) -> bool {
    MISSING.contains(&name)
}
