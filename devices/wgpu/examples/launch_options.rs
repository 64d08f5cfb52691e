//! Measures the speed of the kernels of a device, from host to host, and compares it with that of the same transfers without a kernel.
//!
//! ```text
//! cargo run --release -p lockstep-wgpu --example launch_options -- DEVICE [LARGEST_BYTES [KERNEL]]
//! ```
//!
//! The environment variables WIDE (0 or 1) and CHUNK (a number of bytes) set the options of the same names. The time of a run is the
//! interval from submission to completion, and each printed time is the median of several runs after a warm-up. The time of the first
//! run of a kernel, which includes opening the device and compiling the program, is printed separately. A few blocks of each output are
//! compared with those of the reference implementation.

use std::sync::Arc;
use std::time::Instant;

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Task, Tweak};
use lockstep_core::{Key, KeySize, Result};
use lockstep_reference::{Aes, cbc, ctr, ecb};
use lockstep_testkit::suite::random_bytes;
use lockstep_wgpu::{LaunchOptions, Overhead, WgpuBackend, WgpuDevice};

const PASSES: [Pass; 7] = [
    Pass::Ctr,
    Pass::EcbEncrypt,
    Pass::EcbDecrypt,
    Pass::CbcDecrypt,
    Pass::Cfb128Decrypt,
    Pass::XtsEncrypt,
    Pass::Ghash,
];

/// The number of runs, and the limit in seconds for the time of all runs.
const RUNS: usize = 9;
const SECONDS: f64 = 2.0;

/// The median time of a call in seconds.
fn time(mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    call()?;
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || (times.len() < RUNS && start.elapsed().as_secs_f64() < SECONDS) {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn run(
    device: &WgpuDevice,
    kernel: KernelId,
    pass: Pass,
    key: &Key,
    input: &[u8],
    output: &mut [u8],
) -> Result<()> {
    let mut state = [0x24; 16];
    let tweak = pass.is_xts().then_some(Tweak { key, position: 0 });
    let data = if pass.is_read_only() { Data::read_only(input) } else { Data::copy(input, output)? };
    let mut segments = [Segment { key, tweak, state: &mut state, data }];
    device.submit(kernel, Task::Pass(pass, &mut segments).into())?.wait()
}

/// Compares the last blocks of the output with the reference implementation. Only for passes in which these blocks depend only on
/// nearby input; `None` for others.
fn is_right(pass: Pass, key: &[u8], input: &[u8], output: &[u8]) -> Option<bool> {
    let aes = Aes::new(key);
    let start = input.len().saturating_sub(4096) / 16 * 16;
    let tail = &input[start..];
    let expected = match pass {
        Pass::Ctr => {
            let counter = u128::from_be_bytes([0x24; 16]).wrapping_add(start as u128 / 16);
            ctr::apply(&aes, &counter.to_be_bytes(), tail)
        }
        Pass::EcbEncrypt => ecb::encrypt(&aes, tail),
        Pass::EcbDecrypt => ecb::decrypt(&aes, tail),
        Pass::CbcDecrypt if start > 0 => {
            cbc::decrypt(&aes, &input[start - 16..start].try_into().expect("16 bytes"), tail)
        }
        _ => return None,
    };
    Some(output[start..] == expected)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, rest @ ..] = &args[..] else {
        return Err("usage: launch_options DEVICE [LARGEST_BYTES [KERNEL]]".into());
    };
    let largest: usize = rest.first().map_or(Ok(64 << 20), |text| text.parse())?;
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<usize>().ok());
    let options =
        LaunchOptions { wide: number("WIDE").map(|wide| wide == 1), chunk: number("CHUNK"), buffer: None };
    let start = Instant::now();
    let found = WgpuBackend.find();
    println!("found devices in {:.3} s", start.elapsed().as_secs_f64());
    let device = (found.devices.into_iter())
        .find(|device| device.id().to_string() == *name)
        .ok_or_else(|| found.missing.map_or(format!("no device {name}"), |missing| missing.to_string()))?;
    let device = Arc::new(device.with_launches(options));
    println!("{}", device.description());
    let input = random_bytes(largest);
    let mut output = vec![0; largest];
    let sizes: Vec<usize> =
        (12..=30).step_by(2).map(|bits| 1 << bits).filter(|&size| size <= largest).collect();
    let head: Vec<String> = sizes.iter().map(|size| format!("{:>8}", format!("{}K", size >> 10))).collect();
    println!("{:34}{}", "MB/s", head.join(""));

    let key_bytes = random_bytes(16);
    let key = Key::new(&key_bytes)?;
    let mut cells = String::new();
    for &len in &sizes {
        let seconds = time(|| {
            let mut state = [0; 16];
            let data = Data::copy(&input[..len], &mut output[..len])?;
            let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data }];
            device.overhead(Overhead::Copy, &mut segments)?.wait()
        })?;
        if input[..len] != output[..len] {
            return Err("the copy differs from the input".into());
        }
        cells += &format!("{:8.1}", len as f64 / seconds / 1e6);
    }
    println!("{:34}{cells}", "wgpu/copy");
    for (number, info) in device.kernels().iter().enumerate() {
        if let Some(why) = &info.missing {
            println!("{}: {why}", info.name);
            continue;
        }
        if rest.get(1).is_some_and(|only| only != info.name) {
            continue;
        }
        let kernel = KernelId(number as u16);
        for pass in PASSES {
            for size in [KeySize::Aes128, KeySize::Aes256] {
                let key_bytes = random_bytes(size.bytes());
                let key = Key::new(&key_bytes)?;
                let start = Instant::now();
                run(&device, kernel, pass, &key, &input[..16], &mut output[..16])?;
                let first = start.elapsed().as_secs_f64();
                let mut cells = String::new();
                for &len in &sizes {
                    let (input, output) = (&input[..len], &mut output[..len]);
                    let seconds = time(|| run(&device, kernel, pass, &key, input, output))?;
                    if is_right(pass, &key_bytes, input, output) == Some(false) {
                        return Err(format!("{} {pass:?}: {len} bytes are WRONG", info.name).into());
                    }
                    cells += &format!("{:8.1}", len as f64 / seconds / 1e6);
                }
                let what = format!("{} {pass:?}-{}", info.name, size.bits());
                println!("{what:34}{cells}   first {first:.3} s");
            }
        }
    }
    Ok(())
}
