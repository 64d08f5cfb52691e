//! Writes circuits that process one byte, such as the S-box, as functions in GLSL, where a lookup table is an expression.

use std::fmt::Write;

use crate::{Circuit, Place, cheapest, place};

/// Shader code with one function for each circuit that processes a single byte, such as the S-box. A function takes and returns a state of
/// bit planes. Circuits that process a column and a round key are left out.
pub fn glsl(circuits: &[Circuit]) -> String {
    let mut out = String::from(
        "// Made from dev/circuit/aes.circuit: do not edit. devices/opengl/tests/opengl/circuit.rs makes it anew.\n\
         //\n\
         // A state is eight bit planes, `low.x` the least significant bit of all bytes and `high.w` the most significant.\n\
         struct State { uvec4 low; uvec4 high; };\n",
    );
    circuits.iter().filter(|circuit| !circuit.is_column()).for_each(|circuit| function(&mut out, circuit));
    out
}

fn function(out: &mut String, circuit: &Circuit) {
    let plane = |bit: usize| format!("s.{}.{}", ["low", "high"][bit / 4], ["x", "y", "z", "w"][bit % 4]);
    let mut body = String::new();
    let mut total = 0;
    let mut results: Vec<(usize, &str)> = Vec::new();
    for operation in &circuit.operations {
        let operands = operation.operands.each_ref().map(|operand| match operand.as_deref() {
            None => String::new(),
            Some(name) => match place(name) {
                Place::Input { bit, .. } => plane(bit),
                Place::Key { .. } => unreachable!("only circuits of columns add keys"),
                Place::Output { .. } | Place::Inner => name.to_owned(),
            },
        });
        let (expression, cost) = cheapest(operation.table, operands.each_ref().map(String::as_str));
        total += cost;
        writeln!(body, "    uint {} = {expression};", operation.name).unwrap();
        if let Place::Output { bit, .. } = place(&operation.name) {
            results.push((bit, &operation.name));
        }
    }
    results.sort_unstable();
    let names: Vec<&str> = results.into_iter().map(|(_, name)| name).collect();
    writeln!(out, "\n// {total} operations.\nState {}(State s) {{\n{body}", circuit.name).unwrap();
    let halves = names.chunks(4).map(|half| format!("uvec4({})", half.join(", ")));
    writeln!(out, "    return State({});\n}}", halves.collect::<Vec<_>>().join(", ")).unwrap();
}
