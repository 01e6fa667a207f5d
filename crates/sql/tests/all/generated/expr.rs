//! Expressions of a given type over the columns that can be seen. They fail on no value of the
//! tables, so that an answer does not depend on what is computed first; [`Generator::risky`] makes
//! those that may fail.

use super::choices::Choices;
use super::schema::{TYPES, Ty};

/// Something that has a value in every row: a column, or what a group has.
#[derive(Clone, Debug)]
pub struct Col {
    pub sql: String,
    pub ty: Ty,
}

/// What an expression may be made of.
#[derive(Clone, Default)]
pub struct Scope {
    pub cols: Vec<Col>,
    /// Those of the queries around this one.
    pub outer: Vec<Col>,
    /// How many rows there may be, around this one included.
    pub rows: usize,
    /// How many levels of subqueries are still allowed.
    pub levels: usize,
}

pub struct Generator {
    pub r: Choices,
    /// For aliases.
    pub names: usize,
    /// Names and columns of the queries of `WITH`.
    pub with: Vec<(String, Vec<Ty>)>,
}

const COMPARISONS: [&str; 6] = ["=", "<", ">=", "<>", ">", "<="];
const NUMBERS: [Ty; 5] = [Ty::Int4, Ty::Int8, Ty::Numeric, Ty::Float8, Ty::Int2];

impl Generator {
    pub fn of(r: Choices) -> Generator {
        Generator { r, names: 0, with: Vec::new() }
    }
    pub fn alias(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }
    pub fn literal(&mut self, ty: Ty) -> String {
        if self.r.percent(8) {
            return format!("null::{}", ty.name());
        }
        let v = ty.values()[self.r.below(ty.values().len())];
        match ty {
            Ty::Int4 => format!("({v})"),
            Ty::Bool => ["true", "false"][self.r.below(2)].to_string(),
            Ty::Text => format!("'{v}'::text"),
            _ => format!("'{v}'::{}", ty.name()),
        }
    }
    /// Without its type, where another operand tells it.
    pub fn untyped(&mut self, ty: Ty) -> String {
        format!("'{}'", ty.values()[self.r.below(ty.values().len())])
    }
    pub fn column(&mut self, ty: Ty, s: &Scope) -> Option<String> {
        let outer = s.outer.iter().any(|c| c.ty == ty) && self.r.percent(30);
        let list: Vec<&Col> = if outer { &s.outer } else { &s.cols }.iter().filter(|c| c.ty == ty).collect();
        (!list.is_empty()).then(|| list[self.r.below(list.len())].sql.clone())
    }
    fn leaf(&mut self, ty: Ty, s: &Scope) -> String {
        if self.r.percent(15) {
            return self.literal(ty);
        }
        match self.column(ty, s) {
            Some(c) => c,
            None => self.converted(ty, s),
        }
    }
    /// Of a column of another type, if there is none of this one.
    fn converted(&mut self, ty: Ty, s: &Scope) -> String {
        if ty == Ty::Text || ty == Ty::Bool {
            if let Some(c) = s.cols.get(self.r.below(s.cols.len().max(1))) {
                return if ty == Ty::Text { format!("{}::text", c.sql) } else { format!("({} is null)", c.sql) };
            }
        } else if ty == Ty::Int4
            && let Some(t) = self.column(Ty::Text, s)
        {
            return format!("length({t})");
        } else if ty != Ty::Int4
            && let Some(i) = self.column(Ty::Int4, s)
        {
            return match ty {
                Ty::Int2 => format!("({i} % 1000)::int2"),
                Ty::Date => format!("('2024-01-01'::date + {i} % 1000)"),
                Ty::Timestamp | Ty::Timestamptz => format!("('2024-01-01'::{} + '1 hour'::interval * ({i} % 1000))", ty.name()),
                Ty::Interval => format!("('1 day'::interval * ({i} % 100))"),
                Ty::Jsonb => format!("to_jsonb({i})"),
                Ty::Int8 | Ty::Numeric | Ty::Float8 => format!("{i}::{}", ty.name()),
                _ => self.literal(ty),
            };
        }
        self.literal(ty)
    }
    /// As it is shown where equal values may be written in several ways, and any of them may be
    /// kept.
    pub fn canonical(ty: Ty, e: &str) -> String {
        match ty {
            Ty::Numeric => format!("trim_scale({e})"),
            Ty::Float8 => format!("({e} + 0)"),
            Ty::Interval => format!("justify_interval({e})"),
            _ => e.to_string(),
        }
    }
    pub fn some_type(&mut self) -> Ty {
        TYPES[self.r.below(TYPES.len())]
    }

