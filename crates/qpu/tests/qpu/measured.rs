//! Small programs that the thesis measured, by its compiler's scheme: Tables 7.1 to 7.3. Its times are for 1.6 or 1.0 million values,
//! which are 100 000 or 62 500 vectors, at 250 MHz.

use lockstep_qpu::compiler::{Code, sequential};
use lockstep_qpu::lang::{Int, Kernel, Var, element, uniform};
use lockstep_qpu::sim::{Machine, Program};

/// Milliseconds for 100 000 vectors, from the difference of two lengths.
fn milliseconds(code: &Code, qpus: u32) -> f64 {
    let program = Program::new(&sequential::compile(code).unwrap());
    let clocks = |vectors: u32| {
        let bytes = 64 * (vectors + 2 * qpus);
        let mut memory = vec![0; 4096 + 3 * bytes as usize];
        let uniforms: Vec<u32> = (0..qpus).map(|qpu| 64 * qpu).collect();
        for (qpu, at) in (0..qpus).zip(&uniforms) {
            let words = [qpu, qpus, 4096, 4096 + bytes, 4096 + 2 * bytes, 16 * vectors];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            memory[*at as usize..*at as usize + bytes.len()].copy_from_slice(&bytes);
        }
        let run = Machine::new(&program, &uniforms).run(&mut memory, u64::MAX);
        run.unwrap_or_else(|fault| panic!("{fault}")).clocks
    };
    // Multiples of all numbers of QPUs here.
    let vectors = 120;
    (clocks(3 * vectors) - clocks(vectors)) as f64 / f64::from(2 * vectors) * 100_000.0 / 250e3
}

fn check(code: &Code, measured: &[(u32, f64)], tolerance: f64) {
    for (qpus, expected) in measured {
        let found = milliseconds(code, *qpus);
        println!("{qpus} QPUs: {found:.1} ms, measured {expected}");
        assert!(
            (found / expected - 1.0).abs() <= tolerance,
            "{qpus} QPUs: {found:.1} ms, measured {expected}"
        );
    }
}

/// A loop over vectors, whose body gets the offset of the vector in bytes.
fn over_vectors(k: &mut Kernel, words: Var<Int>, body: impl FnOnce(&mut Kernel, Var<Int>)) {
    let increment = k.var(k.qpus() << 4);
    k.for_(0, words, increment, body);
}

/// Sums of two arrays by blocking loads and stores.
#[test]
fn table_7_1_blocking() {
    let mut k = Kernel::new();
    let [a, b, c, words] = std::array::from_fn(|_| k.var(uniform()));
    let offset = k.var((k.me() << 4) << 2);
    let [a, b, c]: [Var<Int>; 3] = [a, b, c].map(|pointer| k.var(pointer + offset));
    over_vectors(&mut k, words, |k, i| {
        let left = k.load::<Int>(a + (i << 2));
        let right = k.load::<Int>(b + (i << 2));
        k.store_and_wait(left + right, c + (i << 2));
    });
    // With one QPU, the loop is not known well enough: it has to take 21 instructions fewer for the measured 270 ms.
    check(&k.finish(), &[(3, 185.0), (6, 184.0), (12, 184.0)], 0.05);
}

/// The same with requests to the texture unit ahead, and without waiting for stores.
#[test]
fn table_7_1_ahead() {
    let mut k = Kernel::new();
    let [a, b, c, words] = std::array::from_fn(|_| k.var(uniform()));
    let offset = k.var(((k.me() << 4) + element()) << 2);
    let [a, b, c]: [Var<Int>; 3] = [a, b, c].map(|pointer| k.var(pointer + offset));
    let increment = k.var(k.qpus() << 4);
    k.gather(a);
    k.gather(b);
    over_vectors(&mut k, words, |k, i| {
        k.gather(a + ((i + increment) << 2));
        k.gather(b + ((i + increment) << 2));
        let left = k.receive::<Int>();
        let right = k.receive::<Int>();
        k.store(left + right, c + (i << 2));
    });
    for _ in 0..2 {
        k.receive::<Int>();
    }
    check(&k.finish(), &[(2, 63.0), (6, 63.0), (12, 63.0)], 0.05);
}
