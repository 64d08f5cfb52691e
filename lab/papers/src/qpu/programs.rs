//! Small programs that the thesis measured in its appendix: sums of arrays (Table 7.1), and products in the field of AES (Tables
//! 7.2 and 7.3).
//!
//! The uniforms are the number of the QPU; the number of QPUs; the addresses of two arrays and of their sums or products; and the number
//! of words of an array.

use lockstep_qpu::compiler::{Code, sequential};
use lockstep_qpu::kernels::naive::galois_multiply;
use lockstep_qpu::lang::{Int, Kernel, Var, element, uniform};
use lockstep_qpu::sim::{Machine, Program};

use super::Error;

/// The access of a program to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// DMA loads and stores. The program waits for each of them.
    Blocking,
    /// DMA loads and stores. The program waits for each load, and for a store only before the next store.
    BlockingLoads,
    /// The program requests the next vector from the texture unit in advance. It waits for a store only before the next store.
    Ahead,
}

/// Appends the operations that compute a value from two values.
type Operation = fn(&mut Kernel, Var<Int>, Var<Int>) -> Var<Int>;

/// The programs of Table 7.1.
pub(super) fn sums(access: Access) -> Code {
    over_arrays(access, |k, left, right| k.var(left + right))
}

/// The programs of Table 7.2.
pub(super) fn products(access: Access) -> Code {
    over_arrays(access, counted_product)
}

/// The programs of Table 7.2 with the product of Table 7.3. The second array determines the number of steps.
pub(super) fn products_by_bits(access: Access) -> Code {
    over_arrays(access, any_product)
}

/// The programs of Table 7.3. They compute one product for each vector, and do not access memory.
pub(super) fn multiplication(of: Multiplication) -> Code {
    let mut k = Kernel::new();
    let [_, _, _, words] = std::array::from_fn(|_| k.var(uniform()));
    // `byte` has values from 0 to 255, the largest of which needs all eight steps. `number` has values from 0 to 3, as in MixColumns.
    let byte = k.var(element().mul24(17));
    let number = k.var(element() & 3);
    let sum = k.var::<Int>(0);
    over_vectors(&mut k, words, |k, _| {
        let product = match of {
            Multiplication::Any => any_product(k, number, byte),
            Multiplication::Exchanged => any_product(k, byte, number),
            Multiplication::Small => galois_multiply(k, number, byte),
        };
        k.set(sum, sum ^ product);
    });
    k.finish()
}

/// The programs of Table 7.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplication {
    /// The product of any bytes. There is one step for each bit of the largest byte.
    Any,
    /// [`Multiplication::Any`] with exchanged operands. There is one step for each bit of the largest number, which is at most 3.
    Exchanged,
    /// The product of a number from 0 to 3 and a byte, without a loop.
    Small,
}

/// The product in the field of AES. Each step processes one bit of the second operand.
fn any_product(k: &mut Kernel, left: Var<Int>, right: Var<Int>) -> Var<Int> {
    let (left, right) = (k.var(left), k.var(right));
    let product = k.var::<Int>(0);
    k.while_(&right.is_greater(0).any(), |k| {
        k.where_((right & 1).is_not(0), |k| k.set(product, product ^ left));
        let before = k.var(left);
        k.set(left, left << 1);
        k.where_((before & 0x80).is_not(0), |k| k.set(left, left ^ 0x11b));
        k.set(right, right >> 1);
    });
    product
}

/// The product in the field of AES in eight steps. Conditions are comparisons with a constant, as in the thesis's product for decryption.
fn counted_product(k: &mut Kernel, left: Var<Int>, right: Var<Int>) -> Var<Int> {
    let (left, right) = (k.var(left), k.var(right));
    let product = k.var::<Int>(0);
    k.for_(0, 8, 1, |k, _| {
        k.where_((right & 1).is(1), |k| k.set(product, product ^ left));
        let before = k.var(left);
        k.set(left, left << 1);
        k.where_((before & 0x80).is(0x80), |k| k.set(left, left ^ 0x11b));
        k.set(right, right >> 1);
    });
    product
}

