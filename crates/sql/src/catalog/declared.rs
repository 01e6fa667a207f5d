//! Column types and column definitions.

use crate::catalog::names::Name;
use crate::types::Type;
use crate::types::typeinfo::is_missing;
use meridian_base::{Error, Result};
use sqlparser::ast::{ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, ObjectName, TimezoneInfo};

/// A column's declared type: `serial` is an integer with a sequence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declared {
    pub ty: Type,
    pub is_serial: bool,
}

/// The type of a column definition.
pub(crate) fn declared(data_type: &DataType) -> Result<Declared> {
    if let DataType::Custom(name, _) = data_type {
        let ty = match Name::from_ast(name)?.name.as_str() {
            "serial" | "serial4" => Some(Type::Int4),
            "bigserial" | "serial8" => Some(Type::Int8),
            "smallserial" | "serial2" => Some(Type::Int2),
            _ => None,
        };
        if let Some(ty) = ty {
            return Ok(Declared { ty, is_serial: true });
        }
    }
    let ty = type_from_ast(data_type)?;
    if matches!(ty, Type::Unknown | Type::Void | Type::Record) {
        return Err(Error::sql("42P16", format!("a column cannot have the pseudo-type {}", ty.name())));
    }
    Ok(Declared { ty, is_serial: false })
}

/// A type as the parser has it.
pub fn type_from_ast(data_type: &DataType) -> Result<Type> {
    let unknown = || {
        let name = data_type.to_string().to_lowercase();
        match is_missing(name.trim_start_matches("pg_catalog.")) {
            true => Error::unsupported(format!("type \"{name}\" is not supported")),
            false => Error::sql("42704", format!("type \"{name}\" does not exist")),
        }
    };
    Ok(match data_type {
        DataType::Boolean | DataType::Bool => Type::Bool,
        DataType::SmallInt(None) | DataType::Int2(None) => Type::Int2,
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => Type::Int4,
        DataType::BigInt(None) | DataType::Int8(None) | DataType::Int64 => Type::Int8,
        DataType::Real | DataType::Float4 => Type::Float4,
        DataType::Float8 | DataType::Float64 | DataType::DoublePrecision | DataType::Double(ExactNumberInfo::None) => {
            Type::Float8
        }
        DataType::Float(info) => float(info)?,
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => numeric(info)?,
        DataType::Text | DataType::String(None) => Type::Text,
        DataType::Varchar(length)
        | DataType::CharVarying(length)
        | DataType::CharacterVarying(length)
        | DataType::Nvarchar(length) => Type::Varchar(characters("varchar", length)?),
        DataType::String(Some(n)) => Type::Varchar(Some(length_in_range("varchar", *n)?)),
        DataType::Char(length) | DataType::Character(length) => Type::Char(characters("char", length)?.unwrap_or(1)),
        DataType::Bytea | DataType::Bytes(None) => Type::Bytea,
        DataType::Uuid => Type::Uuid,
        DataType::JSON => Type::Json,
        DataType::JSONB => Type::Jsonb,
        DataType::Date => Type::Date,
        DataType::Time(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => Type::Time,
        DataType::Timestamp(precision, zone) => timestamp(*precision, zone)?,
        DataType::Interval { fields: None, precision: None } => Type::Interval,
        DataType::Regclass => Type::Regclass,
        DataType::Array(element) => array(element)?,
        DataType::Custom(name, modifiers) => custom(name, modifiers).ok_or_else(unknown)?,
        _ => {
            let name = data_type.to_string().to_lowercase();
            return Err(Error::unsupported(format!("type \"{name}\" is not supported")));
        }
    })
}

fn float(info: &ExactNumberInfo) -> Result<Type> {
    match info {
        ExactNumberInfo::None => Ok(Type::Float8),
        ExactNumberInfo::Precision(1..=24) => Ok(Type::Float4),
        ExactNumberInfo::Precision(25..=53) => Ok(Type::Float8),
        ExactNumberInfo::Precision(0) => Err(Error::sql("22023", "precision for type float must be at least 1 bit")),
        _ => Err(Error::sql("22023", "precision for type float must be less than 54 bits")),
    }
}

fn numeric(info: &ExactNumberInfo) -> Result<Type> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(Type::Numeric(None)),
        ExactNumberInfo::Precision(p) => (*p, 0),
        ExactNumberInfo::PrecisionAndScale(p, s) => (*p, *s),
    };
    if !(1..=1000).contains(&precision) {
        return Err(Error::sql("22023", format!("NUMERIC precision {precision} must be between 1 and 1000")));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(Error::sql("22023", format!("NUMERIC scale {scale} must be between -1000 and 1000")));
    }
    Ok(Type::Numeric(Some((precision as u16, scale as i16))))
}

fn characters(ty: &str, length: &Option<CharacterLength>) -> Result<Option<u32>> {
    match length {
        None | Some(CharacterLength::Max) => Ok(None),
        Some(CharacterLength::IntegerLength { length, .. }) => length_in_range(ty, *length).map(Some),
    }
}

fn length_in_range(ty: &str, length: u64) -> Result<u32> {
    match length {
        0 => Err(Error::sql("22023", format!("length for type {ty} must be at least 1"))),
        1..=10_485_760 => Ok(length as u32),
        _ => Err(Error::sql("22023", format!("length for type {ty} cannot exceed 10485760"))),
    }
}

fn timestamp(precision: Option<u64>, zone: &TimezoneInfo) -> Result<Type> {
    // Six digits is what is stored anyway.
    if !matches!(precision, None | Some(6)) {
        return Err(Error::unsupported("a precision of timestamps other than 6 is not supported"));
    }
    Ok(match zone {
        TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => Type::Timestamp,
        TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => Type::Timestamptz,
    })
}

fn array(element: &ArrayElemTypeDef) -> Result<Type> {
    match element {
        // PostgreSQL ignores declared sizes and dimensions (manual 8.15.1).
        ArrayElemTypeDef::SquareBracket(t, _)
        | ArrayElemTypeDef::Qualified(t, _)
        | ArrayElemTypeDef::AngleBracket(t)
        | ArrayElemTypeDef::Parenthesis(t) => Ok(type_from_ast(t)?.array_of()),
        ArrayElemTypeDef::None => Err(Error::sql("42601", "an array type needs an element type")),
    }
}

fn custom(name: &ObjectName, modifiers: &[String]) -> Option<Type> {
    let name = Name::from_ast(name).ok()?;
    // CockroachDB writes the regions of a database as a type of its schema `public`.
    let is_region = name.name == "crdb_internal_region" && name.schema.as_deref() == Some("public");
    if name.schema.as_deref().is_some_and(|s| s != "pg_catalog") && !is_region {
        return None;
    }
    let length = |default| match modifiers {
        [] => Some(default),
        [n] => n.parse().ok(),
        _ => None,
    };
    match name.name.as_str() {
        "bpchar" => Some(Type::Char(length(0)?)),
        "varchar" if !modifiers.is_empty() => Some(Type::Varchar(Some(length(0)?))),
        // A quoted "char" is PostgreSQL's one-byte type; unquoted `char` never gets here.
        "char" => Some(Type::InternalChar),
        other if modifiers.is_empty() => Type::from_name(other),
        _ => None,
    }
}
