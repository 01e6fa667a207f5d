//! The table of functions and operators, written as signatures: `"text, int4 -> text"`.
//!
//! Types are PostgreSQL's internal names; `anyelement`, `anyarray`, `anycompatible`, `any` are its
//! pseudo-types; `variadic` before the last one lets it repeat (`"text, variadic any -> text"`).
//! `setof` before the result makes a set-returning function.

use super::{Accumulator, Aggregate, Call, ScalarFn, SetRows, Volatility};
use crate::types::{Datum, Type};
use meridian_base::Result;
use std::collections::BTreeMap;

/// One parameter or result of a signature.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    Type(Type),
    /// All `AnyElement`s and the elements of all `AnyArray`s of a call are one type.
    AnyElement,
    /// The same, but no array.
    AnyNonArray,
    AnyArray,
    /// As `AnyElement`, but the arguments are converted to their common type.
    AnyCompatible,
    AnyCompatibleArray,
    /// Whatever it is, as it is.
    Any,
}

/// What runs when the function is called.
#[derive(Clone, Copy)]
pub enum Body {
    Scalar(ScalarFn),
    Aggregate(fn(&Aggregate) -> Box<dyn Accumulator>),
    Set(fn(&Call<'_>, &[Datum]) -> Result<SetRows>),
}

/// One overload.
#[derive(Clone)]
pub struct Def {
    pub name: &'static str,
    pub params: Vec<Param>,
    /// The last parameter repeats, zero times or more.
    pub variadic: bool,
    pub result: Param,
    pub strict: bool,
    pub volatility: Volatility,
    pub body: Body,
    /// Column names of a set-returning function with several columns, and their types.
    pub columns: Vec<(String, Type)>,
    /// See [`Def::dear_above`].
    pub dear_above: i64,
}

impl Def {
    /// Depends on the session or the catalog, but not within a statement.
    pub fn stable(&mut self) -> &mut Def {
        self.volatility = Volatility::Stable;
        self
    }
    /// Stable for some of the types that a signature is written for.
    pub fn stable_if(&mut self, depends: bool) -> &mut Def {
        if depends { self.stable() } else { self }
    }
    /// May differ from call to call.
    pub fn volatile(&mut self) -> &mut Def {
        self.volatility = Volatility::Volatile;
        self
    }
    /// An integer argument above this makes the call long, or its result large. Such a call is
    /// computed aside, as calls with large arguments are.
    pub fn dear_above(&mut self, limit: i64) -> &mut Def {
        self.dear_above = limit;
        self
    }
    /// Wants to see `NULL` arguments.
    pub fn sees_null(&mut self) -> &mut Def {
        self.strict = false;
        self
    }
    /// Names and types of a set-returning function's columns.
    pub fn columns(&mut self, columns: &[(&str, &str)]) -> &mut Def {
        self.columns = columns
            .iter()
            .map(|(n, t)| (n.to_string(), Type::from_name(t).unwrap_or_else(|| panic!("{t} is no type"))))
            .collect();
        self
    }
}

/// Functions and operators by name.
#[derive(Default)]
pub struct Registry {
    pub functions: BTreeMap<&'static str, Vec<Def>>,
    pub operators: BTreeMap<&'static str, Vec<Def>>,
}

impl Registry {
    /// A scalar function: strict and immutable unless changed.
    pub fn scalar(&mut self, name: &'static str, signature: &str, body: ScalarFn) -> &mut Def {
        push(&mut self.functions, name, signature, Body::Scalar(body))
    }
    /// An operator; one parameter makes it a prefix operator.
    pub fn operator(&mut self, name: &'static str, signature: &str, body: ScalarFn) -> &mut Def {
        push(&mut self.operators, name, signature, Body::Scalar(body))
    }
    /// An aggregate.
    pub fn aggregate(&mut self, name: &'static str, signature: &str, make: fn(&Aggregate) -> Box<dyn Accumulator>) -> &mut Def {
        push(&mut self.functions, name, signature, Body::Aggregate(make))
    }
    /// A set-returning function.
    pub fn set(&mut self, name: &'static str, signature: &str, body: fn(&Call<'_>, &[Datum]) -> Result<SetRows>) -> &mut Def {
        push(&mut self.functions, name, signature, Body::Set(body))
    }
}

fn push<'a>(table: &'a mut BTreeMap<&'static str, Vec<Def>>, name: &'static str, signature: &str, body: Body) -> &'a mut Def {
    let (params, result) = signature.split_once("->").unwrap_or_else(|| panic!("{name}: a signature has an arrow"));
    let (mut list, mut variadic) = (Vec::new(), false);
    for p in params.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        variadic = p.starts_with("variadic ");
        list.push(param(p.trim_start_matches("variadic ")));
    }
    let overloads = table.entry(name).or_default();
    overloads.push(Def {
        name,
        params: list,
        variadic,
        result: param(result.trim()),
        strict: true,
        volatility: Volatility::Immutable,
        body,
        columns: Vec::new(),
        dear_above: i64::MAX,
    });
    overloads.last_mut().expect("just pushed")
}

fn param(text: &str) -> Param {
    match text {
        "anyelement" => Param::AnyElement,
        "anynonarray" => Param::AnyNonArray,
        "anyarray" => Param::AnyArray,
        "anycompatible" => Param::AnyCompatible,
        "anycompatiblearray" => Param::AnyCompatibleArray,
        "any" => Param::Any,
        "char" => Param::Type(Type::InternalChar),
        "bpchar" => Param::Type(Type::Char(0)),
        t => Param::Type(Type::from_name(t).unwrap_or_else(|| panic!("{t} is no type"))),
    }
}
