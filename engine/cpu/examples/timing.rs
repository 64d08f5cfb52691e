//! Measures whether the time of a kernel depends on secrets, with the method of dudect (Reparaz, Balasch, Verbauwhede: "Dude,
//! is my code constant time?", DATE 2017). It can find leaks, but cannot prove their absence.
//!
//!     cargo run --release -p lockstep-cpu --example timing [MEASUREMENTS]
//!
//! Each line of the output compares two classes of inputs, which are measured in random order: a fixed input, and random inputs.
//! Welch's t-test compares the mean times of both classes, first over all measurements and then over the measurements below several
//! percentiles, which exclude interrupts. The program prints the largest |t| of these tests. A value above 4.5 is evidence of a leak,
//! and a value above 10 is regarded as proof of a leak. The code of the last lines leaks on purpose. If these leaks are not detected,
//! too many disturbances occur on the machine, and the other lines have no meaning.

use std::hint::black_box;
use std::sync::Arc;

use lockstep_core::backend::Device;
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, Status, Tag};
use lockstep_core::{Block, Key};
use lockstep_cpu::kernel::{Kernel, OcbKey, OcbState, Span};
use lockstep_cpu::soft::Soft;
use lockstep_cpu::{Cpu, CpuOptions};
use lockstep_modes::{Aead, Direction};
use lockstep_planner::{Planner, Selection};
use lockstep_reference as reference;

fn main() {
    let count = match std::env::args().nth(1).map(|text| text.parse::<usize>()) {
        None => 200_000,
        Some(Ok(count)) if count >= 1000 => count,
        Some(_) => {
            eprintln!("usage: timing [MEASUREMENTS]    at least 1000");
            std::process::exit(2);
        }
    };
    println!("{count} measurements a line; largest |t|, beyond 4.5 is evidence, beyond 10 there is no doubt");
    kernel::<Soft>(count);
    #[cfg(target_arch = "x86_64")]
    {
        use lockstep_cpu::vectors::{AesNi, Vaes256, Vaes512};
        kernel::<AesNi>(count);
        kernel::<Vaes256>(count);
        kernel::<Vaes512>(count);
    }
    #[cfg(target_arch = "aarch64")]
    kernel::<lockstep_cpu::vectors::Armv8>(count);
    tag_check(None, count);
    for info in Cpu::new(&CpuOptions::default()).kernels().iter().filter(|info| info.missing.is_none()) {
        tag_check(Some(info.name), count);
        gcm_siv_seal(info.name, count);
    }
    controls(count);
}

/// Number of blocks of a pass. With this number, the time of a pass exceeds the resolution of the clock.
const BLOCKS: usize = 16;

fn kernel<K: Kernel>(count: usize) {
    let Some(kernel) = K::detect() else {
        println!("{:<14} cannot run on this processor", K::NAME);
        return;
    };
    let mut random = Random(1);
    measure(
        K::NAME,
        "expansion of keys",
        count,
        &mut random,
        |random, fixed| {
            if fixed { [0x5a; 32] } else { random.bytes() }
        },
        |key| {
            black_box(kernel.expand(black_box(key)));
        },
    );
    measure(
        K::NAME,
        "encryption under keys",
        count,
        &mut random,
        |random, fixed| {
            let key: [u8; 32] = if fixed { [0x5a; 32] } else { random.bytes() };
            kernel.expand(&key)
        },
        |schedule| {
            let mut data = [0x11; 16 * BLOCKS];
            kernel.ecb(schedule, true, Span::in_place(&mut data));
            black_box(data);
        },
    );
    let schedule = kernel.expand(&[7; 16]);
    let blocks = |random: &mut Random, fixed: bool| -> [u8; 16 * BLOCKS] {
        if fixed { [0; 16 * BLOCKS] } else { random.bytes() }
    };
    measure(K::NAME, "encryption of data", count, &mut random, blocks, |data| {
        let mut data = *data;
        kernel.ecb(&schedule, true, Span::in_place(&mut data));
        black_box(data);
    });
    measure(K::NAME, "decryption of data", count, &mut random, blocks, |data| {
        let mut data = *data;
        kernel.ecb(&schedule, false, Span::in_place(&mut data));
        black_box(data);
    });
    let hash_key = kernel.hash_key(&[0x42; 16]);
    measure(K::NAME, "GHASH of data", count, &mut random, blocks, |data| {
        let mut state = [0; 16];
        kernel.ghash(&hash_key, &mut state, data);
        black_box(state);
    });
    measure(K::NAME, "POLYVAL of data", count, &mut random, blocks, |data| {
        let mut state = [0; 16];
        kernel.polyval(&hash_key, &mut state, data, None);
        black_box(state);
    });
    let masks = OcbKey::new(&[0x42; 16]);
    for encrypts in [true, false] {
        let what = if encrypts { "OCB3 encryption of data" } else { "OCB3 decryption of data" };
        measure(K::NAME, what, count, &mut random, blocks, |data| {
            let mut data = *data;
            kernel.ocb(&schedule, &masks, &mut OcbState::default(), encrypts, Span::in_place(&mut data));
            black_box(data);
        });
    }
}

