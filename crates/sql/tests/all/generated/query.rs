//! Queries: what is read, what of it, and how it is ordered.

use super::expr::{Col, Generator, Scope};
use super::schema::{TABLES, Table, Ty};

/// A statement, and how its answers are compared.
pub struct Query {
    pub sql: String,
    /// The order of the rows is told in full.
    pub is_ordered: bool,
    /// What it changed is looked at with this, and taken back.
    pub then: Option<String>,
}

/// A part of a `FROM`, with the columns it has.
struct Source {
    sql: String,
    cols: Vec<Col>,
    rows: usize,
}

/// More rows than these are not joined without an equality.
const PRODUCT_MAX: usize = 3_000;
/// Work of a query and all that is computed for its rows, in rows.
const WORK_MAX: usize = 60_000;

impl Generator {
    pub fn query(&mut self) -> Query {
        if self.r.percent(12) {
            return Query { sql: self.one_row(), is_ordered: false, then: None };
        }
        if self.r.percent(12) {
            return self.change();
        }
        let tys: Vec<Ty> = (0..self.r.below(4) + 1).map(|_| self.some_type()).collect();
        let scope = Scope { rows: 1, levels: 3, ..Scope::default() };
        let with = if self.r.percent(18) { self.with_clause(&scope) } else { String::new() };
        let body = self.body(&tys, &scope);
        let is_ordered = self.r.percent(40);
        let order = if is_ordered { self.total_order(&tys) } else { String::new() };
        Query { sql: format!("{with}{body}{order}"), is_ordered, then: None }
    }
    /// One that may fail, so that there is one thing to fail.
    fn one_row(&mut self) -> String {
        let (name, rows) = [("a", 30), ("c", 300)][self.r.below(2)];
        let t = TABLES.iter().find(|t| t.name == name).expect("a table");
        let scope = Scope { cols: columns(t, t.name), ..Scope::default() };
        let (_, e) = self.risky(&scope);
        format!("select {e} from {name} where id = {}", self.r.below(rows) + 1)
    }

