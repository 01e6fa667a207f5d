//! Just enough of SQL's expressions to write golden tables: literals, casts, operators, calls,
//! arrays, and `(SELECT agg(x) FROM unnest(…) AS x)`, `ARRAY(SELECT x FROM f(…) AS x)`.

use crate::catalog::system::FUNCTIONS;
use crate::types::functions::{self, FunctionKind};
use crate::types::numeric::Numeric;
use crate::types::{ArrayValue, CastContext, Datum, EvalContext, Type, cast};
use meridian_base::{Error, Result};

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(String),
    Text(String),
    Word(String),
    Operator(String),
    Punctuation(char),
}

fn tokens(s: &str) -> Vec<Token> {
    let chars: Vec<char> = s.chars().collect();
    let mut out = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        let start = i;
        if c.is_whitespace() {
            i += 1;
        } else if c.is_ascii_digit() || (c == '.' && chars.get(i + 1).is_some_and(char::is_ascii_digit)) {
            while i < chars.len() && (chars[i].is_ascii_digit() || chars[i] == '.' || (chars[i] == 'e' && i > start)) {
                i += if chars[i] == 'e' && chars.get(i + 1).is_some_and(|c| "+-".contains(*c)) { 2 } else { 1 };
            }
            out.push(Token::Number(chars[start..i].iter().collect()));
        } else if c == '\'' || (c == 'E' && chars.get(i + 1) == Some(&'\'')) {
            let escapes = c == 'E';
            i += if escapes { 2 } else { 1 };
            let mut text = String::new();
            while i < chars.len() {
                match chars[i] {
                    '\'' if chars.get(i + 1) == Some(&'\'') => i += 1,
                    '\'' => break,
                    '\\' if escapes => {
                        i += 1;
                        text.push(match chars[i] {
                            'n' => '\n',
                            't' => '\t',
                            c => c,
                        });
                        i += 1;
                        continue;
                    }
                    _ => {}
                }
                text.push(chars[i]);
                i += 1;
            }
            i += 1;
            out.push(Token::Text(text));
        } else if c.is_alphabetic() || c == '_' || c == '"' {
            i += 1;
            while i < chars.len() && (chars[i].is_alphanumeric() || chars[i] == '_' || chars[i] == '"') {
                i += 1;
            }
            out.push(Token::Word(chars[start..i].iter().collect()));
        } else if "+-*/<>=~!@#%^&|?".contains(c) || (c == ':' && chars.get(i + 1) == Some(&':')) {
            if c == ':' {
                i += 2;
            } else {
                while i < chars.len() && "+-*/<>=~!@#%^&|?".contains(chars[i]) {
                    i += 1;
                }
                // `2*-3` is two operators: a trailing sign belongs to what follows, unless the
                // operator has one of these.
                while i > start + 1 && "+-".contains(chars[i - 1]) && !chars[start..i].iter().any(|c| "~!@#%^&|?".contains(*c)) {
                    i -= 1;
                }
            }
            out.push(Token::Operator(chars[start..i].iter().collect()));
        } else {
            out.push(Token::Punctuation(c));
            i += 1;
        }
    }
    out
}

/// A value with its type.
pub type Typed = (Datum, Type);

struct Eval<'a> {
    tokens: Vec<Token>,
    at: usize,
    ctx: &'a EvalContext,
}

/// Evaluates an expression.
pub fn eval(text: &str, ctx: &EvalContext) -> Result<Typed> {
    let mut e = Eval { tokens: tokens(text), at: 0, ctx };
    let v = e.expression(0)?;
    assert!(e.at == e.tokens.len(), "{text}: stopped before {:?}", &e.tokens[e.at..]);
    Ok(v)
}

fn precedence(op: &str) -> u8 {
    match op {
        "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" => 1,
        "+" | "-" => 4,
        "*" | "/" | "%" => 5,
        "^" => 6,
        _ => 3,
    }
}

