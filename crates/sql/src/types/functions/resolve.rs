//! Which overload a call means (PostgreSQL manual, 10.2 and 10.3).

use super::missing::is_missing;
use super::registry::{Body, Def, Param, Registry};
use super::{Aggregate, Call, Function, FunctionKind, SetFunction, Volatility};
use crate::types::cast::{can_cast, cast, is_immutable_cast, select_common_type};
use crate::types::{CastContext, Category, Datum, Type};
use meridian_base::{Error, Result};

/// A candidate with its parameters spread over the call's arguments.
struct Candidate<'a> {
    def: &'a Def,
    params: Vec<&'a Param>,
}

enum Choice<'a> {
    One(&'a Def),
    None,
    Ambiguous,
}

fn spread<'a>(def: &'a Def, count: usize) -> Option<Candidate<'a>> {
    let n = def.params.len();
    if def.variadic {
        if count + 1 < n {
            return None;
        }
        let params = (0..count).map(|i| &def.params[i.min(n - 1)]).collect();
        return Some(Candidate { def, params });
    }
    (n == count).then(|| Candidate { def, params: def.params.iter().collect() })
}

fn is_exact(param: &Param, arg: &Type) -> bool {
    matches!(param, Param::Type(t) if t.same_base(arg))
}

fn accepts(param: &Param, arg: &Type) -> bool {
    match param {
        Param::Type(t) => can_cast(arg, t, CastContext::Implicit),
        Param::AnyArray | Param::AnyCompatibleArray => matches!(arg, Type::Array(_) | Type::Unknown),
        Param::AnyNonArray => !matches!(arg, Type::Array(_)),
        Param::AnyElement | Param::AnyCompatible | Param::Any => true,
    }
}

/// The type that the polymorphic parameters of a call stand for; `None` if its arguments disagree.
/// Inner `None`: there are none.
fn polymorphic(params: &[&Param], args: &[Type]) -> Option<Option<Type>> {
    let mut element: Option<Type> = None;
    let mut compatible = Vec::new();
    let mut any = false;
    for (p, a) in params.iter().zip(args) {
        any |= !matches!(p, Param::Type(_) | Param::Any);
        let e = match (p, a) {
            (Param::Type(_) | Param::Any, _) | (_, Type::Unknown) => continue,
            (Param::AnyElement | Param::AnyNonArray, t) => t.clone(),
            (Param::AnyArray, t) => t.element()?.clone(),
            (Param::AnyCompatible, t) => {
                compatible.push(t.clone());
                continue;
            }
            (Param::AnyCompatibleArray, t) => {
                compatible.push(t.element()?.clone());
                continue;
            }
        };
        match &element {
            Some(known) if !known.same_base(&e) => return None,
            Some(_) => {}
            None => element = Some(e.without_modifier()),
        }
    }
    if !compatible.is_empty() {
        element = Some(select_common_type(&compatible, "function arguments").ok()?.without_modifier());
    }
    Some(if any { Some(element.unwrap_or(Type::Unknown)) } else { None })
}

fn choose<'a>(defs: impl Iterator<Item = &'a Def>, args: &[Type]) -> Choice<'a> {
    let mut left: Vec<Candidate> = defs.filter_map(|d| spread(d, args.len())).collect();
    if let Some(c) = left.iter().find(|c| c.params.iter().zip(args).all(|(p, a)| is_exact(p, a) && *a != Type::Unknown)) {
        return Choice::One(c.def);
    }
    left.retain(|c| c.params.iter().zip(args).all(|(p, a)| accepts(p, a)) && polymorphic(&c.params, args).is_some());
    let settled = |left: &Vec<Candidate<'a>>| match left.len() {
        0 => Some(Choice::None),
        1 => Some(Choice::One(left[0].def)),
        _ => None,
    };
    if let Some(c) = settled(&left) {
        return c;
    }
    // 10.3 step 4.c: most exact matches.
    keep_best(&mut left, |c| c.params.iter().zip(args).filter(|(p, a)| **a != Type::Unknown && is_exact(p, a)).count());
    if let Some(c) = settled(&left) {
        return c;
    }
    // 4.d: most preferred types where a conversion is needed.
    keep_best(&mut left, |c| {
        let good = |(p, a): (&&Param, &Type)| match p {
            Param::Type(t) => *a != Type::Unknown && (t.same_base(a) || (t.is_preferred() && t.category() == a.category())),
            _ => false,
        };
        c.params.iter().zip(args).filter(|x| good((x.0, x.1))).count()
    });
    if let Some(c) = settled(&left) {
        return c;
    }
    if args.contains(&Type::Unknown) {
        if let Some(c) = narrow_by_category(&mut left, args) {
            return c;
        }
        // 4.f: unknown arguments like the known ones, if those are all of one type.
        let mut known = args.iter().filter(|t| **t != Type::Unknown);
        if let Some(first) = known.next()
            && known.all(|t| t.same_base(first))
        {
            let all: Vec<Type> = args.iter().map(|_| first.clone()).collect();
            let mut fits = left.iter().filter(|c| c.params.iter().zip(&all).all(|(p, a)| accepts(p, a)));
            if let (Some(one), None) = (fits.next(), fits.next()) {
                return Choice::One(one.def);
            }
        }
    }
    // A polymorphic candidate is the last resort: every specific one goes before it.
    let specific: Vec<&Candidate> = left.iter().filter(|c| c.params.iter().all(|p| matches!(p, Param::Type(_)))).collect();
    if specific.len() == 1 && left.len() > 1 && !args.iter().all(|a| *a == Type::Unknown) {
        return Choice::One(specific[0].def);
    }
    Choice::Ambiguous
}

