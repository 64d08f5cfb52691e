//! Writes circuits as functions in WGSL, where a lookup table is an expression.

use std::fmt::Write;

use crate::{Circuit, Place, cheapest, place};

const MADE: &str =
    "// Made from dev/circuit/aes.circuit: do not edit. devices/wgpu/tests/wgpu/circuit.rs makes it anew.\n";

/// Shader code as pairs of a file name and the text of the file. The file `bytes` declares the types. Each other file contains the function
/// of one circuit and has the circuit's name. The arguments of a function are the bytes of 32 blocks as bit planes.
pub fn wgsl(circuits: &[Circuit]) -> Vec<(String, String)> {
    let mut out = format!(
        "{MADE}//\n\
         // A byte is its bit planes, bit 0 the least significant. The key of a column is its word, row 0 in the lowest\n\
         // byte; `all_bits` repeats one bit of it.\n",
    );
    let fields = |field: &str, what: &str, count: usize| {
        (0..count).fold(String::new(), |text, i| text + &format!("{field}{i}: {what}, "))
    };
    writeln!(out, "struct Byte {{ {}}}", fields("b", "u32", 8)).unwrap();
    writeln!(out, "struct Column {{ {}}}", fields("row", "Byte", 4)).unwrap();
    out.push_str(
        "fn all_bits(word: u32, left: u32) -> u32 { return bitcast<u32>(bitcast<i32>(word << left) >> 31u); }\n",
    );
    let functions = circuits.iter().map(|circuit| (circuit.name.clone(), function(circuit)));
    std::iter::once(("bytes".to_owned(), out)).chain(functions).collect()
}

fn function(circuit: &Circuit) -> String {
    let rows = if circuit.is_column() { 4 } else { 1 };
    let parameters: Vec<String> = (0..rows).map(|row| format!("row{row}: Byte")).collect();
    let (key, result) = if rows == 4 { (", key: u32", "Column") } else { ("", "Byte") };
    let mut body = String::new();
    let mut total = 0;
    let mut results: Vec<(usize, usize, &str)> = Vec::new();
    for operation in &circuit.operations {
        let operands = operation.operands.each_ref().map(|operand| match operand.as_deref() {
            None => String::new(),
            Some(name) => match place(name) {
                Place::Input { row, bit } => format!("row{row}.b{bit}"),
                Place::Key { row, bit } => {
                    total += 2;
                    format!("all_bits(key, {}u)", 31 - 8 * row - bit)
                }
                Place::Output { .. } | Place::Inner => name.to_owned(),
            },
        });
        let (expression, cost) = cheapest(operation.table, operands.each_ref().map(String::as_str));
        total += cost;
        writeln!(body, "    let {} = {expression};", operation.name).unwrap();
        if let Place::Output { row, bit } = place(&operation.name) {
            results.push((row, bit, &operation.name));
        }
    }
    results.sort();
    let bytes: Vec<String> = (results.chunks(8))
        .map(|row| format!("Byte({})", row.iter().map(|(.., name)| *name).collect::<Vec<_>>().join(", ")))
        .collect();
    let value = if rows == 4 { format!("Column({})", bytes.join(", ")) } else { bytes.join("") };
    let head = format!("fn {}({}{key}) -> {result} {{", circuit.name, parameters.join(", "));
    format!("{MADE}// {total} operations.\n{head}\n{body}    return {value};\n}}\n")
}
