// Made from dev/circuit/aes.circuit: do not edit. devices/wgpu/tests/wgpu/circuit.rs makes it anew.
//
// A byte is its bit planes, bit 0 the least significant. The key of a column is its word, row 0 in the lowest
// byte; `all_bits` repeats one bit of it.
struct Byte { b0: u32, b1: u32, b2: u32, b3: u32, b4: u32, b5: u32, b6: u32, b7: u32, }
struct Column { row0: Byte, row1: Byte, row2: Byte, row3: Byte, }
fn all_bits(word: u32, left: u32) -> u32 { return bitcast<u32>(bitcast<i32>(word << left) >> 31u); }