    /// All of the columns, so that only rows that are the same have the same place; and a part of
    /// the rows, by that.
    fn total_order(&mut self, tys: &[Ty]) -> String {
        let mut places: Vec<usize> = (0..tys.len()).collect();
        for i in 0..places.len() {
            let with = i + self.r.below(places.len() - i);
            places.swap(i, with);
        }
        let keys: Vec<String> = (places.iter())
            .map(|p| {
                let by = if self.r.percent(50) { format!("c{}", p + 1) } else { (p + 1).to_string() };
                format!("{by}{}", self.direction())
            })
            .collect();
        let mut order = format!(" order by {}", keys.join(", "));
        if self.r.percent(20) {
            order += &format!(" offset {}", self.r.below(8));
        }
        if self.r.percent(40) {
            order += &match self.r.below(3) {
                0 | 1 => format!(" limit {}", self.r.below(12)),
                _ => format!(" fetch first {} rows only", self.r.below(12)),
            };
        }
        order
    }
    fn direction(&mut self) -> &'static str {
        self.r.of(&["", " desc", " nulls first", " desc nulls last", " asc nulls last", " desc nulls first"])
    }

    /// A query with columns of these types, named `c1`, `c2` and so on.
    pub fn body(&mut self, tys: &[Ty], around: &Scope) -> String {
        match self.r.below(if around.levels > 0 { 14 } else { 8 }) {
            0..=3 => self.plain(tys, around),
            13 => self.numbered(tys, around),
            4 | 5 => self.grouped(tys, around),
            6 | 7 => self.windowed(tys, around),
            8 => self.distinct_on(tys, around),
            9..=11 => self.set_operation(tys, around),
            _ => self.values(tys, around),
        }
    }
    fn values(&mut self, tys: &[Ty], around: &Scope) -> String {
        let names: Vec<String> = (1..=tys.len()).map(|i| format!("c{i}")).collect();
        let v = self.alias("v");
        format!("select * from ({}) as {v} ({})", self.value_rows(tys, around), names.join(", "))
    }
    fn value_rows(&mut self, tys: &[Ty], around: &Scope) -> String {
        let rows: Vec<String> = (0..self.r.below(4) + 1)
            .map(|_| {
                let row: Vec<String> = tys.iter().map(|t| Self::canonical(*t, &self.expr(*t, around, 1))).collect();
                format!("({})", row.join(", "))
            })
            .collect();
        format!("values {}", rows.join(", "))
    }
    fn set_operation(&mut self, tys: &[Ty], around: &Scope) -> String {
        let inner = Scope { levels: around.levels - 1, ..around.clone() };
        let (mut left, right) = (self.body(tys, &inner), self.body(tys, &inner));
        let op = self.r.of(&["union", "union all", "intersect", "except", "intersect all", "except all"]);
        if self.r.percent(25) {
            left = format!("{left}{}", self.total_order(tys));
        }
        let (left, right) = (format!("({left})"), format!("({right})"));
        if self.r.percent(25) {
            let third = self.body(tys, &inner);
            let second = self.r.of(&["union", "union all", "intersect", "except"]);
            return format!("{left} {op} {right} {second} ({third})");
        }
        format!("{left} {op} {right}")
    }

    /// What is read: the text behind `select …`, and what can be seen.
    fn from(&mut self, around: &Scope) -> (String, Scope) {
        let mut scope = Scope { cols: Vec::new(), outer: around.outer.clone(), rows: around.rows, levels: around.levels };
        scope.outer.extend(around.cols.iter().cloned());
        if self.r.percent(3) {
            return (String::new(), scope);
        }
        let first = self.source(&scope, around.rows);
        let mut rows = first.rows.max(1);
        scope.cols = first.cols;
        let mut sql = first.sql;
        let count = [0, 1, 0, 1, 2, 1, 2][self.r.below(7)];
        for _ in 0..count {
            sql = self.join(sql, &mut scope, &mut rows, around.rows);
        }
        scope.rows = (around.rows.max(1)).saturating_mul(rows);
        let mut from = format!(" from {sql}");
        let mut conds = Vec::new();
        if self.r.percent(10) && rows < 200 {
            // Beside the others, not joined with them.
            let t = &TABLES[[5, 4, 3][self.r.below(3)]];
            let alias = self.alias("t");
            let cols = columns(t, &alias);
            from += &format!(", {} as {alias}", t.name);
            conds.extend(self.equality(&scope.cols, &cols));
            scope.cols.extend(cols);
            scope.rows = scope.rows.saturating_mul(t.rows.max(1));
        }
        if !scope.outer.is_empty() && self.r.percent(50) {
            conds.extend(self.equality(&scope.cols, &scope.outer));
        }
        if self.r.percent(60) {
            conds.push(self.condition(&scope));
        }
        if !conds.is_empty() {
            from += &format!(" where {}", conds.join(" and "));
        }
        (from, scope)
    }
    fn condition(&mut self, scope: &Scope) -> String {
        let inner = self.for_rows(scope);
        let mut conds: Vec<String> = (0..self.r.below(3) + 1).map(|_| self.bool(&inner, 2)).collect();
        conds.dedup();
        if self.r.percent(85) { conds.join(" and ") } else { format!("({})", conds.join(" or ")) }
    }
    /// A scope for expressions, without subqueries where they would be computed too often.
    fn for_rows(&self, scope: &Scope) -> Scope {
        let mut inner = scope.clone();
        if scope.rows > WORK_MAX / 40 {
            inner.levels = 0;
        }
        inner
    }
    /// `scope`: what a lateral item would see, beside the queries around.
    fn source(&mut self, scope: &Scope, around: usize) -> Source {
        let kinds = if scope.levels > 0 { 12 } else { 8 };
        match self.r.below(kinds) {
            6 if self.r.percent(40) => {
                let u = self.alias("u");
                let ty = [Ty::Int4, Ty::Text, Ty::Date][self.r.below(3)];
                let list: Vec<String> = (0..self.r.below(4)).map(|_| self.literal(ty)).collect();
                let cols = vec![Col { sql: format!("{u}.{u}"), ty }];
                Source { sql: format!("unnest(array[{}]::{}[]) as {u}", list.join(", "), ty.name()), cols, rows: 4 }
            }
            7 => {
                let (g, n) = (self.alias("g"), self.r.below(6));
                let start = self.r.below(3);
                let cols = vec![Col { sql: format!("{g}.{g}"), ty: Ty::Int4 }];
                Source { sql: format!("generate_series({start}, {n}) as {g}"), cols, rows: 5 }
            }
            8 | 9 => {
                let tys: Vec<Ty> = (0..self.r.below(3) + 1).map(|_| self.some_type()).collect();
                let inner = Scope { cols: Vec::new(), outer: scope.outer.clone(), rows: around.max(1), levels: scope.levels - 1 };
                let mut body = self.body(&tys, &inner);
                if self.r.percent(30) {
                    body += &self.total_order(&tys);
                }
                self.derived("", &body, &tys, 40)
            }
            10 => {
                let tys: Vec<Ty> = (0..self.r.below(3) + 1).map(|_| self.some_type()).collect();
                let outer = Scope { cols: Vec::new(), outer: scope.outer.clone(), rows: 1, levels: 0 };
                let values = self.value_rows(&tys, &outer);
                let v = self.alias("v");
                let names: Vec<String> = (1..=tys.len()).map(|i| format!("c{i}")).collect();
                Source { sql: format!("({values}) as {v} ({})", names.join(", ")), cols: named(&v, &tys), rows: 4 }
            }
            11 if !self.with.is_empty() => {
                let (name, tys) = self.with[self.r.below(self.with.len())].clone();
                let alias = self.alias("t");
                Source { sql: format!("{name} as {alias}"), cols: named(&alias, &tys), rows: 40 }
            }
            _ => {
                let mut t = &TABLES[self.r.below(TABLES.len())];
                if t.rows.saturating_mul(around) > WORK_MAX {
                    t = &TABLES[5];
                }
                let alias = self.alias("t");
                Source { sql: format!("{} as {alias}", t.name), cols: columns(t, &alias), rows: t.rows }
            }
        }
    }
    fn derived(&mut self, lateral: &str, body: &str, tys: &[Ty], rows: usize) -> Source {
        let alias = self.alias("t");
        Source { sql: format!("{lateral}({body}) as {alias}"), cols: named(&alias, tys), rows }
    }
    fn join(&mut self, left: String, scope: &mut Scope, rows: &mut usize, around: usize) -> String {
        if scope.levels > 0 && self.r.percent(12) && *rows * around.max(1) < WORK_MAX / 40 {
            let tys: Vec<Ty> = (0..self.r.below(2) + 1).map(|_| self.some_type()).collect();
            let mut outer = scope.outer.clone();
            outer.extend(scope.cols.iter().cloned());
            let inner = Scope { cols: Vec::new(), outer, rows: *rows * around.max(1), levels: scope.levels - 1 };
            let aggregates = if self.r.percent(40) { self.aggregates_of_each(&tys, scope, &inner) } else { None };
            let body = aggregates.unwrap_or_else(|| format!("{}{}", self.body(&tys, &inner), self.total_order(&tys)));
            let s = self.derived("lateral ", &body, &tys, 5);
            scope.cols.extend(s.cols);
            *rows = rows.saturating_mul(s.rows).min(PRODUCT_MAX);
            return match self.r.below(2) {
                0 => format!("{left} cross join {}", s.sql),
                _ => format!("{left} left join {} on true", s.sql),
            };
        }
        let right = self.source(scope, around);
        let product = rows.saturating_mul(right.rows.max(1));
        let equal = self.equality(&scope.cols, &right.cols);
        let fits = product.saturating_mul(around.max(1)) <= WORK_MAX && product <= PRODUCT_MAX;
        let kind = self.r.below(if fits { 8 } else { 6 });
        let before = scope.cols.len();
        scope.cols.extend(right.cols.iter().cloned());
        let Some(equal) = equal else {
            if !fits {
                scope.cols.truncate(before);
                return left;
            }
            *rows = product;
            return format!("{left} cross join {}", right.sql);
        };
        *rows = if kind < 6 { (*rows).max(right.rows) * 3 } else { product };
        let mut on = equal;
        if self.r.percent(25) {
            let mut seen = Scope { levels: 0, ..scope.clone() };
            if kind == 5 {
                seen.cols.truncate(before);
            }
            on = format!("{on} and {}", self.bool_in_parentheses(&seen));
        }
        if self.r.percent(12)
            && kind < 6
            && let Some(name) = self.common_name(&scope.cols[..before], &right.cols)
        {
            return format!("{left} {}join {} using ({name})", self.r.of(&["", "left ", "right ", "full "]), right.sql);
        }
        match kind {
            0 => format!("{left} join {} on {on}", right.sql),
            1 if !left.contains(" join ") => {
                format!("{left} join ({} cross join (values (1), (2)) as x{before}) on {on}", right.sql)
            }
            1 => format!("{left} join {} on {on}", right.sql),
            2 | 3 => format!("{left} left join {} on {on}", right.sql),
            4 => format!("{left} right join {} on {on}", right.sql),
            5 => format!("{left} full join {} on {on}", right.sql),
            6 => format!("{left} cross join {}", right.sql),
            _ => {
                let seen = Scope { levels: 0, ..scope.clone() };
                let on = self.bool_in_parentheses(&seen);
                format!("{left} {} join {} on {on}", self.r.of(&["left", "inner", "right"]), right.sql)
            }
        }
    }
    pub fn bool_in_parentheses(&mut self, scope: &Scope) -> String {
        format!("({})", self.bool(scope, 1))
    }
    /// The name of a column that both sides have once, with one type.
    fn common_name(&mut self, left: &[Col], right: &[Col]) -> Option<String> {
        let name = |c: &Col| c.sql.rsplit('.').next().unwrap_or_default().to_string();
        let is_once = |list: &[Col], n: &str| list.iter().filter(|c| name(c) == n).count() == 1;
        let list: Vec<String> = (right.iter())
            .filter(|r| {
                is_once(left, &name(r)) && is_once(right, &name(r)) && left.iter().any(|l| l.ty == r.ty && name(l) == name(r))
            })
            .filter(|r| r.ty != Ty::Jsonb)
            .map(name)
            .collect();
        list.get(self.r.below(list.len().max(1))).cloned()
    }
    /// Of a column on the left and one on the right.
    fn equality(&mut self, left: &[Col], right: &[Col]) -> Option<String> {
        let mut pairs = Vec::new();
        for l in left {
            pairs.extend(right.iter().filter(|r| r.ty == l.ty && r.ty != Ty::Jsonb && r.ty != Ty::Bool).map(|r| (l, r)));
        }
        let (l, r) = pairs.get(self.r.below(pairs.len().max(1)))?;
        Some(format!("{} = {}", l.sql, r.sql))
    }

    /// Aggregates of the rows that belong to each row of `scope`, if there is something that ties
    /// them to it.
    fn aggregates_of_each(&mut self, tys: &[Ty], scope: &Scope, inner: &Scope) -> Option<String> {
        let of = self.source(&Scope { outer: Vec::new(), ..inner.clone() }, inner.rows);
        let tie = self.equality(&scope.cols, &of.cols)?;
        let own = Scope { cols: of.cols, outer: Vec::new(), rows: of.rows, levels: 0 };
        let mut items = Vec::new();
        for ty in tys {
            let call = match self.aggregate(*ty, &own) {
                Some(call) => call,
                None if *ty == Ty::Int8 => "count(*)".to_string(),
                None => return None,
            };
            items.push(format!("{} as c{}", Self::canonical(*ty, &call), items.len() + 1));
        }
        let test = if self.r.percent(30) { format!(" and {}", self.bool_in_parentheses(&own)) } else { String::new() };
        let having = if self.r.percent(20) { " having count(*) > 1" } else { "" };
        Some(format!("select {} from {} where {tie}{test}{having}", items.join(", "), of.sql))
    }

    fn list(&mut self, tys: &[Ty], scope: &Scope, depth: usize) -> String {
        let items: Vec<String> = (tys.iter().enumerate())
            .map(|(i, t)| format!("{} as c{}", Self::canonical(*t, &self.expr(*t, scope, depth)), i + 1))
            .collect();
        items.join(", ")
    }
    fn plain(&mut self, tys: &[Ty], around: &Scope) -> String {
        let (from, scope) = self.from(around);
        let list = self.list(tys, &self.for_rows(&scope), 2);
        format!("select {}{list}{from}", if self.r.percent(20) { "distinct " } else { "" })
    }
    fn distinct_on(&mut self, tys: &[Ty], around: &Scope) -> String {
        let (from, scope) = self.from(around);
        let list = self.list(tys, &self.for_rows(&scope), 2);
        let keys: Vec<String> = (1..=tys.len()).map(|i| format!("c{i}{}", self.direction())).collect();
        let inner = format!("select {list}{from}");
        let d = self.alias("d");
        let one = format!("select distinct on (c1) * from ({inner}) as {d} order by {}", keys.join(", "));
        format!("select * from ({one}) as {d}")
    }
    fn grouped(&mut self, tys: &[Ty], around: &Scope) -> String {
        let (from, scope) = self.from(around);
        let flat = Scope { levels: 0, ..scope.clone() };
        let mut keys: Vec<Col> = Vec::new();
        if !scope.cols.is_empty() {
            for _ in 0..self.r.below(3) {
                let ty = if self.r.percent(60) { tys[self.r.below(tys.len())] } else { self.some_type() };
                let key = if self.r.percent(75) { self.column(ty, &Scope { outer: Vec::new(), ..flat.clone() }) } else { None };
                let key = match key {
                    Some(k) => k,
                    None if scope.cols.iter().any(|c| c.ty == ty) => self.expr(ty, &flat, 1),
                    None => continue,
                };
                // A constant would be a position.
                if scope.cols.iter().any(|c| key.contains(&c.sql)) {
                    keys.push(Col { sql: Self::canonical(ty, &key), ty });
                }
            }
        }
        let mut seen = keys.clone();
        for ty in tys {
            if seen.iter().all(|c| c.ty != *ty) || self.r.percent(50) {
                let sql = self.aggregate(*ty, &flat);
                seen.extend(sql.map(|sql| Col { sql, ty: *ty }));
            }
        }
        let counted = Col { sql: "count(*)".into(), ty: Ty::Int8 };
        seen.push(counted);
        let grouped = Scope { cols: seen, outer: scope.outer.clone(), rows: scope.rows.min(WORK_MAX), levels: 0 };
        let items: Vec<String> = (tys.iter().enumerate())
            .map(|(i, t)| format!("{} as c{}", Self::canonical(*t, &self.expr(*t, &grouped, 1)), i + 1))
            .collect();
        let mut sql = format!("select {}{from}", items.join(", "));
        if !keys.is_empty() {
            let place = |k: &Col| items.iter().position(|i| i.starts_with(&format!("{} as c", k.sql)));
            let list: Vec<String> = (keys.iter())
                .map(|k| match place(k) {
                    Some(i) if self.r.percent(30) => (i + 1).to_string(),
                    _ => k.sql.clone(),
                })
                .collect();
            sql += &format!(" group by {}", list.join(", "));
        }
        if self.r.percent(30) {
            sql += &format!(" having {}", self.bool_in_parentheses(&grouped));
        }
        sql
    }
    /// An aggregate of a type, if there is one.
    fn aggregate(&mut self, ty: Ty, s: &Scope) -> Option<String> {
        // One of outer columns alone would belong to the outer query.
        let s = &Scope { outer: Vec::new(), ..s.clone() };
        let arg = |g: &mut Generator, t: Ty| Self::canonical(t, &g.expr(t, s, 1));
        let distinct = self.r.of(&["", "", "distinct "]);
        let call = match ty {
            Ty::Int8 => match self.r.below(5) {
                0 => {
                    let of = self.some_type();
                    format!("count({distinct}{})", arg(self, of))
                }
                1 => format!("sum({distinct}{})", arg(self, Ty::Int4)),
                2 => format!("max({})", arg(self, ty)),
                3 => format!("bit_or({})", arg(self, ty)),
                _ => format!("sum({distinct}{})", arg(self, Ty::Int2)),
            },
            Ty::Numeric => match self.r.below(6) {
                0 => format!("sum({distinct}{})", arg(self, ty)),
                1 => format!("avg({distinct}{})", arg(self, Ty::Int4)),
                2 => format!("avg({})", arg(self, ty)),
                3 => format!("min({})", arg(self, ty)),
                4 => format!("{}({})", self.r.of(&["stddev", "variance", "var_pop", "stddev_pop"]), arg(self, Ty::Int4)),
                _ => format!("sum({})", arg(self, Ty::Int8)),
            },
            Ty::Text => match self.r.below(4) {
                0 => format!("{}({})", self.r.of(&["min", "max"]), arg(self, ty)),
                1 => {
                    let e = arg(self, ty);
                    format!("string_agg({distinct}{e}, ',' order by {e}{})", self.direction())
                }
                2 => {
                    let of = self.some_type();
                    let e = arg(self, of);
                    format!("array_agg({distinct}{e} order by {e}{})::text", self.direction())
                }
                _ => {
                    let (e, by) = (arg(self, Ty::Int4), arg(self, Ty::Text));
                    format!("string_agg({by}, '' order by {e}{}, {by})", self.direction())
                }
            },
            Ty::Bool => format!("{}({})", self.r.of(&["bool_and", "bool_or", "every"]), arg(self, ty)),
            Ty::Int4 | Ty::Int2 => format!("{}({})", self.r.of(&["min", "max", "bit_and", "bit_xor"]), arg(self, ty)),
            Ty::Jsonb => {
                let e = arg(self, Ty::Text);
                format!("jsonb_agg({e} order by {e})")
            }
            Ty::Interval => format!("{}({})", self.r.of(&["min", "max", "sum", "avg"]), arg(self, ty)),
            Ty::Uuid => return None,
            _ => format!("{}({})", self.r.of(&["min", "max"]), arg(self, ty)),
        };
        let filter = if self.r.percent(20) { format!(" filter (where {})", self.bool(s, 1)) } else { String::new() };
        let call = match call.strip_suffix("::text") {
            Some(array) => format!("({array}{filter})::text"),
            None => format!("{call}{filter}"),
        };
        Some(Self::canonical(ty, &call))
    }

    fn windowed(&mut self, tys: &[Ty], around: &Scope) -> String {
        let (from, scope) = self.from(around);
        let flat = Scope { levels: 0, ..scope.clone() };
        let mut is_first = true;
        let items: Vec<String> = (tys.iter().enumerate())
            .map(|(i, t)| {
                let e = match self.r.percent(65) {
                    true => self.window_call(*t, &flat, is_first),
                    false => None,
                };
                is_first &= e.is_none();
                let e = e.unwrap_or_else(|| self.expr(*t, &flat, 1));
                format!("{} as c{}", Self::canonical(*t, &e), i + 1)
            })
            .collect();
        format!("select {}{from}", items.join(", "))
    }
    /// The first rows of a table, or of each of its partitions, by a window's numbers.
    fn numbered(&mut self, tys: &[Ty], around: &Scope) -> String {
        let t = &TABLES[self.r.below(TABLES.len())];
        let alias = self.alias("t");
        let scope = Scope { cols: columns(t, &alias), levels: 0, ..around.clone() };
        let list = self.list(tys, &scope, 1);
        let mut over = String::new();
        if self.r.percent(50) {
            over += &format!("partition by {} ", scope.cols[self.r.below(scope.cols.len())].sql);
        }
        let mut keys = Vec::new();
        if self.r.percent(70) {
            keys.push(format!("{}{}", scope.cols[self.r.below(scope.cols.len())].sql, self.direction()));
        }
        let is_unique = t.key > 0 && self.r.percent(60);
        if is_unique {
            keys.extend(scope.cols[..t.key].iter().map(|c| c.sql.clone()));
        }
        if !keys.is_empty() {
            over += &format!("order by {}", keys.join(", "));
        }
        let call = if is_unique { "row_number()" } else { self.r.of(&["rank()", "dense_rank()"]) };
        let also = match self.r.below(4) {
            0 => format!(", count(*) over ({over}) as also"),
            1 if is_unique => format!(", lag({}, 2) over ({over}) as also", scope.cols[0].sql),
            _ => String::new(),
        };
        let mut test = format!("number {} {}", self.r.of(&["<=", "<", "="]), self.r.below(6));
        if also.starts_with(", count") && self.r.percent(50) {
            test += " and also > 1";
        }
        let filter = if self.r.percent(30) { format!(" where {}", self.condition(&scope)) } else { String::new() };
        let inner = format!("select {list}, {call} over ({over}) as number{also} from {} as {alias}{filter}", t.name);
        let names: Vec<String> = (1..=tys.len()).map(|i| format!("c{i}")).collect();
        format!("select {} from ({inner}) as {} where {test}", names.join(", "), self.alias("w"))
    }
    /// `is_first`: rows that look the same may be told apart. Two calls might tell them apart in
    /// different ways.
    fn window_call(&mut self, ty: Ty, s: &Scope, is_first: bool) -> Option<String> {
        let e = |g: &mut Generator, t: Ty| Self::canonical(t, &g.expr(t, s, 1));
        let call = match self.r.below(6) {
            0 if ty == Ty::Int8 => self.r.of(&["row_number()", "rank()", "dense_rank()", "count(*)"]).to_string(),
            0 if ty == Ty::Int4 => format!("ntile({})", self.r.below(5) + 1),
            0 if ty == Ty::Float8 => self.r.of(&["percent_rank()", "cume_dist()"]).to_string(),
            1 => format!("{}({}, {})", self.r.of(&["lag", "lead"]), e(self, ty), self.r.below(4)),
            2 => format!("{}({})", self.r.of(&["first_value", "last_value"]), e(self, ty)),
            3 => format!("nth_value({}, {})", e(self, ty), self.r.below(4) + 1),
            4 => format!("lag({}, 1, {})", e(self, ty), self.literal(ty)),
            _ => match ty {
                Ty::Int8 => format!("sum({})", e(self, Ty::Int4)),
                Ty::Numeric => format!("{}({})", self.r.of(&["sum", "avg", "min", "max"]), e(self, ty)),
                Ty::Text => {
                    format!("{}({})", self.r.of(&["min", "max", "string_agg"]), e(self, ty)).replace("string_agg(", "concat_agg(")
                }
                Ty::Bool => format!("bool_or({})", e(self, ty)),
                Ty::Jsonb | Ty::Uuid => return None,
                _ => format!("{}({})", self.r.of(&["min", "max"]), e(self, ty)),
            },
        };
        let call = match call.strip_prefix("concat_agg(") {
            Some(rest) => format!("string_agg({}, '/')", &rest[..rest.len() - 1]),
            None => call,
        };
        let mut over = String::new();
        if self.r.percent(60) && !s.cols.is_empty() {
            let c = &s.cols[self.r.below(s.cols.len())];
            over += &format!("partition by {} ", c.sql);
        }
        let mut keys = Vec::new();
        if self.r.percent(50) {
            let ty = self.some_type();
            if let Some(c) = self.column(ty, s) {
                keys.push(format!("{c}{}", self.direction()));
            }
        }
        let is_of_peers = ["rank(", "dense_rank(", "count(", "percent_rank(", "cume_dist(", "sum(", "min(", "max(", "bool_or("];
        let is_of_peers = is_of_peers.iter().any(|f| call.starts_with(f));
        if !is_of_peers && !is_first {
            return None;
        }
        if is_of_peers && (!is_first || self.r.percent(45)) {
            if !keys.is_empty() {
                over += &format!("order by {}", keys.join(", "));
                let peers =
                    ["", "range between current row and unbounded following", "range between current row and current row"];
                over += &format!(" {}", self.r.of(&peers));
            }
            return Some(format!("{call} over ({over})"));
        }
        // Rows that differ have different places.
        keys.extend(s.cols.iter().map(|c| c.sql.clone()));
        keys.extend(
            s.cols.iter().filter(|c| matches!(c.ty, Ty::Numeric | Ty::Float8 | Ty::Interval)).map(|c| format!("{}::text", c.sql)),
        );
        if !keys.is_empty() {
            over += &format!("order by {}", keys.join(", "));
        }
        if self.r.percent(35) && !keys.is_empty() {
            let frames = [
                "rows between 1 preceding and current row",
                "rows between unbounded preceding and 1 following",
                "rows between 2 preceding and 1 preceding",
                "rows between current row and unbounded following",
                "range between unbounded preceding and unbounded following",
                "range between current row and unbounded following",
                "rows 2 preceding",
                "rows between 1 following and 3 following",
                "rows between unbounded preceding and unbounded following",
            ];
            over += &format!(" {}", self.r.of(&frames));
        }
        Some(format!("{call} over ({over})"))
    }

    /// A subquery with one value at most.
    pub fn scalar_subquery(&mut self, ty: Ty, s: &Scope) -> String {
        let inner = self.inside(s);
        if self.r.percent(50) {
            let (from, scope) = self.from(&inner);
            if let Some(call) = self.aggregate(ty, &Scope { levels: 0, ..scope }) {
                return format!("(select {call}{from})");
            }
        }
        let body = self.body(&[ty], &inner);
        format!("({body} order by 1{} limit 1)", self.direction())
    }
    pub fn subquery_test(&mut self, s: &Scope, d: usize) -> String {
        let inner = self.inside(s);
        let not = self.r.of(&["", "not "]);
        match self.r.below(6) {
            0 => {
                let (from, _) = self.from(&inner);
                format!(
                    "{not}exists (select {}{from})",
                    self.r.of(&["1", "*", "null"]).replace('*', if from.is_empty() { "1" } else { "*" })
                )
            }
            1 | 2 => {
                let ty = self.some_type();
                format!("{} {not}in ({})", self.expr(ty, s, d), self.body(&[ty], &inner))
            }
            3 => {
                let tys = [self.some_type(), self.some_type()];
                let row: Vec<String> = tys.iter().map(|t| self.expr(*t, s, d)).collect();
                format!("({}) {not}in ({})", row.join(", "), self.body(&tys, &inner))
            }
            4 => {
                let ty = self.some_type();
                let op = self.r.of(&["=", "<", ">=", "<>"]);
                format!("{} {op} {} ({})", self.expr(ty, s, d), self.r.of(&["any", "all"]), self.body(&[ty], &inner))
            }
            _ => {
                let ty = self.some_type();
                let x = self.expr(ty, s, d);
                format!("{x} {} {}", self.r.of(&["=", "<", ">="]), self.scalar_subquery(ty, s))
            }
        }
    }
    fn inside(&self, s: &Scope) -> Scope {
        Scope { levels: s.levels.saturating_sub(1), ..s.clone() }
    }

    /// `WITH` with one query or two, and what of them can be read afterwards.
    fn with_clause(&mut self, around: &Scope) -> String {
        let inner = Scope { levels: 1, ..around.clone() };
        let mut parts = Vec::new();
        let recursive = self.r.percent(30);
        if recursive {
            let name = self.alias("w");
            let start = self.r.below(5) + 1;
            let (sql, tys) = match self.r.below(3) {
                0 => {
                    let most = self.r.below(12) + 1;
                    let all = self.r.of(&["", " all"]);
                    let sql = format!(
                        "select 1 as c1, 'a'::text as c2 union{all} select c1 + 1, c2 || c1 from {name} where c1 < {most}"
                    );
                    (sql, vec![Ty::Int4, Ty::Text])
                }
                1 => {
                    let sql = format!(
                        "select id as c1, up as c2, 0 as c3 from p where id <= {start} union all select p.id, p.up, c3 + 1 from p join {name} \
                         on p.up = {name}.c1 where c3 < 6"
                    );
                    (sql, vec![Ty::Int4, Ty::Int4, Ty::Int4])
                }
                _ => {
                    let sql = format!("select {start} as c1 union select (c1 * 3 + 1) % 17 from {name}");
                    (sql, vec![Ty::Int4])
                }
            };
            parts.push(format!("{name} as ({sql})"));
            self.with.push((name, tys));
        }
        for _ in 0..self.r.below(2) + usize::from(!recursive) {
            let tys: Vec<Ty> = (0..self.r.below(3) + 1).map(|_| self.some_type()).collect();
            let body = self.body(&tys, &inner);
            let name = self.alias("w");
            let how = self.r.of(&["", "materialized ", "not materialized "]);
            parts.push(format!("{name} as {how}({body})"));
            self.with.push((name, tys));
        }
        format!("with {}{} ", if recursive { "recursive " } else { "" }, parts.join(", "))
    }
}

pub fn columns(t: &Table, alias: &str) -> Vec<Col> {
    t.columns.iter().map(|(n, ty)| Col { sql: format!("{alias}.{n}"), ty: *ty }).collect()
}

fn named(alias: &str, tys: &[Ty]) -> Vec<Col> {
    tys.iter().enumerate().map(|(i, ty)| Col { sql: format!("{alias}.c{}", i + 1), ty: *ty }).collect()
}
