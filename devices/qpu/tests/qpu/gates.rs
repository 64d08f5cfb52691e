//! Tests of the circuits of the S-box, which consist of gates.

use lockstep_core::sbox;
use lockstep_qpu::kernels::bitslice::gates::{Circuit, Kind, forward, inverse};

/// Checks, for all inputs, that each sum and each difference in the circuit equals the XOR of its inputs, and that the outputs equal those
/// of `function`, the circuit before it was rewritten.
fn check(circuit: &Circuit, function: fn([u8; 8]) -> [u8; 8], gates_of_add: usize) {
    let tables = circuit.tables();
    for gate in &circuit.gates {
        let [a, b] = gate.inputs.map(|input| tables[input]);
        let both: [u64; 4] = std::array::from_fn(|word| a[word] & b[word]);
        match gate.kind {
            Kind::Sum => assert_eq!(both, [0; 4], "{gate:?}"),
            Kind::Difference => assert_eq!(both, b, "{gate:?}"),
            Kind::And | Kind::Xor => {}
        }
    }
    for byte in 0..256usize {
        let expected = function(std::array::from_fn(|bit| (byte >> bit & 1) as u8));
        let found = circuit.outputs.map(|value| (tables[value][byte / 64] >> (byte % 64) & 1) as u8);
        assert_eq!(found, expected, "{byte}");
    }
    let of_add = circuit.gates.iter().filter(|gate| matches!(gate.kind, Kind::And | Kind::Xor)).count();
    assert_eq!(of_add, gates_of_add);
}

#[test]
fn rewritten_circuits_are_the_s_box() {
    check(&forward(), sbox::forward, 106);
    check(&inverse(), sbox::inverse, 116);
}
