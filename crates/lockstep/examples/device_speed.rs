//! The speed of the kernels on a device with its own memory, and of the transfers to and from it.
//!
//! ```text
//! cargo run --release -p lockstep-aes --example device_speed -- DEVICE OUT.json OUT.md [LARGEST_BYTES]
//! ```
//!
//! The data are random and in device memory. Timed is the interval from submission to completion, memory traffic
//! included: the median of several runs after one warm-up run. A few blocks of each kernel's output are compared with
//! the reference once for each size. Then host to host through page-locked memory, alternating with the same transfers
//! without a kernel.

use std::fmt::Write as _;
use std::time::Instant;

use lockstep::Engine;
use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::work::{Operation, Pass, Segment, Stream, Task, Tweak};
use lockstep_core::{Key, KeySize, Result};
use lockstep_reference::{Aes, cbc, ctr, ecb};
use lockstep_testkit::suite::random_bytes;

const PASSES: [Pass; 8] = [
    Pass::Ctr,
    Pass::EcbEncrypt,
    Pass::EcbDecrypt,
    Pass::CbcDecrypt,
    Pass::Cfb128Decrypt,
    Pass::XtsEncrypt,
    Pass::XtsDecrypt,
    Pass::Ghash,
];

/// Number of runs whose median is reported, and the maximum time for them in seconds.
const RUNS: usize = 9;
const SECONDS: f64 = 2.0;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Median seconds of a call.
fn time(mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    call()?;
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || (times.len() < RUNS && start.elapsed().as_secs_f64() < SECONDS) {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(median(times))
}

struct Bench<'a> {
    device: &'a dyn Device,
    from: DeviceSlice,
    to: DeviceSlice,
    input: &'a [u8],
}

impl Bench<'_> {
    fn run(&self, kernel: KernelId, pass: Pass, key: &Key, len: usize) -> Result<()> {
        let mut register = [0x24; 16];
        let tweak = pass.is_xts().then_some(Tweak { key, position: 0 });
        let data = Data::on_device(self.from.slice(0..len), self.to.slice(0..len))?;
        let mut segments = [Segment { key, tweak, state: &mut register, data }];
        self.device.submit(kernel, Task::Pass(pass, &mut segments).into())?.wait()
    }

    /// Compares the last blocks of the output with the reference; for passes in which these depend only on the input
    /// before them.
    fn is_right(&self, pass: Pass, key: &[u8], len: usize) -> Result<Option<bool>> {
        let aes = Aes::new(key);
        let start = len.saturating_sub(64) / 16 * 16;
        let input = &self.input[start..len];
        let expected = match pass {
            Pass::Ctr => {
                let counter = u128::from_be_bytes([0x24; 16]).wrapping_add(start as u128 / 16);
                ctr::apply(&aes, &counter.to_be_bytes(), input)
            }
            Pass::EcbEncrypt => ecb::encrypt(&aes, input),
            Pass::EcbDecrypt => ecb::decrypt(&aes, input),
            Pass::CbcDecrypt if start > 0 => {
                let before = self.input[start - 16..start].try_into().expect("16 bytes");
                cbc::decrypt(&aes, &before, input)
            }
            _ => return Ok(None),
        };
        let mut output = vec![0; len - start];
        let memory = self.device.memory().expect("it has some");
        memory.download(&self.to.slice(start..len), &mut output, Stream::default())?;
        Ok(Some(output == expected))
    }
}

