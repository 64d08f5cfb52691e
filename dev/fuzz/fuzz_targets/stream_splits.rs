//! Processes a message with any cipher, kernel and split into pieces, then again after a seek and after a reset. Each result must equal the
//! result of the reference implementation.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use lockstep_core::backend::Device;
use lockstep_modes::{Cipher, CipherKey, Direction};
use lockstep_planner::{Planner, Selection};
use lockstep_modes::stream::{CipherStream, Padding};
use lockstep_core::{Block, Error};
use lockstep_cpu::{Cpu, CpuOptions};
use lockstep_reference as reference;

/// One planner for each available kernel that supports passes.
static PLANNERS: LazyLock<Vec<Arc<Planner>>> = LazyLock::new(|| {
    let device: Arc<dyn Device> = Arc::new(Cpu::new(&CpuOptions { threads: Some(1) }));
    let kernels = device.kernels().iter().filter(|info| info.missing.is_none());
    kernels
        .map(|info| {
            let selection = Selection { device: None, kernel: Some(info.name.into()) };
            Arc::new(Planner::new(vec![Arc::clone(&device)], &selection).expect("it runs here"))
        })
        .collect()
});

fuzz_target!(|input: &[u8]| {
    let _ = run(Unstructured::new(input));
});

fn run(mut u: Unstructured<'_>) -> Result<()> {
    let planner = Arc::clone(u.choose(&PLANNERS)?);
    let cipher = *u.choose(&Cipher::ALL)?;
    let direction = if u.arbitrary()? { Direction::Encrypt } else { Direction::Decrypt };
    let padding = if cipher.takes_padding() && u.arbitrary()? { Padding::Pkcs7 } else { Padding::None };
    let key_len = *u.choose(if cipher == Cipher::Xts { &[32, 64, 64] } else { &[16usize, 24, 32] })?;
    let Ok(key) = CipherKey::new(cipher, u.bytes(key_len)?) else { return Ok(()) };
    let iv: Block = u.arbitrary()?;
    let cuts: [u8; 6] = u.arbitrary()?;
    let seek: Option<u8> = u.arbitrary()?;
    let data = u.take_rest();
    let data = &data[..data.len().min(match cipher {
        Cipher::Cfb1 => 40,
        Cipher::Cfb8 => 300,
        _ => 3000,
    })];

    let mut stream =
        CipherStream::new(planner, cipher, direction, padding, key.clone(), &iv).expect("its key");
    let found = feed(&mut stream, data, &cuts);
    let expected = expected(cipher, direction, padding, &key, &iv, data);
    assert_eq!(found.clone().ok(), expected, "{cipher:?} {direction:?} {padding:?}: {found:?}");
    if let Err(error) = found {
        assert!(matches!(error, Error::Padding | Error::NotWholeBlocks { .. } | Error::DataLength { .. }));
    }
    assert!(matches!(stream.update(&[0], &mut [0; 64]), Err(Error::Order { .. })), "it has ended");

    if let (Some(at), Some(expected)) = (seek, expected) {
        let at = usize::from(at).min(data.len());
        let at = if cipher == Cipher::Xts { (at & !15).min((data.len() - 16) & !15) } else { at };
        match stream.seek(&iv, at as u64) {
            Ok(()) => assert_eq!(feed(&mut stream, &data[at..], &cuts), Ok(expected[at..].to_vec())),
            Err(_) => assert!(!matches!(cipher, Cipher::Ctr | Cipher::Xts)),
        }
        stream.reset(&iv);
        assert_eq!(feed(&mut stream, data, &[255]), Ok(expected));
    }
    Ok(())
}

fn feed(stream: &mut CipherStream, mut data: &[u8], cuts: &[u8]) -> lockstep_core::Result<Vec<u8>> {
    let mut output = Vec::new();
    for &cut in cuts.iter().cycle().take(100) {
        if data.is_empty() {
            break;
        }
        let (piece, rest) = data.split_at(usize::from(cut).min(data.len()));
        data = rest;
        let mut place = vec![0; stream.output_len(piece.len())];
        let len = stream.update(piece, &mut place)?;
        output.extend(&place[..len]);
    }
    let mut place = vec![0; stream.output_len(data.len())];
    let len = stream.update(data, &mut place)?;
    output.extend(&place[..len]);
    let mut last = [0; 32];
    let len = stream.finish(&mut last)?;
    output.extend(&last[..len]);
    Ok(output)
}

/// The result of the reference implementation; `None` if the message is invalid.
fn expected(
    cipher: Cipher,
    direction: Direction,
    padding: Padding,
    key: &CipherKey,
    iv: &Block,
    data: &[u8],
) -> Option<Vec<u8>> {
    let aes = &reference::Aes::new(key.data().bytes());
    let encrypts = direction == Direction::Encrypt;
    let padded = padding == Padding::Pkcs7;
    let padded_data = if padded && encrypts { reference::padding::pkcs7_pad(data) } else { data.to_vec() };
    let data = &padded_data[..];
    if cipher.takes_padding() && data.len() % 16 != 0 || cipher == Cipher::Xts && data.len() < 16 {
        return None;
    }
    let output = match cipher {
        Cipher::Ecb if encrypts => reference::ecb::encrypt(aes, data),
        Cipher::Ecb => reference::ecb::decrypt(aes, data),
        Cipher::Cbc if encrypts => reference::cbc::encrypt(aes, iv, data),
        Cipher::Cbc => reference::cbc::decrypt(aes, iv, data),
        Cipher::Pcbc if encrypts => reference::pcbc::encrypt(aes, iv, data),
        Cipher::Pcbc => reference::pcbc::decrypt(aes, iv, data),
        Cipher::Cfb128 if encrypts => reference::cfb::encrypt128(aes, iv, data),
        Cipher::Cfb128 => reference::cfb::decrypt128(aes, iv, data),
        Cipher::Cfb8 if encrypts => reference::cfb::encrypt8(aes, iv, data),
        Cipher::Cfb8 => reference::cfb::decrypt8(aes, iv, data),
        Cipher::Cfb1 if encrypts => reference::cfb::encrypt1(aes, iv, data, 8 * data.len()),
        Cipher::Cfb1 => reference::cfb::decrypt1(aes, iv, data, 8 * data.len()),
        Cipher::Ofb => reference::ofb::apply(aes, iv, data),
        Cipher::Ctr => reference::ctr::apply(aes, iv, data),
        Cipher::Xts => {
            let tweak = &reference::Aes::new(key.tweak()?.bytes());
            if encrypts {
                reference::xts::encrypt(aes, tweak, iv, data)
            } else {
                reference::xts::decrypt(aes, tweak, iv, data)
            }
        }
    };
    if padded && !encrypts { reference::padding::pkcs7_unpad(&output) } else { Some(output) }
}