impl Eval<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }
    fn word_is(&self, ahead: usize, word: &str) -> bool {
        matches!(self.tokens.get(self.at + ahead), Some(Token::Word(w)) if w.eq_ignore_ascii_case(word))
    }
    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(&Token::Punctuation(c));
        self.at += usize::from(found);
        found
    }
    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.word_is(0, word);
        self.at += usize::from(found);
        found
    }
    fn need(&mut self, c: char) {
        assert!(self.eat(c), "{c} belongs before {:?}", &self.tokens[self.at..]);
    }

    fn expression(&mut self, above: u8) -> Result<Typed> {
        let mut left = self.unary()?;
        loop {
            let (op, level) = match self.peek() {
                Some(Token::Operator(op)) if op != "::" => (op.clone(), precedence(op)),
                Some(Token::Word(w)) if w.eq_ignore_ascii_case("like") => ("~~".to_string(), 2),
                Some(Token::Word(w)) if w.eq_ignore_ascii_case("ilike") => ("~~*".to_string(), 2),
                Some(Token::Word(w)) if w.eq_ignore_ascii_case("at") => ("at".to_string(), 7),
                _ => return Ok(left),
            };
            if level <= above {
                return Ok(left);
            }
            self.at += if op == "at" { 3 } else { 1 };
            let right = self.expression(level)?;
            left = if op == "at" { self.call("timezone", vec![right, left])? } else { self.operator(&op, vec![left, right])? };
        }
    }
    fn unary(&mut self) -> Result<Typed> {
        if let Some(Token::Operator(op)) = self.peek().cloned()
            && op != "::"
        {
            self.at += 1;
            // The sign of a number belongs to the literal, so that the smallest integer can be
            // written.
            if let ("-", Some(Token::Number(n))) = (op.as_str(), self.peek().cloned())
                && self.tokens.get(self.at + 1) != Some(&Token::Operator("::".into()))
            {
                self.at += 1;
                return Ok(number(&format!("-{n}")));
            }
            let v = self.expression(if matches!(op.as_str(), "-" | "+") { 6 } else { 3 })?;
            return self.operator(&op, vec![v]);
        }
        self.postfix()
    }
    fn postfix(&mut self) -> Result<Typed> {
        let mut v = self.primary()?;
        loop {
            if self.peek() == Some(&Token::Operator("::".into())) {
                self.at += 1;
                let ty = self.type_name();
                v = self.cast(v, ty)?;
            } else if self.eat('[') {
                let i = self.expression(0)?;
                self.need(']');
                let element = v.1.element().cloned().unwrap_or(Type::Text);
                v = match (&v.0, &i.0) {
                    (Datum::Array(a), Datum::Int(i)) => (a.subscript(&[*i]), element),
                    _ => (Datum::Null, element),
                };
            } else {
                return Ok(v);
            }
        }
    }
    fn cast(&mut self, v: Typed, ty: Type) -> Result<Typed> {
        Ok((cast::cast(v.0, &v.1, &ty, CastContext::Explicit, self.ctx)?, ty))
    }
    fn type_name(&mut self) -> Type {
        let Some(Token::Word(first)) = self.peek().cloned() else {
            panic!("a type belongs before {:?}", &self.tokens[self.at..])
        };
        self.at += 1;
        let mut name = first;
        for more in ["precision", "varying", "with", "without", "time", "zone"] {
            if self.word_is(0, more) {
                self.at += 1;
                name = format!("{name} {more}");
            }
        }
        let mut modifiers = Vec::new();
        if self.eat('(') {
            loop {
                let negative = self.peek() == Some(&Token::Operator("-".into()));
                self.at += usize::from(negative);
                if let Some(Token::Number(n)) = self.peek() {
                    let n: i32 = n.parse().expect("a modifier");
                    modifiers.push(if negative { -n } else { n });
                }
                self.at += 1;
                if !self.eat(',') {
                    break;
                }
            }
            self.need(')');
        }
        let mut ty = if name == "\"char\"" {
            Type::InternalChar
        } else {
            Type::from_name(&name).unwrap_or_else(|| panic!("{name} is no type"))
        };
        ty = match (ty, &modifiers[..]) {
            (Type::Numeric(_), [p]) => Type::Numeric(Some((*p as u16, 0))),
            (Type::Numeric(_), [p, s]) => Type::Numeric(Some((*p as u16, *s as i16))),
            (Type::Varchar(_), [n]) => Type::Varchar(Some(*n as u32)),
            (Type::Char(_), [n]) => Type::Char(*n as u32),
            (t, _) => t,
        };
        while self.peek() == Some(&Token::Punctuation('[')) {
            self.at += 1;
            self.need(']');
            ty = ty.array_of();
        }
        ty
    }
    fn list(&mut self, end: char) -> Result<Vec<Typed>> {
        let mut out = Vec::new();
        if self.eat(end) {
            return Ok(out);
        }
        loop {
            out.push(self.expression(0)?);
            if !self.eat(',') {
                self.need(end);
                return Ok(out);
            }
        }
    }
    fn array(&mut self) -> Result<Typed> {
        let items = self.list(']')?;
        let types: Vec<Type> = items.iter().map(|i| i.1.clone()).collect();
        let element = cast::select_common_type(&types, "ARRAY")?;
        let values: Vec<Datum> = items
            .into_iter()
            .map(|(v, t)| cast::cast(v, &t, &element, CastContext::Implicit, self.ctx))
            .collect::<Result<_>>()?;
        if let Type::Array(e) = &element {
            return Ok((ArrayValue::nest((**e).clone(), &values)?, element));
        }
        Ok((ArrayValue::datum(element.clone(), values), element.array_of()))
    }
    /// Behind `(SELECT` or `ARRAY(SELECT`.
    fn select(&mut self, as_array: bool) -> Result<Typed> {
        let from = (self.at..self.tokens.len())
            .find(|i| matches!(&self.tokens[*i], Token::Word(w) if w.eq_ignore_ascii_case("from")))
            .expect("a select has a FROM");
        let projection = (self.at, from);
        self.at = from + 1;
        let Some(Token::Word(name)) = self.peek().cloned() else { panic!("a function belongs behind FROM") };
        self.at += 1;
        self.need('(');
        let args = self.list(')')?;
        self.at += 2;
        self.need(')');
        let types: Vec<Type> = args.iter().map(|a| a.1.clone()).collect();
        let f = FUNCTIONS.resolve_set_function(&name, &types)?;
        let args = self.convert(args, &f.args)?;
        let rows: Vec<Datum> = f.call(self.ctx, &args)?.map(|r| r.map(|mut r| r.remove(0))).collect::<Result<_>>()?;
        let column = f.columns[0].1.clone();
        if as_array {
            return Ok((ArrayValue::datum(column.clone(), rows), column.array_of()));
        }
        self.aggregate(projection, rows, column)
    }
    fn aggregate(&mut self, projection: (usize, usize), rows: Vec<Datum>, column: Type) -> Result<Typed> {
        let Token::Word(name) = self.tokens[projection.0].clone() else { panic!("an aggregate belongs behind SELECT") };
        // What stands between the parentheses behind `x,`: further arguments, constants.
        let inner = self.tokens[projection.0 + 2..projection.1 - 1].to_vec();
        let mut types: Vec<Type> = Vec::new();
        let mut constants: Vec<Typed> = Vec::new();
        let star = inner.first() == Some(&Token::Operator("*".into()));
        if !star {
            types.push(column);
            if inner.len() > 2 {
                let mut e = Eval { tokens: inner[2..].to_vec(), at: 0, ctx: self.ctx };
                constants.push(e.expression(0)?);
                types.push(constants[0].1.clone());
            }
        }
        let a = FUNCTIONS.resolve_aggregate(&name.to_lowercase(), &types)?;
        let mut state = a.start();
        for row in rows {
            let mut args = if star { Vec::new() } else { vec![(row, types[0].clone())] };
            args.extend(constants.iter().cloned());
            let args = self.convert(args, &a.args)?;
            state.add(self.ctx, &args)?;
        }
        Ok((state.finish(self.ctx)?, a.result))
    }
    fn primary(&mut self) -> Result<Typed> {
        let token = self.peek().cloned().expect("an expression goes on");
        self.at += 1;
        match token {
            Token::Number(n) => Ok(number(&n)),
            Token::Text(t) => Ok((Datum::text(t), Type::Unknown)),
            Token::Punctuation('(') => {
                if self.eat_word("select") {
                    return self.select(false);
                }
                let v = self.expression(0)?;
                self.need(')');
                Ok(v)
            }
            Token::Word(w) => self.word(&w),
            other => panic!("{other:?} starts no expression"),
        }
    }
    fn word(&mut self, w: &str) -> Result<Typed> {
        let lower = w.to_lowercase();
        match lower.as_str() {
            "null" => return Ok((Datum::Null, Type::Unknown)),
            "true" => return Ok((Datum::Bool(true), Type::Bool)),
            "false" => return Ok((Datum::Bool(false), Type::Bool)),
            "array" if self.eat('[') => return self.array(),
            "array" => {
                self.need('(');
                assert!(self.eat_word("select"));
                return self.select(true);
            }
            "cast" => {
                self.need('(');
                let v = self.expression(0)?;
                assert!(self.eat_word("as"));
                let ty = self.type_name();
                self.need(')');
                return self.cast(v, ty);
            }
            "extract" => {
                self.need('(');
                let Some(Token::Word(field)) = self.peek().cloned() else { panic!("a field belongs into extract") };
                self.at += 1;
                assert!(self.eat_word("from"));
                let v = self.expression(0)?;
                self.need(')');
                return self.call("extract", vec![(Datum::text(field), Type::Unknown), v]);
            }
            _ => {}
        }
        if self.eat('(') {
            let args = self.list(')')?;
            return self.call(&lower, args);
        }
        // `date '2020-01-01'`.
        self.at -= 1;
        let ty = self.type_name();
        let Some(Token::Text(t)) = self.peek().cloned() else { panic!("{w} is not understood") };
        self.at += 1;
        self.cast((Datum::text(t), Type::Unknown), ty)
    }
    fn convert(&self, args: Vec<Typed>, types: &[Type]) -> Result<Vec<Datum>> {
        args.into_iter().zip(types).map(|((v, from), to)| cast::cast(v, &from, to, CastContext::Implicit, self.ctx)).collect()
    }
    fn run(&self, f: functions::Function, args: Vec<Typed>) -> Result<Typed> {
        let args = self.convert(args, &f.args)?;
        Ok((f.call(self.ctx, &args)?, f.result))
    }
    fn operator(&mut self, op: &str, args: Vec<Typed>) -> Result<Typed> {
        let types: Vec<Type> = args.iter().map(|a| a.1.clone()).collect();
        self.run(FUNCTIONS.resolve_operator(op, &types)?, args)
    }
    fn call(&mut self, name: &str, args: Vec<Typed>) -> Result<Typed> {
        let types: Vec<Type> = args.iter().map(|a| a.1.clone()).collect();
        match FUNCTIONS.kind_of(name) {
            Some(FunctionKind::Scalar) | None => self.run(FUNCTIONS.resolve_function(name, &types)?, args),
            Some(_) => Err(Error::internal(format!("{name} stands where a scalar function belongs"))),
        }
    }
}

fn number(n: &str) -> Typed {
    if let Ok(v) = n.parse::<i64>() {
        return (Datum::Int(v), if i32::try_from(v).is_ok() { Type::Int4 } else { Type::Int8 });
    }
    let n: Numeric = Numeric::parse(n).expect("a number").expect("in range");
    (Datum::Numeric(n), Type::Numeric(None))
}
