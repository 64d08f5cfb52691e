//! Opens messages of GCM and CCM with every kernel, fused and composed. The results for valid messages must equal the reference, and the
//! output of invalid messages must be zeroed.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use lockstep_core::backend::Device;
use lockstep_core::data::Data;
use lockstep_modes::{Aead, AeadKey, Direction, Executor};
use lockstep_planner::{Planner, Selection};
use lockstep_modes::stream::Opener;
use lockstep_core::work::{AeadMessage, Status, Tag};
use lockstep_core::{Error, Key};
use lockstep_cpu::{Cpu, CpuOptions};
use lockstep_reference as reference;

/// One planner that chooses kernels itself, and one for each available kernel that supports passes.
static PLANNERS: LazyLock<Vec<Arc<Planner>>> = LazyLock::new(|| {
    let device: Arc<dyn Device> = Arc::new(Cpu::new(&CpuOptions { threads: Some(1) }));
    let names = device.kernels().iter().filter(|info| info.missing.is_none());
    let kernels = std::iter::once(None).chain(names.map(|info| Some(info.name.into())));
    kernels
        .map(|kernel| {
            let selection = Selection { device: None, kernel };
            Arc::new(Planner::new(vec![Arc::clone(&device)], &selection).expect("it runs here"))
        })
        .collect()
});

fuzz_target!(|input: &[u8]| {
    let _ = run(Unstructured::new(input));
});

fn run(mut u: Unstructured<'_>) -> Result<()> {
    let is_gcm: bool = u.arbitrary()?;
    let key_len = *u.choose(&[16usize, 24, 32])?;
    let key = u.bytes(key_len)?;
    let nonce_len = *u.choose(&[12usize, 12, 12, 0, 1, 7, 8, 11, 13, 14, 16, 33])?;
    let nonce = u.bytes(nonce_len)?;
    let tag_len = u.int_in_range(0..=17usize)?;
    let aad_len = u.int_in_range(0..=40u8)?;
    let aad = u.bytes(aad_len.into())?;
    let flip: Option<(u8, u8)> = u.arbitrary()?;
    let plain = u.take_rest();

    let aes = reference::Aes::new(key);
    let lawful = if is_gcm {
        matches!(tag_len, 4 | 8 | 12..=16) && nonce_len > 0
    } else {
        matches!(tag_len, 4 | 6 | 8 | 10 | 12 | 14 | 16) && (7..=13).contains(&nonce_len)
    };
    let (mut secret, mut tag) = if !lawful {
        (plain.to_vec(), vec![0; tag_len])
    } else if is_gcm {
        let (secret, tag) = reference::gcm::seal(&aes, nonce, aad, plain);
        (secret, tag[..tag_len].to_vec())
    } else {
        reference::ccm::seal(&aes, nonce, aad, plain, tag_len)
    };
    let mut good = lawful;
    if let Some((at, bits)) = flip {
        let all = secret.len() + tag.len();
        if all > 0 && bits != 0 {
            let at = usize::from(at) % all;
            let len = secret.len();
            if at < len {
                secret[at] ^= bits
            } else {
                tag[at - len] ^= bits
            }
            good = false;
        }
    }
    let key = Key::new(key).expect("a length of AES");
    for planner in PLANNERS.iter() {
        let mut data = secret.clone();
        let mut messages = [AeadMessage {
            key: &key,
            nonce,
            aad,
            data: Data::in_place(&mut data),
            tag: Tag::Expect(&tag),
            status: Status::Pending,
        }];
        let mode = if is_gcm { Aead::Gcm } else { Aead::Ccm };
        let outcome = mode.run_messages(&**planner, Direction::Decrypt, &mut messages);
        let [AeadMessage { status, .. }] = messages;
        if good {
            assert_eq!((outcome, status), (Ok(()), Status::Done));
            assert_eq!(data, plain);
        } else if lawful {
            assert_eq!((outcome, status), (Err(Error::AuthenticationFailed), Status::AuthenticationFailed));
            assert!(data.iter().all(|&byte| byte == 0));
        } else {
            assert!(matches!(
                outcome,
                Err(Error::TagLength { .. } | Error::IvLength { .. } | Error::TooLong { .. })
            ));
            assert_eq!(data, secret, "a refused call changes nothing");
        }
        if is_gcm && lawful {
            let executor: Arc<dyn Executor> = planner.clone();
            let key = AeadKey::new(Aead::Gcm, key.bytes()).expect("a length of AES");
            let mut stream = Opener::new(executor, &key, nonce, None).expect("a lawful nonce");
            stream.aad(aad).expect("in order");
            let mut data = secret.clone();
            data.chunks_mut(37).for_each(|piece| stream.update_in_place(piece).expect("in order"));
            assert_eq!(stream.finish(&tag).is_ok(), good);
        }
    }
    Ok(())
}
