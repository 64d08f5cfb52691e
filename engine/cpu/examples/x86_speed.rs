//! Measures every pass of every x86-64 kernel on one thread, in GB/s: `cargo run --release --example x86_speed [filter...]`.
//!
//! The passes work in place, on data that stay in the caches. Each figure is the median of several rounds. If the environment variable
//! `BEST` is set, each figure is that of the best round instead, which is useful on a busy machine.

#[cfg(target_arch = "x86_64")]
fn main() {
    x86::main();
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("this processor is not an x86-64");
}

#[cfg(target_arch = "x86_64")]
#[path = "harness/mod.rs"]
mod harness;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::hint::black_box;
    use std::time::Duration;

    use lockstep_cpu::kernel::{Block, Kernel, LANES, Lane, Span};
    use lockstep_cpu::vectors::{AesNi, Vaes256, Vaes512};

    use crate::harness;

    const SIZES: [usize; 5] = [16, 256, 1 << 10, 16 << 10, 1 << 20];
    const ROUNDS: usize = 9;
    const ROUND: Duration = Duration::from_millis(8);

    /// The speed of a call in bytes per nanosecond. The call processes `bytes` bytes.
    fn speed(bytes: usize, mut call: impl FnMut()) -> f64 {
        let times = harness::alternate(ROUNDS, ROUND, &mut [&mut call]).remove(0);
        let part = if std::env::var_os("BEST").is_some() { 0.0 } else { 0.5 };
        bytes as f64 / harness::quantile(times, part)
    }

    struct Table {
        kernel: &'static str,
        filters: Vec<String>,
    }

    impl Table {
        fn row(&self, pass: &str, mut call: impl FnMut(&mut [u8])) {
            let name = format!("{} {pass}", self.kernel);
            if !harness::matches(&name, &self.filters) {
                return;
            }
            print!("{name:34}");
            for size in SIZES {
                let mut data = vec![1; size];
                print!("{:8.2}", speed(size, || call(black_box(&mut data))));
            }
            println!();
        }

        /// A single figure.
        fn figure(&self, pass: &str, unit: &str, figure: impl FnOnce() -> f64) {
            let name = format!("{} {pass}", self.kernel);
            if harness::matches(&name, &self.filters) {
                println!("{name:34}{:8.2} {unit}", figure());
            }
        }
    }

    fn chains<K: Kernel>(kernel: K, schedules: &[K::Schedule], count: usize, len: usize) -> f64 {
        let mut data = vec![0; count * len];
        let mut registers = vec![Block::default(); count];
        speed(count * len, || {
            let mut lanes: Vec<_> = data
                .chunks_exact_mut(len)
                .zip(&mut registers)
                .enumerate()
                .map(|(i, (data, register))| Lane {
                    schedule: &schedules[i % schedules.len()],
                    register,
                    data: Span::in_place(data),
                })
                .collect();
            kernel.cbc_encrypt(&mut lanes);
        })
    }

    fn kernel<K: Kernel>(filters: &[String]) {
        let Some(kernel) = K::detect() else {
            println!("{}: not on this processor", K::NAME);
            return;
        };
        let table = Table { kernel: K::NAME, filters: filters.to_vec() };
        print!("{:34}", "GB/s");
        SIZES.iter().for_each(|size| print!("{size:8}"));
        println!();
        for bits in [128, 256] {
            let key = kernel.expand(&[7; 32][..bits / 8]);
            let mut r: Block = [3; 16];
            table.row(&format!("ecb-{bits} encrypt"), |data| kernel.ecb(&key, true, Span::in_place(data)));
            table.row(&format!("ecb-{bits} decrypt"), |data| kernel.ecb(&key, false, Span::in_place(data)));
            table.row(&format!("ctr-{bits}"), |data| kernel.ctr(&key, &mut r, Span::in_place(data)));
            table.row(&format!("ctr32-{bits}"), |data| kernel.ctr32(&key, &mut r, Span::in_place(data)));
            table.row(&format!("cbc-{bits} decrypt"), |data| {
                kernel.cbc_decrypt(&key, &mut r, Span::in_place(data));
            });
            table.row(&format!("cfb-{bits} decrypt"), |data| {
                kernel.cfb128_decrypt(&key, &mut r, Span::in_place(data));
            });
            table.row(&format!("xts-{bits} encrypt"), |data| {
                kernel.xts(&key, true, &mut r, Span::in_place(data));
            });
            table.row(&format!("xts-{bits} decrypt"), |data| {
                kernel.xts(&key, false, &mut r, Span::in_place(data));
            });
            table.row(&format!("cbc-{bits} encrypt, one message"), |data| {
                let data = Span::in_place(data);
                kernel.cbc_encrypt(&mut [Lane { schedule: &key, register: &mut r, data }]);
            });
            let own: Vec<_> = (0..64).map(|i| kernel.expand(&[i; 32][..bits / 8])).collect();
            for (count, len) in [(64, 65536), (64, 1024), (64, 64), (8, 65536)] {
                let pass = format!("cbc-{bits} {count} x {len}");
                table.figure(&format!("{pass}, one key"), "GB/s", || chains(kernel, &own[..1], count, len));
                table.figure(&format!("{pass}, own keys"), "GB/s", || chains(kernel, &own, count, len));
            }
            table.figure(&format!("expand-{bits}"), "ns", || {
                1.0 / speed(1, || drop(black_box(kernel.expand(black_box(&[7; 32][..bits / 8])))))
            });
            for count in [1, 8, LANES] {
                let keys: Vec<_> = own[..count].iter().collect();
                let mut blocks = vec![[0; 16]; count];
                table.figure(&format!("encrypt_each-{bits} of {count}"), "ns", || {
                    1.0 / speed(1, || kernel.each(&keys, true, black_box(&mut blocks)))
                });
            }
        }
        let hash_key = kernel.hash_key(&[9; 16]);
        let mut state = [5; 16];
        table.row("ghash", |data| kernel.ghash(&hash_key, &mut state, data));
        table.figure("hash_key", "ns", || {
            1.0 / speed(1, || drop(black_box(kernel.hash_key(black_box(&[9; 16])))))
        });
        println!();
    }

    pub(crate) fn main() {
        let filters: Vec<String> = std::env::args().skip(1).collect();
        kernel::<Vaes512>(&filters);
        kernel::<Vaes256>(&filters);
        kernel::<AesNi>(&filters);
    }
}
