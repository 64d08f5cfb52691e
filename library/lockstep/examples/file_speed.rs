//! The speed of file encryption and decryption by number of threads, in GB/s of plaintext.
//!
//! `cargo run --release -p lockstep-aes --example file_speed -- [MIB] [FOLDER]`: encrypts a file of MIB MiB (default 1024)
//! in FOLDER (default /dev/shm, in memory) to /dev/null and to a file, and decrypts it in the same ways. Prints the
//! median of five runs, after one warm-up run.

use std::fs::{self, File};
use std::path::Path;
use std::time::Instant;

use lockstep::{Engine, FileKey, FileOptions, decrypt_file, encrypt_file};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mib: usize = arguments.next().map_or(Ok(1024), |mib| mib.parse())?;
    let folder = arguments.next().unwrap_or("/dev/shm".into());
    let folder = tempfile::Builder::new().prefix("lockstep-speed-").tempdir_in(folder)?;
    let (plain, cipher) = (folder.path().join("plain"), folder.path().join("cipher"));
    let (copy, null) = (folder.path().join("copy"), Path::new("/dev/null"));

    let mut source = File::create(&plain)?;
    let mebibyte: Vec<u8> = (0..1u32 << 20).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
    for _ in 0..mib {
        std::io::Write::write_all(&mut source, &mebibyte)?;
    }
    let bytes = (mib << 20) as f64;
    let key = FileKey::generate()?;
    let options = FileOptions { force: true, ..Default::default() };

    let cores = std::thread::available_parallelism()?.get();
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < cores).collect();
    counts.push(cores);
    counts.dedup();
    println!("{mib} MiB, GB/s");
    println!(
        "{:>8} {:>13} {:>13} {:>13} {:>13}",
        "threads", "enc to null", "enc to file", "dec to null", "dec to file"
    );
    for threads in counts {
        let engine = Engine::builder().threads(threads).build()?;
        let rate = |work: &dyn Fn() -> lockstep::Result<lockstep::Summary>| -> lockstep::Result<f64> {
            work()?;
            let mut seconds = Vec::new();
            for _ in 0..5 {
                let start = Instant::now();
                work()?;
                seconds.push(start.elapsed().as_secs_f64());
            }
            seconds.sort_by(f64::total_cmp);
            Ok(bytes / seconds[2] / 1e9)
        };
        let encrypt = |to: &Path| encrypt_file(&engine, &key, b"", &plain, to, options);
        let decrypt = |to: &Path| decrypt_file(&engine, &key, b"", &cipher, to, options);
        let rates = [
            rate(&|| encrypt(null))?,
            rate(&|| encrypt(&cipher))?,
            rate(&|| decrypt(null))?,
            rate(&|| decrypt(&copy))?,
        ];
        println!("{threads:>8} {:>13.2} {:>13.2} {:>13.2} {:>13.2}", rates[0], rates[1], rates[2], rates[3]);
    }
    assert_eq!(fs::metadata(&copy)?.len(), fs::metadata(&plain)?.len());
    Ok(())
}