fn keep_best(left: &mut Vec<Candidate>, score: impl Fn(&Candidate) -> usize) {
    let best = left.iter().map(&score).max().unwrap_or(0);
    left.retain(|c| score(c) == best);
}

/// 4.e: per unknown argument, the category that the candidates accept; strings win, and preferred
/// types within it.
fn narrow_by_category<'a>(left: &mut Vec<Candidate<'a>>, args: &[Type]) -> Option<Choice<'a>> {
    let mut plan: Vec<(usize, Category, bool)> = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        if *arg != Type::Unknown {
            continue;
        }
        let mut category = None;
        let mut conflict = false;
        for c in left.iter() {
            let this = match c.params[i] {
                Param::Type(t) => t.category(),
                Param::AnyArray | Param::AnyCompatibleArray => Category::Array,
                _ => Category::Pseudo,
            };
            if this == Category::String {
                category = Some(Category::String);
                conflict = false;
                break;
            }
            match category {
                None => category = Some(this),
                Some(known) if known != this => conflict = true,
                Some(_) => {}
            }
        }
        if conflict {
            return None;
        }
        let category = category?;
        let has_preferred =
            left.iter().any(|c| matches!(c.params[i], Param::Type(t) if t.category() == category && t.is_preferred()));
        plan.push((i, category, has_preferred));
    }
    let fits = |c: &Candidate| {
        plan.iter().all(|(i, category, preferred)| match c.params[*i] {
            Param::Type(t) => t.category() == *category && (!preferred || t.is_preferred()),
            Param::AnyArray | Param::AnyCompatibleArray => *category == Category::Array,
            _ => *category == Category::Pseudo,
        })
    };
    if left.iter().any(fits) {
        left.retain(fits);
    }
    (left.len() == 1).then(|| Choice::One(left[0].def))
}

fn concrete(param: &Param, arg: &Type, element: &Option<Type>) -> Type {
    let element = || element.clone().filter(|e| *e != Type::Unknown).unwrap_or(Type::Text);
    match param {
        // Parameters have no modifiers: `numeric(10,2) = '5.123'` rounds nothing.
        Param::Type(t) if t.same_base(arg) => arg.without_modifier(),
        Param::Type(t) => t.clone(),
        Param::Any if *arg == Type::Unknown => Type::Text,
        Param::Any => arg.clone(),
        Param::AnyElement | Param::AnyNonArray | Param::AnyCompatible => element(),
        Param::AnyArray | Param::AnyCompatibleArray => element().array_of(),
    }
}

/// Argument and result types of a chosen overload.
fn instantiate(def: &Def, args: &[Type]) -> (Vec<Type>, Type) {
    let spread = spread(def, args.len()).expect("the chosen overload fits the call");
    let element = polymorphic(&spread.params, args).flatten();
    let types = spread.params.iter().zip(args).map(|(p, a)| concrete(p, a, &element)).collect();
    let result = concrete(&def.result, &Type::Void, &element);
    (types, result)
}

fn function_of(def: &Def, args: &[Type]) -> Result<Function> {
    let Body::Scalar(body) = def.body else { return Err(Error::internal(format!("{} is not a scalar function", def.name))) };
    let (args, result) = instantiate(def, args);
    Ok(Function {
        name: def.name,
        body,
        args,
        result,
        strict: def.strict,
        volatility: def.volatility,
        dear_above: def.dear_above,
    })
}

fn list(args: &[Type]) -> String {
    args.iter().map(Type::base_name).collect::<Vec<_>>().join(", ")
}

/// A call such as `text(x)` or `float8('1')`: the name of a type used as a function (10.3 step 3).
fn cast_call(name: &str, args: &[Type]) -> Option<Function> {
    let [from] = args else { return None };
    let to = Type::from_name(name).filter(|t| t.internal_name() == name)?;
    if !can_cast(from, &to, CastContext::Explicit) {
        return None;
    }
    fn body(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
        cast(args[0].clone(), &call.args[0], call.result, CastContext::Explicit, call.ctx)
    }
    let volatility = if is_immutable_cast(from, &to) { Volatility::Immutable } else { Volatility::Stable };
    Some(Function { name: "cast", body, args: vec![from.clone()], result: to, strict: true, volatility, dear_above: i64::MAX })
}

