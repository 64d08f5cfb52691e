//! Writes circuits as functions in CUDA C++, where a lookup table is one instruction.

use std::collections::HashSet;
use std::fmt::Write;

use crate::{Circuit, Place, place};

/// The CUDA header, with one function for each circuit. The arguments of a function are the bit planes of bytes of 32 blocks. The function
/// overwrites its arguments with its results.
pub fn cuda(circuits: &[Circuit]) -> String {
    let mut out = String::from(
        "// Made from dev/circuit/aes.circuit: do not edit. devices/cuda/tests/cuda/circuit.rs makes it anew.\n\
         //\n\
         // Bytes are bit planes, bit 0 the least significant. A column's `keys.quad(2 * row + half)` gives the\n\
         // planes of bits 4 * half to 4 * half + 3 of the round key's byte in that row.\n\
         #pragma once\n\
         #include \"../common/bits.cuh\"\n",
    );
    for circuit in circuits {
        cuda_function(&mut out, circuit);
    }
    out
}

fn cuda_function(out: &mut String, circuit: &Circuit) {
    let rows = if circuit.is_column() { 4 } else { 1 };
    let parameters: Vec<String> = (0..rows).map(|row| format!("u32 (&row{row})[8]")).collect();
    let (template, keys) =
        if rows == 4 { ("template <class Keys>\n", ", const Keys &keys") } else { ("", "") };
    let name = &circuit.name;
    writeln!(out, "\n// {} tables.", circuit.operations.len()).unwrap();
    writeln!(out, "{template}__device__ inline void {name}({}{keys}) {{", parameters.join(", ")).unwrap();
    let mut loaded = HashSet::new();
    let mut results = Vec::new();
    for operation in &circuit.operations {
        let operands = operation.operands.each_ref().map(|operand| match operand.as_deref() {
            None => "0".to_owned(),
            Some(name) => match place(name) {
                Place::Input { row, bit } => format!("row{row}[{bit}]"),
                Place::Key { row, bit } => {
                    let (quad, member) = (2 * row + bit / 4, ["x", "y", "z", "w"][bit % 4]);
                    if loaded.insert(quad) {
                        writeln!(out, "    u32x4 key{quad} = keys.quad({quad});").unwrap();
                    }
                    format!("key{quad}.{member}")
                }
                Place::Output { .. } | Place::Inner => name.to_owned(),
            },
        });
        let name = &operation.name;
        writeln!(out, "    u32 {name} = lop3<0x{:02X}>({});", operation.table, operands.join(", ")).unwrap();
        if let Place::Output { row, bit } = place(name) {
            results.push((row, bit, name));
        }
    }
    // The results overwrite the inputs. They are therefore stored after the last operation, which may still read inputs.
    results.sort();
    for row in results.chunks(8) {
        let stores: Vec<String> =
            row.iter().map(|(row, bit, name)| format!("row{row}[{bit}] = {name};")).collect();
        for half in stores.chunks(4) {
            writeln!(out, "    {}", half.join(" ")).unwrap();
        }
    }
    out.push_str("}\n");
}
