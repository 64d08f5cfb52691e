//! Measures the nanoseconds of an inline call: `cargo run --release -p lockstep-cpu --example inline [filter...]`.
//!
//! The calls work in place on one buffer, as in `openssl speed`: each call loads the data that the previous call has stored.
//! The figure is the best of several rounds. Only rows whose names contain all filters are measured. An argument such as
//! `widest=Ssse3` limits the width of the registers that `cpu/soft` uses.

use std::hint::black_box;
use std::time::Duration;

use lockstep_core::work::Pass;
use lockstep_cpu::inline::{Block, InlineGcm, InlineKernel, InlineKey, Span};
use lockstep_cpu::soft::{Soft, Width};

#[path = "harness/mod.rs"]
mod harness;

const SIZES: [usize; 9] = [16, 32, 48, 64, 80, 128, 256, 1024, 16384];
const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(4);

/// Nanoseconds of a call.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    harness::quantile(harness::alternate(ROUNDS, ROUND, &mut [&mut call]).remove(0), 0.0)
}

struct Table {
    filters: Vec<String>,
}

impl Table {
    fn row(&self, name: &str, sizes: &[usize], mut call: impl FnMut(&mut [u8])) {
        if !harness::matches(name, &self.filters) {
            return;
        }
        print!("{name:38}");
        for size in sizes {
            let mut data = vec![1; *size];
            print!("{:9.1}", nanoseconds(|| call(black_box(&mut data))));
        }
        println!();
    }

    fn rates(&self, name: &str, mut call: impl FnMut(&mut [u8])) {
        if !harness::matches(name, &self.filters) {
            return;
        }
        print!("{name:38}");
        for size in [1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20, 64 << 20] {
            let mut data = vec![1; size];
            print!("{:9.2}", size as f64 / nanoseconds(|| call(black_box(&mut data))));
        }
        println!(" GB/s at 1, 4, 16, 64 KiB, 1, 64 MiB");
    }
}

fn keys(table: &Table, kernel: InlineKernel, bits: usize) {
    let key = InlineKey::new(kernel, &vec![7; bits / 8]).expect("a length of AES");
    let tweak_key = InlineKey::new(kernel, &vec![8; bits / 8]).expect("a length of AES");
    let name = |mode: &str| format!("{} AES-{bits} {mode}", kernel.name());
    let mut register: Block = [3; 16];
    let row = |mode: &str, call: &mut dyn FnMut(&mut [u8])| table.row(&name(mode), &SIZES, call);
    row("ECB", &mut |data| key.ecb_encrypt(Span::in_place(data)));
    row("ECB decryption", &mut |data| key.ecb_decrypt(Span::in_place(data)));
    row("CBC", &mut |data| key.cbc_encrypt(&mut register, Span::in_place(data)));
    row("CBC decryption", &mut |data| key.cbc_decrypt(&mut register, Span::in_place(data)));
    for (mode, pass) in [
        ("CFB128", Pass::Cfb128Encrypt),
        ("CFB8", Pass::Cfb8Encrypt),
        ("CFB8 decryption", Pass::Cfb8Decrypt),
        ("CFB1", Pass::Cfb1Encrypt),
        ("OFB", Pass::Ofb),
    ] {
        row(mode, &mut |data| key.serial(pass, &mut register, 8 * data.len(), Span::in_place(data)));
    }
    row("CFB128 decryption", &mut |data| key.cfb128_decrypt(&mut register, Span::in_place(data)));
    row("CTR", &mut |data| key.ctr(&mut register, Span::in_place(data)));
    row("CTR less a byte", &mut |data| {
        let short = data.len() - 1;
        key.ctr(&mut register, Span::in_place(&mut data[..short]));
    });
    row("CTR32", &mut |data| key.ctr32(&mut register, Span::in_place(data)));
    row("XTS with tweak", &mut |data| {
        let mut tweak = register;
        tweak_key.encrypt_block(&mut tweak);
        key.xts_encrypt(&mut tweak, Span::in_place(data));
    });
    row("XTS decryption with tweak", &mut |data| {
        let mut tweak = register;
        tweak_key.encrypt_block(&mut tweak);
        key.xts_decrypt(&mut tweak, Span::in_place(data));
    });
    row("CBC-MAC", &mut |data| key.cbc_mac(&mut register, data));
    let mut gcm = InlineGcm::new(kernel, &vec![7; bits / 8]).expect("a length of AES");
    row("GCM seal", &mut |data| {
        let done = gcm.start(true, &[5; 12]) && gcm.aad(&[6; 13]) && gcm.update(Span::in_place(data));
        assert!(done && black_box(gcm.finish_seal()).is_some());
    });
    let own_key = vec![9; bits / 8];
    row("GCM seal with key", &mut |data| {
        let done = gcm.set_key(black_box(&own_key))
            && gcm.start(true, &[5; 12])
            && gcm.aad(&[6; 13])
            && gcm.update(Span::in_place(data));
        assert!(done && black_box(gcm.finish_seal()).is_some());
    });
    row("GCM update", &mut |data| {
        assert!(gcm.start(true, &[5; 12]) && gcm.update(Span::in_place(data)));
    });
    table.rates(&name("rate GCM"), |data| {
        assert!(gcm.start(true, &[5; 12]) && gcm.update(Span::in_place(data)));
    });
    table.rates(&name("rate ECB"), |data| key.ecb_encrypt(Span::in_place(data)));
    table.rates(&name("rate CTR"), |data| key.ctr(&mut register, Span::in_place(data)));
    table.rates(&name("rate CBC decryption"), |data| key.cbc_decrypt(&mut register, Span::in_place(data)));
    table.rates(&name("rate XTS"), |data| key.xts_encrypt(&mut register, Span::in_place(data)));
    table.rates(&name("rate XTS decryption"), |data| key.xts_decrypt(&mut register, Span::in_place(data)));
}

fn main() {
    let mut filters: Vec<String> = std::env::args().skip(1).collect();
    filters.retain(|filter| {
        let Some(widest) = filter.strip_prefix("widest=") else { return true };
        let found = Width::ALL.iter().find(|width| format!("{width:?}") == widest);
        Soft::limit(*found.expect("a width of cpu/soft"));
        false
    });
    let table = Table { filters };
    println!("{:38}{}", "ns per call", SIZES.map(|size| format!("{size:9}")).concat());
    for kernel in InlineKernel::all() {
        for bits in [128, 256] {
            keys(&table, kernel, bits);
        }
    }
}