/// Reads the arguments, measures, and writes both files, in this order; an example is one script.
fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, json_file, page_file, rest @ ..] = &args[..] else {
        return Err("usage: device_speed DEVICE OUT.json OUT.md [LARGEST_BYTES]".into());
    };
    let largest: usize = rest.first().map_or(Ok(1 << 30), |text| text.parse())?;
    let engine = Engine::builder().device(name).build()?;
    let device: &dyn Device = &*engine.devices()[0];
    let memory = device.memory().ok_or("the device has no memory")?;
    let input = random_bytes(largest);
    let (from, to) = (memory.allocate(largest)?, memory.allocate(largest)?);
    memory.upload(&input, &from.slice(), Stream::default())?;
    let bench = Bench { device, from: from.slice(), to: to.slice(), input: &input };

    let sizes: Vec<usize> =
        (12..=30).step_by(2).map(|bits| 1 << bits).filter(|&size| size <= largest).collect();
    let (mut page, mut rows) = (String::new(), Vec::new());
    writeln!(
        page,
        "# {}\n\nData on the device, GB/s (10^9 bytes), median; outputs checked.\n",
        device.description()
    )?;
    let head: Vec<String> = sizes.iter().map(|size| format!("{} KiB", size >> 10)).collect();
    writeln!(
        page,
        "| kernel | pass | key | {} |\n|---|---|---|{}",
        head.join(" | "),
        "--:|".repeat(sizes.len())
    )?;
    for (number, info) in device.kernels().iter().enumerate() {
        if let Some(why) = &info.missing {
            eprintln!("{}: {why}", info.name);
            continue;
        }
        let kernel = KernelId(number as u16);
        for pass in PASSES {
            for size in [KeySize::Aes128, KeySize::Aes256] {
                if device.cost(kernel, Operation::Pass(pass), size).is_none() {
                    continue;
                }
                let key_bytes = random_bytes(size.bytes());
                let key = Key::new(&key_bytes)?;
                let mut cells = Vec::new();
                for &len in &sizes {
                    let seconds = time(|| bench.run(kernel, pass, &key, len))?;
                    if bench.is_right(pass, &key_bytes, len)? == Some(false) {
                        return Err(format!("{} {pass:?} {size:?}: {len} bytes are WRONG", info.name).into());
                    }
                    let rate = len as f64 / seconds / 1e9;
                    cells.push(format!("{rate:.2}"));
                    rows.push(format!(
                        "{{\"kernel\":\"{}\",\"pass\":\"{pass:?}\",\"bits\":{},\"bytes\":{len},\"seconds\":{seconds:e}}}",
                        info.name,
                        size.bits()
                    ));
                }
                writeln!(page, "| {} | {pass:?} | {} | {} |", info.name, size.bits(), cells.join(" | "))?;
                eprintln!("{} {pass:?} {}: {}", info.name, size.bits(), cells.join(" "));
            }
        }
    }

    // Host to host: encryption, compared with the transfers alone.
    let key = Key::new(&random_bytes(16))?;
    let len = largest.min(256 << 20);
    let pinned = [memory.allocate_pinned(len)?, memory.allocate_pinned(len)?];
    pinned[0].lock().copy_from_slice(&input[..len]);
    let kernel = KernelId(0);
    let transfer = |pass| -> Result<()> {
        let mut register = [0x24; 16];
        let data = Data::pinned(pinned[0].slice(0..len), pinned[1].slice(0..len))?;
        let mut segments = [Segment { key: &key, tweak: None, state: &mut register, data }];
        device.submit(kernel, Task::Pass(pass, &mut segments).into())?.wait()
    };
    let seconds = time(|| transfer(Pass::Ctr))?;
    let rate = len as f64 / seconds / 1e9;
    writeln!(
        page,
        "\nHost to host through page-locked memory, {} MiB, CTR-128: {rate:.2} GB/s each way.",
        len >> 20
    )?;
    rows.push(format!("{{\"pinned\":\"Ctr\",\"bytes\":{len},\"seconds\":{seconds:e}}}"));
    let up = time(|| {
        let host = pinned[0].lock();
        memory.upload(&host, &bench.from.slice(0..len), Stream::default())
    })?;
    let down = time(|| {
        let mut host = pinned[1].lock();
        memory.download(&bench.to.slice(0..len), &mut host, Stream::default())
    })?;
    let (up_rate, down_rate) = (len as f64 / up / 1e9, len as f64 / down / 1e9);
    writeln!(
        page,
        "Plain copies of as much, one way at a time: {up_rate:.2} GB/s there, {down_rate:.2} GB/s back."
    )?;
    rows.push(format!("{{\"copy\":\"there\",\"bytes\":{len},\"seconds\":{up:e}}}"));
    rows.push(format!("{{\"copy\":\"back\",\"bytes\":{len},\"seconds\":{down:e}}}"));
    std::fs::write(json_file, format!("[\n{}\n]\n", rows.join(",\n")))?;
    std::fs::write(page_file, page)?;
    Ok(())
}