impl Registry {
    /// Resolves a binary (`[left, right]`) or prefix (`[right]`) operator. 42883 if none fits,
    /// 42725 if several do.
    pub fn resolve_operator(&self, op: &str, args: &[Type]) -> Result<Function> {
        let call = || match args {
            [one] => format!("{op} {}", one.base_name()),
            [l, r] => format!("{} {op} {}", l.base_name(), r.base_name()),
            _ => op.to_string(),
        };
        let defs = self.operators.get(op).map(Vec::as_slice).unwrap_or_default();
        // 10.2 step 2.a: an unknown side is taken to be like the other one, if that fits exactly.
        let assumed = match args {
            [l, Type::Unknown] => Some([l.clone(), l.clone()]),
            [Type::Unknown, r] => Some([r.clone(), r.clone()]),
            _ => None,
        };
        if let Some(both) = assumed.filter(|b| b[0] != Type::Unknown) {
            // An array takes the other side for an array too: `ARRAY[1] || '{2}'`,
            // `ARRAY[1] || NULL`.
            let fits = |p: &Param, a: &Type| {
                is_exact(p, a) || matches!((p, a), (Param::AnyArray | Param::AnyCompatibleArray, Type::Array(_)))
            };
            let exact = |d: &&Def| d.params.len() == 2 && d.params.iter().zip(&both).all(|(p, a)| fits(p, a));
            if let Some(def) = defs.iter().find(exact) {
                return function_of(def, &both);
            }
        }
        match choose(defs.iter(), args) {
            Choice::One(def) => function_of(def, args),
            Choice::None => Err(Error::sql("42883", format!("operator does not exist: {}", call()))
                .hint("No operator matches the given name and argument types. You might need to add explicit type casts.")),
            Choice::Ambiguous => Err(Error::sql("42725", format!("operator is not unique: {}", call()))
                .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")),
        }
    }

    fn find(&self, name: &str, args: &[Type]) -> Result<&Def> {
        let defs = self.functions.get(name).map(Vec::as_slice).unwrap_or_default();
        if defs.is_empty() && is_missing(name) {
            return Err(Error::unsupported(format!("function {name} is not supported")));
        }
        match choose(defs.iter(), args) {
            Choice::One(def) => Ok(def),
            Choice::None => Err(Error::sql("42883", format!("function {name}({}) does not exist", list(args)))
                .hint("No function matches the given name and argument types. You might need to add explicit type casts.")),
            Choice::Ambiguous => Err(Error::sql("42725", format!("function {name}({}) is not unique", list(args)))
                .hint("Could not choose a best candidate function. You might need to add explicit type casts.")),
        }
    }

    /// Resolves a scalar function by its name (lower case, without `pg_catalog.`).
    pub fn resolve_function(&self, name: &str, args: &[Type]) -> Result<Function> {
        match self.find(name, args) {
            Ok(def) => function_of(def, args),
            Err(e) => cast_call(name, args).ok_or(e),
        }
    }

    /// Resolves an aggregate.
    pub fn resolve_aggregate(&self, name: &str, args: &[Type]) -> Result<Aggregate> {
        let def = self.find(name, args)?;
        let Body::Aggregate(make) = def.body else {
            return Err(Error::sql("42809", format!("{name} is not an aggregate function")));
        };
        let (args, result) = instantiate(def, args);
        Ok(Aggregate { name: def.name, args, result, make })
    }

    /// Resolves a set-returning function.
    pub fn resolve_set_function(&self, name: &str, args: &[Type]) -> Result<SetFunction> {
        let def = self.find(name, args)?;
        let Body::Set(body) = def.body else {
            return Err(Error::sql("42809", format!("{name} does not return a set")));
        };
        let (args, result) = instantiate(def, args);
        let columns = if def.columns.is_empty() { vec![(name.to_string(), result)] } else { def.columns.clone() };
        Ok(SetFunction { name: def.name, args, columns, body, strict: def.strict })
    }

    /// The kind of the functions of a name (lower case, without `pg_catalog.`); `None` if there is
    /// none. Window-only functions (`row_number`, …) are the planner's.
    pub fn kind_of(&self, name: &str) -> Option<FunctionKind> {
        if let Some(def) = self.functions.get(name).and_then(|d| d.first()) {
            return Some(match def.body {
                Body::Scalar(_) => FunctionKind::Scalar,
                Body::Aggregate(_) => FunctionKind::Aggregate,
                Body::Set(_) => FunctionKind::Set,
            });
        }
        Type::from_name(name).filter(|t| t.internal_name() == name).map(|_| FunctionKind::Scalar)
    }
}