/// Compares the time of sealing with GCM-SIV for a fixed key and plaintext with the time for random keys and
/// plaintexts.
fn gcm_siv_seal(kernel: &str, count: usize) {
    let device: Arc<dyn Device> = Arc::new(Cpu::new(&CpuOptions { threads: Some(1) }));
    let selection = Selection { device: None, kernel: Some(kernel.into()) };
    let Ok(planner) = Planner::new(vec![device], &selection) else { return };
    let input = |random: &mut Random, fixed: bool| {
        let bytes: [u8; 32] = if fixed { [0x5a; 32] } else { random.bytes() };
        let data: [u8; 1040] = if fixed { [0; 1040] } else { random.bytes() };
        let key = Key::new(&bytes).expect("32 bytes");
        // Sealing this empty message computes the key schedule, so that its time is not measured.
        let mut tag = [0; 16];
        let mut message = [message(&key, &mut [], Tag::Write(&mut tag))];
        Aead::GcmSiv.run_messages(&planner, Direction::Encrypt, &mut message).expect("valid arguments");
        (key, data)
    };
    measure(kernel, "GCM-SIV under keys", count, &mut Random(5), input, |(key, data)| {
        let mut data = *data;
        let mut tag = [0; 16];
        let mut messages = [message(key, &mut data, Tag::Write(&mut tag))];
        black_box(Aead::GcmSiv.run_messages(&planner, Direction::Encrypt, &mut messages).is_err());
        black_box((data, tag));
    });
}

fn message<'d>(key: &'d Key, data: &'d mut [u8], tag: Tag<'d>) -> AeadMessage<'d> {
    AeadMessage { key, nonce: &[1; 12], aad: b"", data: Data::in_place(data), tag, status: Status::Pending }
}

/// Compares the times for tags whose first byte is wrong with the times for tags whose last byte is wrong.
fn tag_check(kernel: Option<&str>, count: usize) {
    let device: Arc<dyn Device> = Arc::new(Cpu::new(&CpuOptions { threads: Some(1) }));
    let selection = Selection { device: None, kernel: kernel.map(Into::into) };
    let planner = match Planner::new(vec![device], &selection) {
        Ok(planner) => planner,
        Err(error) => return println!("{error}"),
    };
    let key = Key::new(&[3; 16]).expect("16 bytes");
    let plain = [9; 48];
    let (secret, tag) = reference::gcm::seal(&reference::Aes::new(key.bytes()), &[1; 12], b"", &plain);
    let wrong = |random: &mut Random, first: bool| {
        let mut tag = tag;
        let flip = 1 << (random.next() % 8);
        tag[if first { 0 } else { 15 }] ^= flip;
        tag
    };
    let name = kernel.unwrap_or("auto");
    measure(name, "GCM's check of tags", count, &mut Random(2), wrong, |tag| {
        let mut data = [0; 48];
        data.copy_from_slice(&secret);
        let mut messages = [message(&key, &mut data, Tag::Expect(tag))];
        black_box(Aead::Gcm.run_messages(&planner, Direction::Decrypt, &mut messages).is_err());
    });
}

fn controls(count: usize) {
    let table = Table::new(&[7; 16]);
    let one = |random: &mut Random, fixed: bool| -> Block { if fixed { [0; 16] } else { random.bytes() } };
    measure("CONTROL", "AES by tables", count, &mut Random(3), one, |block| {
        table.evict();
        black_box(table.encrypt(black_box(*block)));
    });
    let expected = [0x77u8; 16];
    let wrong = |random: &mut Random, first: bool| {
        let mut tag = expected;
        tag[if first { 0 } else { 15 }] ^= 1 << (random.next() % 8);
        tag
    };
    measure("CONTROL", "comparison that stops early", count, &mut Random(4), wrong, |tag| {
        for _ in 0..8 {
            let mut equal = true;
            for (a, b) in black_box(tag).iter().zip(black_box(&expected)) {
                if black_box(a) != b {
                    equal = false;
                    break;
                }
            }
            black_box(equal);
        }
    });
}

/// AES with four tables of 1 KiB, as in the first code of Rijndael. It leaks on purpose: the addresses of the table lookups depend on
/// the data.
struct Table {
    tables: Box<[[u32; 256]; 4]>,
    round_keys: Vec<Block>,
}

impl Table {
    fn new(key: &[u8]) -> Self {
        // The S-box is an inversion, followed by an affine map (FIPS 197, 5.1.1).
        let double = |x: u8| (x << 1) ^ ((x >> 7) * 0x1b);
        let multiply = |x: u8, y: u8| {
            (0..8).rev().fold(0, |sum: u8, bit| double(sum) ^ if y >> bit & 1 == 1 { x } else { 0 })
        };
        let mut tables = Box::new([[0; 256]; 4]);
        for x in 0..=255u8 {
            let inverse = (0..=255).find(|&y| multiply(x, y) == 1).unwrap_or(0);
            let s = (1..5).fold(inverse, |sum, by| sum ^ inverse.rotate_left(by)) ^ 0x63;
            let column = u32::from_le_bytes([double(s), s, s, double(s) ^ s]);
            for (i, table) in tables.iter_mut().enumerate() {
                table[usize::from(x)] = column.rotate_left(8 * i as u32);
            }
        }
        Table { tables, round_keys: reference::Aes::new(key).round_keys().to_vec() }
    }

