//! An interpreter for the subset of WGSL that the generated functions use: `let NAME = EXPRESSION;` and the
//! constructors that they return.

use std::collections::HashMap;

pub(crate) struct Shader {
    lets: Vec<(String, String)>,
    /// The names of the results of each row, from bit 0 on.
    results: Vec<Vec<String>>,
    has_columns: bool,
}

impl Shader {
    /// Parses the function with this name.
    pub(crate) fn new(text: &str, name: &str) -> Shader {
        let start = text.find(&format!("\nfn {name}(")).unwrap_or_else(|| panic!("no function {name}"));
        let mut lines = text[start + 1..].lines();
        let has_columns = lines.next().unwrap().contains("-> Column");
        let mut shader = Shader { lets: Vec::new(), results: Vec::new(), has_columns };
        for line in lines {
            let line = line.trim();
            if let Some((name, value)) = line.strip_prefix("let ").and_then(|rest| rest.split_once(" = ")) {
                shader.lets.push((name.into(), value.strip_suffix(';').unwrap().into()));
            } else if let Some(value) = line.strip_prefix("return ") {
                let rows = value.split("Byte(").skip(1).map(|row| row.split(')').next().unwrap());
                shader.results = rows.map(|row| row.split(", ").map(String::from).collect()).collect();
                return shader;
            } else {
                panic!("unknown statement: {line}");
            }
        }
        panic!("{name} returns nothing");
    }

    /// Evaluates the function. `input` returns the value of the input with a given name. The result maps the names of the outputs to their
    /// values. All names are those of the circuit.
    pub(crate) fn evaluate(&self, input: &dyn Fn(&str) -> u64) -> HashMap<String, u64> {
        let mut values: HashMap<&str, u64> = HashMap::new();
        for (name, text) in &self.lets {
            let value = expression(text, &|operand| {
                if let Some((row, bit)) = operand.strip_prefix("row").and_then(|rest| rest.split_once(".b")) {
                    let bit = 7 - bit.parse::<usize>().unwrap();
                    return input(&if self.has_columns {
                        format!("U{bit}_{row}")
                    } else {
                        format!("U{bit}")
                    });
                }
                if let Some(left) = operand.strip_prefix("all_bits(key, ") {
                    let bit = 31 - left.strip_suffix("u)").unwrap().parse::<usize>().unwrap();
                    return input(&format!("K{}x{}", bit / 8, bit % 8));
                }
                *values.get(operand).unwrap_or_else(|| panic!("{operand} is not known"))
            });
            values.insert(name, value);
        }
        let mut results = HashMap::new();
        for (row, names) in self.results.iter().enumerate() {
            assert_eq!(names.len(), 8);
            for (bit, name) in names.iter().enumerate() {
                let result = if self.has_columns { format!("o{row}x{bit}") } else { format!("S{}", 7 - bit) };
                results.insert(result, values[name.as_str()]);
            }
        }
        results
    }
}

/// The value of an expression in which every operation except the outermost is in parentheses.
pub(crate) fn expression(text: &str, name: &dyn Fn(&str) -> u64) -> u64 {
    let (value, rest) = operations(text, name);
    assert_eq!(rest, "", "behind the expression {text}");
    value
}

fn operations<'t>(text: &'t str, name: &dyn Fn(&str) -> u64) -> (u64, &'t str) {
    let (left, rest) = operand(text, name);
    let Some(operator) = rest.get(..3).filter(|operator| [" & ", " | ", " ^ "].contains(operator)) else {
        return (left, rest);
    };
    let (right, rest) = operand(&rest[3..], name);
    let value = match operator {
        " & " => left & right,
        " | " => left | right,
        _ => left ^ right,
    };
    (value, rest)
}

fn operand<'t>(text: &'t str, name: &dyn Fn(&str) -> u64) -> (u64, &'t str) {
    if let Some(rest) = text.strip_prefix('~') {
        let (value, rest) = operand(rest, name);
        return (!value, rest);
    }
    if let Some(rest) = text.strip_prefix('(') {
        let (value, rest) = operations(rest, name);
        return (value, rest.strip_prefix(')').unwrap_or_else(|| panic!("no end of parentheses: {text}")));
    }
    let is_call = text.starts_with("all_bits(");
    let end = if is_call {
        text.find(')').unwrap() + 1
    } else {
        text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(text.len())
    };
    (name(&text[..end]), &text[end..])
}
