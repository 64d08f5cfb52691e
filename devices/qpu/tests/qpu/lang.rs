//! Tests of programs in the language that is embedded in Rust. Each program is compiled by the sequential and by the scheduling compiler.

use lockstep_qpu::compiler::scheduled::{self, Hints};
use lockstep_qpu::compiler::{Code, CompileError, Special, sequential};
use lockstep_qpu::kernels::naive::galois_multiply;
use lockstep_qpu::lang::{Expression, Float, Int, Kernel, element, qpu, rotate, uniform};
use lockstep_qpu::sim::{Event, Machine, Observer, Program, Vector};

fn results(code: &Code) -> Vec<Vec<u32>> {
    let compiled = [sequential::compile(code).unwrap(), scheduled::compile(code, &Hints::default()).unwrap()];
    compiled
        .iter()
        .map(|instructions| {
            let program = Program::new(instructions);
            let words = [0u32, 1, 64];
            let mut memory: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            memory.resize(1024, 0);
            Machine::new(&program, &[0])
                .run(&mut memory, 1_000_000)
                .unwrap_or_else(|fault| panic!("{fault}"));
            memory[64..128].chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
        })
        .collect()
}

fn check(
    build: impl FnOnce(&mut Kernel) -> lockstep_qpu::lang::Var<lockstep_qpu::lang::Int>,
    expected: impl Fn(u32) -> u32,
) {
    let mut k = Kernel::new();
    let to = k.var(uniform());
    let result = build(&mut k);
    k.store(result, to);
    let expected: Vec<u32> = (0..16).map(expected).collect();
    for (compiler, result) in ["sequential", "scheduled"].iter().zip(results(&k.finish())) {
        assert_eq!(result, expected, "{compiler}");
    }
}

#[test]
fn loops_down() {
    check(
        |k| {
            let sum = k.var(element());
            let start = k.var(9);
            k.for_down(start - 1, 0, 1, |k, i| k.set(sum, sum + i));
            sum
        },
        |index| index + 36,
    );
}

#[test]
fn shifts_by_variables() {
    check(
        |k| {
            let value = k.var(0x1122_3344u32);
            let result = k.var(0);
            k.for_(0, 4, 1, |k, i| {
                let all = k.var(0xff);
                let lane = k.var((value & (all << (i << 3))).shr_logical(i << 3));
                k.set(result, result + lane);
            });
            result
        },
        |_| 0xaa,
    );
}

/// Products in the field of AES, computed with assignments under conditions.
#[test]
fn products_in_the_field_of_aes() {
    let times = |byte: u32, number: u32| {
        let doubled = byte << 1 ^ if byte & 0x80 == 0 { 0 } else { 0x11b };
        [0, byte, doubled, doubled ^ byte][number as usize]
    };
    check(
        |k| {
            let (number, byte) = (k.var(element() & 3), k.var((element() << 4) + 7));
            galois_multiply(k, number, byte)
        },
        |index| times((index << 4) + 7, index & 3),
    );
}

#[test]
fn rotations_under_conditions() {
    check(
        |k| {
            let state = k.var(element());
            let column = k.var(element() & 3);
            let row = k.var(rotate(state & 0xff, 1));
            k.where_(column.is_less(1), |k| k.set(row, rotate(state & 0xff, 13)));
            row
        },
        |index| if index % 4 == 0 { (index + 3) % 16 } else { index - 1 },
    );
}

#[test]
fn a_variable_is_read_and_replaced_before_its_last_use() {
    check(
        |k| {
            let sum = k.var(element());
            let other = k.var(element() << 4);
            k.set(sum, sum + other);
            k.var(sum)
        },
        |index| 17 * index,
    );
}

#[test]
fn bytes_of_variables_with_other_inputs() {
    check(
        |k| {
            let one = k.var((element() << 8) + 0x0403_0005u32);
            let other = k.var((element() << 16) + 3);
            // Both variables are kept in file A, because single bytes of both variables are used.
            let first = k.var(one.byte(1) + element());
            let second = k.var(one.byte(0) ^ other);
            let third = k.var(other.byte(2) ^ one);
            k.var(first + second + third)
        },
        |index| {
            let (one, other) = ((index << 8) + 0x0403_0005, (index << 16) + 3);
            2 * index + (5 ^ other) + (index ^ one)
        },
    );
}