    pub fn expr(&mut self, ty: Ty, s: &Scope, depth: usize) -> String {
        if depth == 0 || !self.r.percent(65) {
            return self.leaf(ty, s);
        }
        if self.r.percent(30) {
            return self.any_type(ty, s, depth - 1);
        }
        match ty {
            Ty::Int2 => self.int2(s, depth - 1),
            Ty::Int4 => self.int4(s, depth - 1),
            Ty::Int8 => self.int8(s, depth - 1),
            Ty::Numeric => self.numeric(s, depth - 1),
            Ty::Float8 => self.float8(s, depth - 1),
            Ty::Text => self.text(s, depth - 1),
            Ty::Bool => format!("({})", self.bool(s, depth)),
            Ty::Date => self.date(s, depth - 1),
            Ty::Timestamp => self.timestamp(s, depth - 1),
            Ty::Timestamptz => self.timestamptz(s, depth - 1),
            Ty::Interval => self.interval(s, depth - 1),
            Ty::Uuid => self.leaf(ty, s),
            Ty::Jsonb => self.jsonb(s, depth - 1),
        }
    }
    /// What there is for every type.
    fn any_type(&mut self, ty: Ty, s: &Scope, d: usize) -> String {
        match self.r.below(8) {
            0 => format!("coalesce({}, {})", self.expr(ty, s, d), self.expr(ty, s, d)),
            1 => format!("case when {} then {} else {} end", self.bool(s, d), self.expr(ty, s, d), self.expr(ty, s, d)),
            2 => format!("nullif({}, {})", self.expr(ty, s, d), self.expr(ty, s, d)),
            3 => {
                let of = self.some_type();
                let (x, y) = (self.expr(of, s, d), self.literal(of));
                format!(
                    "case {x} when {y} then {} when {} then {} end",
                    self.expr(ty, s, d),
                    self.expr(of, s, d),
                    self.expr(ty, s, d)
                )
            }
            4 if ty != Ty::Jsonb => format!("greatest({}, {}, {})", self.expr(ty, s, d), self.literal(ty), self.expr(ty, s, d)),
            5 if ty != Ty::Jsonb => format!("least({}, {})", self.expr(ty, s, d), self.expr(ty, s, d)),
            6 if s.levels > 0 => self.scalar_subquery(ty, s),
            _ => format!("({})", self.expr(ty, s, d)),
        }
    }
    fn int2(&mut self, s: &Scope, d: usize) -> String {
        match self.r.below(3) {
            0 => format!("({} / 3::int2)", self.expr(Ty::Int2, s, d)),
            1 => format!("({} % 5::int2)", self.expr(Ty::Int2, s, d)),
            _ => format!("({} & {})", self.expr(Ty::Int2, s, d), self.expr(Ty::Int2, s, d)),
        }
    }
    fn int4(&mut self, s: &Scope, d: usize) -> String {
        match self.r.below(14) {
            0 => format!("({}::int4 + {})", self.expr(Ty::Int2, s, d), self.expr(Ty::Int2, s, d)),
            1 => format!("({} % {})", self.expr(Ty::Int4, s, d), self.r.below(9) + 2),
            2 => format!("({} / {})", self.expr(Ty::Int4, s, d), self.r.below(9) + 2),
            3 => format!("length({})", self.expr(Ty::Text, s, d)),
            4 => format!("({} * {})", self.expr(Ty::Int2, s, d), self.r.below(9)),
            5 => format!("({}::int4 - {})", self.expr(Ty::Int2, s, d), self.expr(Ty::Int2, s, d)),
            6 => format!("strpos({}, {})", self.expr(Ty::Text, s, d), self.expr(Ty::Text, s, d)),
            7 => format!("({} {} {})", self.expr(Ty::Int4, s, d), self.r.of(&["&", "|", "#"]), self.expr(Ty::Int4, s, d)),
            8 => format!("ascii({})", self.expr(Ty::Text, s, d)),
            9 => format!("{}::int4", self.expr(Ty::Bool, s, d)),
            10 => format!("octet_length({})", self.expr(Ty::Text, s, d)),
            11 => format!("(~{})", self.expr(Ty::Int4, s, d)),
            12 => format!("({} >> {})", self.expr(Ty::Int4, s, d), self.r.below(9)),
            _ => format!("{}::int4", self.expr(Ty::Int2, s, d)),
        }
    }
    fn int8(&mut self, s: &Scope, d: usize) -> String {
        match self.r.below(7) {
            0 => format!("({}::int8 + {})", self.expr(Ty::Int4, s, d), self.expr(Ty::Int4, s, d)),
            1 => format!("({} % {})", self.expr(Ty::Int8, s, d), self.r.below(9) + 2),
            2 => format!("({} / {})", self.expr(Ty::Int8, s, d), self.r.below(9) + 2),
            3 => format!("({}::int8 * {})", self.expr(Ty::Int4, s, d), self.expr(Ty::Int2, s, d)),
            4 => format!("coalesce({}, {})", self.expr(Ty::Int4, s, d), self.expr(Ty::Int8, s, d)),
            5 => format!("({} {} {})", self.expr(Ty::Int8, s, d), self.r.of(&["&", "|", "#"]), self.expr(Ty::Int8, s, d)),
            _ => format!("{}::int8", self.expr(Ty::Int4, s, d)),
        }
    }
    fn numeric(&mut self, s: &Scope, d: usize) -> String {
        let x = self.expr(Ty::Numeric, s, d);
        match self.r.below(16) {
            0 => format!("({x} {} {})", self.r.of(&["+", "-", "*"]), self.expr(Ty::Numeric, s, d)),
            1 => format!("{}::numeric", self.expr(Ty::Int8, s, d)),
            2 => format!("round({x}, {})", self.r.below(6) as i32 - 2),
            3 => format!("{}({x})", self.r.of(&["abs", "-", "floor", "ceil", "round", "trunc", "sign"])),
            4 => format!("({x} / {})", self.r.of(&["3", "7.0", "-0.3", "1000", "1e10"])),
            5 => format!("({x} % {})", self.r.of(&["3", "0.7", "-2.5", "1e10"])),
            6 => format!("({} {} {x})", self.expr(Ty::Int8, s, d), self.r.of(&["+", "-", "*"])),
            7 => format!(
                "extract({} from {})",
                self.r.of(&["year", "day", "epoch", "dow", "isoyear"]),
                self.expr(Ty::Timestamp, s, d)
            ),
            8 => format!("trunc({x}, {})", self.r.below(6) as i32 - 2),
            9 => format!("extract({} from {})", self.r.of(&["month", "quarter", "week", "doy"]), self.expr(Ty::Date, s, d)),
            10 => format!("extract({} from {})", self.r.of(&["second", "hour", "day", "epoch"]), self.expr(Ty::Interval, s, d)),
            11 => format!("coalesce({x}, {})", self.expr(Ty::Int4, s, d)),
            12 => format!("sqrt(abs({x}))"),
            13 => format!("power(least({x}, 20::numeric), {})", self.r.below(5)),
            14 => format!("({} / nullif({}, 0)::numeric)", self.expr(Ty::Int4, s, d), self.expr(Ty::Int4, s, d)),
            _ => format!("mod({}, 97)", self.expr(Ty::Numeric, s, d)),
        }
    }
    fn float8(&mut self, s: &Scope, d: usize) -> String {
        match self.r.below(7) {
            0 => format!("({} / 2)", self.expr(Ty::Float8, s, d)),
            1 => format!(
                "{}({})",
                self.r.of(&["abs", "-", "floor", "ceil", "round", "sign", "trunc"]),
                self.expr(Ty::Float8, s, d)
            ),
            2 => format!("{}::float8", self.expr(Ty::Int4, s, d)),
            3 => format!("{}::float8", self.expr(Ty::Numeric, s, d)),
            4 => format!("{}::float8", self.expr(Ty::Int8, s, d)),
            5 => format!("({} + {})", self.expr(Ty::Float8, s, d), self.expr(Ty::Int4, s, d)),
            _ => format!("sqrt(abs({}))", self.expr(Ty::Float8, s, d)),
        }
    }
    fn text(&mut self, s: &Scope, d: usize) -> String {
        let t = self.expr(Ty::Text, s, d);
        let small = |g: &mut Generator| g.r.below(7) as i32 - 2;
        match self.r.below(26) {
            21 => format!("string_to_array({t}, {})::text", self.r.of(&["''", "'a'", "' '", "null"])),
            22 => format!("array_to_string(array[{t}, {}], '+'{})", self.expr(Ty::Text, s, 0), self.r.of(&["", ", '?'"])),
            23 => format!("(array[{t}, {}])[{}]", self.expr(Ty::Text, s, 0), self.r.below(4)),
            24 => format!(
                "to_char({}, {})",
                self.expr(Ty::Interval, s, d),
                self.r.of(&["'HH24:MI:SS'", "'DD HH12 MS'", "'YYYY-MM'"])
            ),
            0 => format!("({t} || {})", self.expr(Ty::Text, s, d)),
            1 => {
                format!("{}({t})", self.r.of(&["upper", "lower", "initcap", "reverse", "md5", "trim", "ltrim", "rtrim", "btrim"]))
            }
            2 => {
                let of = self.some_type();
                format!("{}::text", self.expr(of, s, d))
            }
            3 => format!("substr({t}, {}, {})", small(self), self.r.below(4)),
            4 => format!("{}({t}, {})", self.r.of(&["left", "right"]), small(self)),
            5 => format!("replace({t}, {}, {})", self.expr(Ty::Text, s, d), self.expr(Ty::Text, s, d)),
            6 => format!("split_part({t}, {}, {})", self.expr(Ty::Text, s, 0), [1, 2, 3, -1][self.r.below(4)]),
            7 => format!("{}({t}, {}, {})", self.r.of(&["lpad", "rpad"]), small(self), self.expr(Ty::Text, s, 0)),
            8 => format!("repeat(left({t}, 3), {})", small(self)),
            9 => format!("concat({t}, {}, {})", self.expr(Ty::Int4, s, d), self.expr(Ty::Bool, s, d)),
            10 => format!("concat_ws('-', {t}, {}, {})", self.expr(Ty::Numeric, s, d), self.expr(Ty::Date, s, d)),
            11 => format!("({t} || {})", self.expr(Ty::Int4, s, d)),
            12 => format!("translate({t}, 'ab1', 'xy')"),
            13 => format!("{}({t}, 'ab ')", self.r.of(&["trim", "ltrim", "rtrim", "btrim"])),
            14 => format!("substring({t} from {} for {})", small(self), self.r.below(4)),
            15 => format!("overlay({t} placing 'XY' from {})", self.r.below(4) + 1),
            16 => format!(
                "to_char({}, {})",
                self.expr(Ty::Timestamp, s, d),
                self.r.of(&["'YYYY-MM-DD HH24:MI:SS'", "'Dy Mon DD'", "'J Q WW US'"])
            ),
            17 => format!("to_char({}, {})", self.expr(Ty::Numeric, s, d), self.r.of(&["'999D99'", "'FM9990.0'", "'S00'"])),
            18 => format!("format('%s:%s', {t}, {})", self.expr(Ty::Int8, s, d)),
            19 => format!("({} ->> 'a')", self.expr(Ty::Jsonb, s, d)),
            20 => format!("quote_literal({t})"),
            _ => format!(
                "regexp_replace({t}, {}, 'z'{})",
                self.r.of(&["'[a-b]'", "'^.'", "'\\d+'", "'(a|ab)'"]),
                self.r.of(&["", ", 'g'"])
            ),
        }
    }
    fn date(&mut self, s: &Scope, d: usize) -> String {
        match self.r.below(5) {
            0 => format!("({} + {})", self.expr(Ty::Date, s, d), self.r.below(400)),
            1 => format!("{}::date", self.expr(Ty::Timestamp, s, d)),
            2 => format!("({} - {})", self.expr(Ty::Date, s, d), self.r.below(400)),
            3 => format!("{}::date", self.expr(Ty::Timestamptz, s, d)),
            _ => format!("({} + {})", self.expr(Ty::Date, s, d), self.expr(Ty::Int2, s, 0)),
        }
    }
    fn timestamp(&mut self, s: &Scope, d: usize) -> String {
        match self.r.below(5) {
            0 => format!("{}::timestamp", self.expr(Ty::Date, s, d)),
            1 => format!("({} {} {})", self.expr(Ty::Timestamp, s, d), self.r.of(&["+", "-"]), self.expr(Ty::Interval, s, 0)),
            2 => format!("date_trunc('{}', {})", self.unit(), self.expr(Ty::Timestamp, s, d)),
            3 => format!("({} at time zone 'UTC')", self.expr(Ty::Timestamptz, s, d)),
            _ => format!("({} + {})", self.expr(Ty::Date, s, d), self.expr(Ty::Interval, s, 0)),
        }
    }
    fn timestamptz(&mut self, s: &Scope, d: usize) -> String {
        match self.r.below(4) {
            0 => format!("{}::timestamptz", self.expr(Ty::Timestamp, s, d)),
            1 => format!("({} {} {})", self.expr(Ty::Timestamptz, s, d), self.r.of(&["+", "-"]), self.expr(Ty::Interval, s, 0)),
            2 => format!("date_trunc('{}', {})", self.unit(), self.expr(Ty::Timestamptz, s, d)),
            _ => format!(
                "({} at time zone '{}')",
                self.expr(Ty::Timestamp, s, d),
                self.r.of(&["UTC", "Europe/Paris", "America/New_York"])
            ),
        }
    }
    fn unit(&mut self) -> &'static str {
        self.r.of(&["day", "month", "year", "hour", "week", "quarter", "second", "decade"])
    }
    fn interval(&mut self, s: &Scope, d: usize) -> String {
        match self.r.below(4) {
            0 => format!("({} {} {})", self.expr(Ty::Interval, s, d), self.r.of(&["+", "-"]), self.expr(Ty::Interval, s, d)),
            1 => format!("({} * {})", self.expr(Ty::Interval, s, d), self.r.of(&["2", "0.5", "-1", "1.5"])),
            2 => format!("{}({})", self.r.of(&["-", "justify_hours", "justify_days"]), self.expr(Ty::Interval, s, d)),
            _ => format!("({} / {})", self.expr(Ty::Interval, s, d), self.r.of(&["2", "7", "-3"])),
        }
    }
    fn jsonb(&mut self, s: &Scope, d: usize) -> String {
        match self.r.below(5) {
            0 => format!("({} -> 'a')", self.expr(Ty::Jsonb, s, d)),
            1 => format!("jsonb_build_object('k', {}, 'l', {})", self.expr(Ty::Int4, s, d), self.expr(Ty::Text, s, d)),
            2 => format!("to_jsonb({})", self.expr(Ty::Text, s, d)),
            3 => format!("({} #> '{{a,b}}')", self.expr(Ty::Jsonb, s, d)),
            _ => format!("jsonb_build_array({}, {})", self.expr(Ty::Bool, s, d), self.expr(Ty::Int8, s, d)),
        }
    }

    /// A type, and another one that it is compared with.
    fn compared(&mut self) -> (Ty, Ty) {
        match self.r.below(10) {
            8 => (NUMBERS[self.r.below(5)], NUMBERS[self.r.below(5)]),
            9 => {
                let times = [Ty::Date, Ty::Timestamp, Ty::Timestamptz];
                (times[self.r.below(3)], times[self.r.below(3)])
            }
            _ => {
                let ty = self.some_type();
                (ty, ty)
            }
        }
    }
    pub fn bool(&mut self, s: &Scope, depth: usize) -> String {
        let d = depth.saturating_sub(1);
        let kinds = if s.levels > 0 { 21 } else { 15 };
        match self.r.below(kinds) {
            0 | 1 => {
                let (x, y) = self.compared();
                format!("{} {} {}", self.expr(x, s, d), self.r.of(&COMPARISONS), self.expr(y, s, d))
            }
            2 => {
                let (ty, other) = self.compared();
                let column = self.leaf(ty, s);
                let value = if ty == other && self.r.percent(50) { self.untyped(ty) } else { self.literal(other) };
                format!("{column} {} {value}", self.r.of(&COMPARISONS))
            }
            3 => {
                let ty = self.some_type();
                format!("{} is {}null", self.expr(ty, s, d), self.r.of(&["", "not "]))
            }
            4 if depth > 0 => format!("({} {} {})", self.bool(s, d), self.r.of(&["and", "or"]), self.bool(s, d)),
            5 if depth > 0 => format!("not ({})", self.bool(s, d)),
            6 => {
                let (ty, other) = self.compared();
                let mut list: Vec<String> = (0..self.r.below(4) + 1).map(|_| self.literal(other)).collect();
                if self.r.percent(15) {
                    list.push(self.expr(ty, s, d));
                }
                format!("{} {}in ({})", self.expr(ty, s, d), self.r.of(&["", "not "]), list.join(", "))
            }
            7 => {
                let ty = self.some_type();
                let how = self.r.of(&["between", "not between", "between symmetric"]);
                format!("{} {how} {} and {}", self.expr(ty, s, d), self.expr(ty, s, 0), self.expr(ty, s, 0))
            }
            8 => {
                let how = self.r.of(&["like", "not like", "ilike", "~", "!~", "~*", "similar to"]);
                let pattern = match how {
                    "~" | "!~" | "~*" => self.r.of(&["'a'", "'^a'", "'b$'", "'[0-9]+'", "'a|^$'"]),
                    "similar to" => self.r.of(&["'a%'", "'(a|b)_?'", "'[a-c]+'"]),
                    _ => self.r.of(&["'a%'", "'%b'", "'_'", "''", "'a\\_c'", "'%'", "'_b%'", "null"]),
                };
                format!("{} {how} {pattern}", self.expr(Ty::Text, s, d))
            }
            9 => {
                let what = self.r.of(&["true", "not true", "false", "not false", "unknown", "not unknown"]);
                format!("({}) is {what}", self.bool(s, d))
            }
            10 => {
                let ty = self.some_type();
                format!("{} is {}distinct from {}", self.expr(ty, s, d), self.r.of(&["", "not "]), self.expr(ty, s, d))
            }
            11 => self.row_comparison(s, d),
            12 => self.keys(s),
            13 => {
                let ty = self.some_type();
                let list: Vec<String> = (0..self.r.below(3) + 1).map(|_| self.literal(ty)).collect();
                let which = self.r.of(&["= any", "<> all", "<> any", "= all", "< any", ">= all"]);
                format!("{} {which} (array[{}])", self.expr(ty, s, d), list.join(", "))
            }
            14 => self.expr(Ty::Bool, s, 0),
            15..=20 => self.subquery_test(s, d),
            _ => self.leaf(Ty::Bool, s),
        }
    }
    fn row_comparison(&mut self, s: &Scope, d: usize) -> String {
        let tys: Vec<Ty> = (0..2 + self.r.below(2)).map(|_| self.some_type()).collect();
        let row = |g: &mut Generator, d| format!("({})", tys.iter().map(|t| g.expr(*t, s, d)).collect::<Vec<_>>().join(", "));
        let left = row(self, d);
        match self.r.below(4) {
            0 => format!("{left} {} {}", self.r.of(&COMPARISONS), row(self, d)),
            1 => {
                let list: Vec<String> = (0..self.r.below(3) + 1).map(|_| row(self, 0)).collect();
                format!("{left} {}in ({})", self.r.of(&["", "not "]), list.join(", "))
            }
            2 => format!("row{left} is {}distinct from row{}", self.r.of(&["", "not "]), row(self, d)),
            _ => format!("{left} is {}null", self.r.of(&["", "not "])),
        }
    }
    /// Conditions on keys, which indexes may answer.
    fn keys(&mut self, s: &Scope) -> String {
        let list: Vec<Col> =
            s.cols.iter().filter(|c| matches!(c.ty, Ty::Int4 | Ty::Int8 | Ty::Text | Ty::Date)).cloned().collect();
        if list.is_empty() {
            return self.leaf(Ty::Bool, s);
        }
        let mut parts = Vec::new();
        for _ in 0..self.r.below(3) + 1 {
            let c = &list[self.r.below(list.len())];
            let value = |g: &mut Generator| match c.ty {
                Ty::Int4 | Ty::Int8 => g.r.below(20).to_string(),
                ty => g.literal(ty),
            };
            let x = &c.sql;
            parts.push(match self.r.below(6) {
                0 => format!("{x} = {}", value(self)),
                1 => format!("{x} in ({}, {}, {})", value(self), value(self), value(self)),
                2 => format!("{x} between {} and {}", value(self), value(self)),
                3 => format!("{x} > {}", value(self)),
                4 => {
                    let other = &list[self.r.below(list.len())];
                    format!("({x} = {} and {} is not null)", value(self), other.sql)
                }
                _ => format!("{x} is null"),
            });
        }
        format!("({})", parts.join(self.r.of(&[" or ", " and "])))
    }

    /// An expression that may fail, over one row.
    pub fn risky(&mut self, s: &Scope) -> (Ty, String) {
        let of = |g: &mut Generator, ty: Ty| g.column(ty, s).unwrap_or_else(|| format!("'{}'::{}", ty.values()[0], ty.name()));
        let number = NUMBERS[self.r.below(5)];
        match self.r.below(13) {
            0 => {
                let (x, y) = (of(self, number), NUMBERS[self.r.below(5)]);
                (number, format!("{x} {} {}", self.r.of(&["+", "-", "*", "/"]), of(self, y)))
            }
            1 => (number, format!("{}::{}", of(self, number), NUMBERS[self.r.below(5)].name())),
            2 => {
                let ty = self.some_type();
                (ty, format!("{}::{}", of(self, Ty::Text), ty.name()))
            }
            3 => {
                let whole = [Ty::Int4, Ty::Int8, Ty::Int2, Ty::Numeric][self.r.below(4)];
                (whole, format!("{} % {}", of(self, whole), of(self, whole)))
            }
            4 => (number, format!("{}({})", self.r.of(&["abs", "-", "sqrt", "ln", "exp"]), of(self, number))),
            5 => (Ty::Interval, format!("{} - {}", of(self, Ty::Timestamp), of(self, Ty::Timestamp))),
            6 => (Ty::Int4, format!("{} - {}", of(self, Ty::Date), of(self, Ty::Date))),
            7 => (Ty::Date, format!("{} + {}", of(self, Ty::Date), of(self, Ty::Int4))),
            8 => (Ty::Timestamp, format!("{} + {} * {}", of(self, Ty::Timestamp), of(self, Ty::Interval), of(self, Ty::Int4))),
            9 => (Ty::Numeric, format!("power({}, {})", of(self, Ty::Numeric), self.r.of(&["2", "0", "-1", "0.5", "3", "-2.5"]))),
            10 => {
                let ty = [Ty::Int4, Ty::Int8, Ty::Bool, Ty::Text][self.r.below(4)];
                (ty, format!("({} ->> 'a')::{}", of(self, Ty::Jsonb), ty.name()))
            }
            11 => (Ty::Numeric, format!("{}::numeric(5, {})", of(self, number), self.r.below(4))),
            _ => {
                // PostgreSQL 15 computes with infinities as if they were dates.
                let finite = |t: String| format!("case when isfinite({t}) then {t} end");
                let (x, y) = (of(self, Ty::Timestamp), of(self, Ty::Timestamp));
                (Ty::Interval, format!("age({}, {})", finite(x), finite(y)))
            }
        }
    }
}