/// A loop that loads vectors of two arrays, and stores the result of an operation on them.
fn over_arrays(access: Access, operation: Operation) -> Code {
    let mut k = Kernel::new();
    let [a, b, c, words] = std::array::from_fn(|_| k.var(uniform()));
    let start = k.var(k.me() << 4);
    match access {
        Access::Blocking | Access::BlockingLoads => {
            let [a, b, c]: [Var<Int>; 3] = [a, b, c].map(|pointer| k.var(pointer + (start << 2)));
            over_vectors(&mut k, words, |k, i| {
                let left = k.load::<Int>(a + (i << 2));
                let right = k.load::<Int>(b + (i << 2));
                let result = operation(k, left, right);
                let to = c + (i << 2);
                match access {
                    Access::Blocking => k.store_and_wait(result, to),
                    _ => k.store(result, to),
                }
            });
        }
        Access::Ahead => {
            let offset = k.var((start + element()) << 2);
            let [a, b, c]: [Var<Int>; 3] = [a, b, c].map(|pointer| k.var(pointer + offset));
            let increment = k.var(k.qpus() << 4);
            k.gather(a);
            k.gather(b);
            over_vectors(&mut k, words, |k, i| {
                k.gather(a + ((i + increment) << 2));
                k.gather(b + ((i + increment) << 2));
                let left = k.receive::<Int>();
                let right = k.receive::<Int>();
                let result = operation(k, left, right);
                k.store(result, c + (i << 2));
            });
            // Receives the vectors that were requested in advance.
            for _ in 0..2 {
                k.receive::<Int>();
            }
        }
    }
    k.finish()
}

/// A loop over vectors. `body` gets the index of the vector's first word.
fn over_vectors(k: &mut Kernel, words: Var<Int>, body: impl FnOnce(&mut Kernel, Var<Int>)) {
    let increment = k.var(k.qpus() << 4);
    k.for_(0, words, increment, body);
}

/// Numbers of iterations of the two runs whose difference gives the clocks of an iteration.
const TURNS: [u32; 2] = [10, 30];

/// The address of the first array.
const ARRAYS: u32 = 4096;

/// Number of instructions of a program.
pub(super) fn instructions(code: &Code) -> Result<usize, Error> {
    sequential::compile(code).map(|all| all.len()).map_err(|error| Error::Kernel(error.to_string()))
}

/// Clocks of an iteration of the program's loop, in which each QPU processes one vector.
pub(super) fn clocks_of_turn(code: &Code, qpus: u32) -> Result<f64, Error> {
    let instructions = sequential::compile(code).map_err(|error| Error::Kernel(error.to_string()))?;
    let program = Program::new(&instructions);
    let clocks = |turns: u32| {
        // The memory must also contain the vectors that the last iterations request in advance.
        let bytes = 64 * qpus * (turns + 2);
        let mut memory = vec![0; (ARRAYS + 3 * bytes) as usize];
        // Each word of the arrays contains one byte. All bytes of the second array are 255.
        let arrays = memory[ARRAYS as usize..].chunks_exact_mut(4);
        arrays.zip(0u8..=255).for_each(|(word, value)| word[0] = value);
        memory[(ARRAYS + bytes) as usize..].chunks_exact_mut(4).for_each(|word| word[0] = 0xff);
        let uniforms: Vec<u32> = (0..qpus).map(|qpu| 64 * qpu).collect();
        for (qpu, at) in (0..qpus).zip(&uniforms) {
            let words = [qpu, qpus, ARRAYS, ARRAYS + bytes, ARRAYS + 2 * bytes, 16 * qpus * turns];
            for (place, word) in memory[*at as usize..].chunks_exact_mut(4).zip(words) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        }
        let run = Machine::new(&program, &uniforms).run(&mut memory, u64::MAX);
        run.map(|run| run.clocks).map_err(|fault| Error::Kernel(fault.to_string()))
    };
    let [short, long] = TURNS;
    Ok((clocks(long)? - clocks(short)?) as f64 / f64::from(long - short))
}