    /// Computes all rounds except the last one, which is not needed to show the leak.
    fn encrypt(&self, block: Block) -> [u32; 4] {
        let words = |block: &Block| -> [u32; 4] {
            std::array::from_fn(|i| {
                u32::from_le_bytes(block[4 * i..4 * i + 4].try_into().expect("four bytes"))
            })
        };
        let key = words(&self.round_keys[0]);
        let state = words(&block);
        let mut state: [u32; 4] = std::array::from_fn(|i| state[i] ^ key[i]);
        for round_key in &self.round_keys[1..self.round_keys.len() - 1] {
            let key = words(round_key);
            state = std::array::from_fn(|i| {
                (0..4).fold(key[i], |sum, row| {
                    sum ^ self.tables[row][(state[(i + row) % 4] >> (8 * row) & 0xff) as usize]
                })
            });
        }
        state
    }

    /// Evicts the tables from the caches, as other programs would.
    fn evict(&self) {
        #[cfg(target_arch = "x86_64")]
        for line in self.tables.as_flattened().chunks(16) {
            // SAFETY: flushing a line of valid memory changes only timing.
            unsafe { std::arch::x86_64::_mm_clflush(line.as_ptr().cast()) };
        }
    }
}

/// Measures `run` on inputs of both classes and prints the largest |t|.
fn measure<T>(
    name: &str,
    what: &str,
    count: usize,
    random: &mut Random,
    input: impl Fn(&mut Random, bool) -> T,
    run: impl Fn(&T),
) {
    const BATCH: usize = 2000;
    let mut times = Vec::with_capacity(count);
    let mut warm = false;
    while times.len() < count {
        // All inputs are generated first, so that their generation does not affect the measurement.
        let classes: Vec<bool> = (0..BATCH).map(|_| random.next() & 1 == 1).collect();
        let inputs: Vec<T> = classes.iter().map(|&fixed| input(random, fixed)).collect();
        for (input, &fixed) in inputs.iter().zip(&classes) {
            let start = clock();
            run(input);
            let end = clock();
            if warm {
                times.push((end.saturating_sub(start), fixed));
            }
        }
        warm = true;
    }
    let t = largest_t(&times);
    let verdict = match t {
        t if t > 10.0 => "LEAKS",
        t if t > 4.5 => "suspicious: measure again",
        _ => "",
    };
    let mut all: Vec<u64> = times.iter().map(|(time, _)| *time).collect();
    all.sort_unstable();
    println!("{name:<14} {what:<30} median {:>7} {UNIT}   |t| {t:>8.2}   {verdict}", all[all.len() / 2]);
}

/// The largest |t| of several tests: one over all times, and one over the times below each of several percentiles.
fn largest_t(times: &[(u64, bool)]) -> f64 {
    let mut sorted: Vec<u64> = times.iter().map(|(time, _)| *time).collect();
    sorted.sort_unstable();
    [0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0]
        .into_iter()
        .map(|part| {
            let most = sorted[((sorted.len() - 1) as f64 * part) as usize];
            welch(times.iter().filter(|(time, _)| *time <= most)).abs()
        })
        .fold(0.0, f64::max)
}

/// Welch's t of two samples.
fn welch<'t>(times: impl Iterator<Item = &'t (u64, bool)>) -> f64 {
    // Each class has its count, its mean, and the sum of the squared differences from the mean (Welford's method).
    let mut classes = [(0.0f64, 0.0f64, 0.0f64); 2];
    for &(time, fixed) in times {
        let (n, mean, squares) = &mut classes[usize::from(fixed)];
        *n += 1.0;
        let difference = time as f64 - *mean;
        *mean += difference / *n;
        *squares += difference * (time as f64 - *mean);
    }
    let [(n, mean, squares), (m, other, other_squares)] = classes;
    if n < 2.0 || m < 2.0 {
        return 0.0;
    }
    let error = (squares / (n - 1.0) / n + other_squares / (m - 1.0) / m).sqrt();
    if error == 0.0 { 0.0 } else { (mean - other) / error }
}

#[cfg(target_arch = "x86_64")]
const UNIT: &str = "ticks";
#[cfg(not(target_arch = "x86_64"))]
const UNIT: &str = "ns";

/// Reads the time stamp counter. The fences keep earlier and later instructions out of the measured interval.
#[cfg(target_arch = "x86_64")]
fn clock() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has both instructions, and neither touches memory.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn clock() -> u64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_nanos() as u64
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next() as u8)
    }
}