#[test]
fn bytes_are_set_under_conditions() {
    check(
        |k| {
            let value = k.var(0x0102_0304u32);
            let byte = k.var::<Int>(9);
            let row = k.var(element() & 3);
            k.where_(row.is(1), |k| k.set_byte(value, 2, byte));
            k.var(value + (qpu() + 1))
        },
        |index| if index % 4 == 1 { 0x0109_0305 } else { 0x0102_0305 },
    );
}

#[test]
fn a_variable_that_was_not_written_is_refused() {
    let mut k = Kernel::new();
    let value = k.unset::<Int>();
    let to = k.var(uniform());
    k.where_(to.is(3), |k| k.set(value, 1));
    k.store(value, to);
    assert_eq!(scheduled::compile(&k.finish(), &Hints::default()), Err(CompileError::Unwritten));
}

#[test]
fn special_functions_and_requests_share_a_register() {
    check(
        |k| {
            let address = k.var(Expression::<Int>::from(0));
            let two = k.var(Expression::<Float>::from(2.0));
            k.gather(address);
            let [half, root, power, log] =
                [Special::Reciprocal, Special::ReciprocalSquareRoot, Special::Exponent, Special::Logarithm]
                    .map(|function| k.special(function, two * two));
            let word = k.receive::<Int>();
            // The four values are 1/4, 1/2, 16 and 2.
            let sum = k.var(half + root + power + log);
            let result = k.var((sum * 4.0).to_int() + word);
            k.var(result + element())
        },
        |index| 1 + 2 + 64 + 8 + index,
    );
}

#[test]
fn floats_are_compared() {
    check(
        |k| {
            let value = k.var(element().to_float() * 0.5);
            let result = k.var::<Int>(0);
            k.where_(value.is_less(2.0), |k| k.set(result, result + 1));
            k.where_(value.is_greater(2.0), |k| k.set(result, result + 2));
            k.where_(value.is_at_least(2.0) & value.is_not(3.0), |k| k.set(result, result + 4));
            result
        },
        |index| match index {
            ..4 => 1,
            4 => 4,
            6 => 2,
            _ => 6,
        },
    );
}

#[test]
fn one_of_two_branches_is_executed() {
    check(
        |k| {
            let result = k.var(element());
            for limit in [3, 30] {
                let test = element().is_greater(limit).any();
                k.if_else(&test, |k| k.set(result, result + 100), |k| k.set(result, result + 1000));
            }
            result
        },
        |index| index + 1100,
    );
}

#[test]
fn halves_have_signs() {
    check(
        |k| {
            let value = k.var((element() << 16) + 0xfffe);
            let (low, high) = (k.var(value.half(0)), k.var(value.half(1)));
            k.var(low + high)
        },
        |index| index.wrapping_sub(2),
    );
}

#[test]
fn printed_values_are_observed() {
    struct Printed(Vec<(u8, Vector)>);
    impl Observer for Printed {
        fn executed(&mut self, _: Event) {}
        fn printed(&mut self, qpu: u8, _: u32, vector: &Vector) {
            self.0.push((qpu, *vector));
        }
    }
    let mut k = Kernel::new();
    k.for_(0, 2, 1, |k, i| k.print(element() + i));
    let code = k.finish();
    let compiled =
        [sequential::compile(&code).unwrap(), scheduled::compile(&code, &Hints::default()).unwrap()];
    for instructions in compiled {
        let mut memory: Vec<u8> = [0u32, 2, 1, 2].iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut printed = Printed(Vec::new());
        let program = Program::new(&instructions);
        Machine::new(&program, &[0, 8]).run_observed(&mut memory, 10_000, &mut printed).unwrap();
        printed.0.sort_unstable();
        let vector = |turn: u32| std::array::from_fn(|index| index as u32 + turn);
        assert_eq!(printed.0, [(0, vector(0)), (0, vector(1)), (1, vector(0)), (1, vector(1))]);
    }
}
