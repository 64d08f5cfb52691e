//! Properties that hold on every device: a stream in any split gives the result of one call, a batch gives the results of
//! its messages, and seeking gives the same result as processing the data before the position. Random cases are compared
//! with the oracle, and a failing case is shrunk to the smallest one that fails.

use std::sync::Arc;

use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, Status, Tag};
use lockstep_core::{Block, Error, Key};
use lockstep_modes::cmac::{CmacMessage, cmac};
use lockstep_modes::stream::{CipherStream, CmacStream, MessageLengths, Opener, Padding, Pieces, Sealer};
use lockstep_modes::xts::MAX_DATA_UNIT;
use lockstep_modes::{Aead, AeadKey, Cipher, CipherKey, Direction, Executor, Message};
use lockstep_planner::Planner;
use lockstep_reference as reference;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Runs a property on this number of random cases. The cases are the same in every run, unless `LOCKSTEP_TEST_SEED` sets
/// another seed.
fn run<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let mut seed = [7; 32];
    if let Some(number) = std::env::var("LOCKSTEP_TEST_SEED").ok().and_then(|text| text.parse::<u64>().ok()) {
        seed[..8].copy_from_slice(&number.to_le_bytes());
    }
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    if let Err(error) = runner.run(&strategy, property) {
        panic!("{error}");
    }
}

fn bytes(len: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), len)
}

/// Bytes of a key: 16, 24 or 32.
fn key_bytes() -> impl Strategy<Value = Vec<u8>> {
    select(vec![16usize, 24, 32]).prop_flat_map(bytes)
}

/// An IV, often one whose counter wraps soon.
fn iv() -> impl Strategy<Value = Block> {
    (any::<Block>(), select(vec![0usize, 4, 8, 12, 16]), 0u8..8).prop_map(|(mut iv, ones, before)| {
        iv[16 - ones..].fill(0xff);
        if ones > 0 {
            iv[15] -= before;
        }
        iv
    })
}

/// Lengths of pieces, which are used in turn: mostly short or near a multiple of the block size, sometimes long.
fn pieces() -> impl Strategy<Value = Vec<usize>> {
    let piece =
        prop_oneof![6 => 0usize..40, 2 => select(vec![15usize, 16, 17, 32, 48, 64]), 1 => 100usize..2000];
    vec(piece, 1..12)
}

/// Splits data into at most 200 pieces, whose lengths are those of `pieces` in turn, and one piece with the remaining
/// bytes.
fn split<'d>(mut data: &'d [u8], pieces: &[usize]) -> Vec<&'d [u8]> {
    let mut parts = Vec::new();
    for &piece in pieces.iter().cycle().take(200) {
        if data.is_empty() {
            break;
        }
        let (part, rest) = data.split_at(piece.min(data.len()));
        parts.push(part);
        data = rest;
    }
    parts.push(data);
    parts
}

fn direction() -> impl Strategy<Value = Direction> {
    select(vec![Direction::Encrypt, Direction::Decrypt])
}

fn cipher_key(cipher: Cipher, material: &[u8; 64], size: usize) -> CipherKey {
    match cipher {
        // There is no XTS-192.
        Cipher::Xts if size == 16 => CipherKey::new(cipher, &material[..32]),
        Cipher::Xts => CipherKey::new(cipher, material),
        _ => CipherKey::new(cipher, &material[..size]),
    }
    .expect("random halves differ")
}

/// Key material whose halves differ, as XTS requires.
fn material() -> impl Strategy<Value = [u8; 64]> {
    any::<[u8; 64]>().prop_map(|mut material| {
        material[16] = !material[0];
        material[32] = !material[0];
        material
    })
}

/// A length near `len` that the cipher accepts.
fn lawful(cipher: Cipher, padding: Padding, direction: Direction, len: usize) -> usize {
    match cipher {
        Cipher::Xts => len.max(16),
        Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc
            if padding == Padding::None || direction == Direction::Decrypt =>
        {
            len & !15
        }
        // CFB8 and CFB1 encrypt 16 and 128 blocks for each block of data, so the data are short.
        Cipher::Cfb8 => len.min(400),
        Cipher::Cfb1 => len.min(50),
        _ => len,
    }
}

/// Processes a whole message with the oracle.
fn oracle(cipher: Cipher, direction: Direction, key: &CipherKey, iv: &Block, data: &[u8]) -> Vec<u8> {
    let aes = &reference::Aes::new(key.data().bytes());
    match (cipher, direction) {
        (Cipher::Ecb, Direction::Encrypt) => reference::ecb::encrypt(aes, data),
        (Cipher::Ecb, Direction::Decrypt) => reference::ecb::decrypt(aes, data),
        (Cipher::Cbc, Direction::Encrypt) => reference::cbc::encrypt(aes, iv, data),
        (Cipher::Cbc, Direction::Decrypt) => reference::cbc::decrypt(aes, iv, data),
        (Cipher::Pcbc, Direction::Encrypt) => reference::pcbc::encrypt(aes, iv, data),
        (Cipher::Pcbc, Direction::Decrypt) => reference::pcbc::decrypt(aes, iv, data),
        (Cipher::Cfb128, Direction::Encrypt) => reference::cfb::encrypt128(aes, iv, data),
        (Cipher::Cfb128, Direction::Decrypt) => reference::cfb::decrypt128(aes, iv, data),
        (Cipher::Cfb8, Direction::Encrypt) => reference::cfb::encrypt8(aes, iv, data),
        (Cipher::Cfb8, Direction::Decrypt) => reference::cfb::decrypt8(aes, iv, data),
        (Cipher::Cfb1, Direction::Encrypt) => reference::cfb::encrypt1(aes, iv, data, 8 * data.len()),
        (Cipher::Cfb1, Direction::Decrypt) => reference::cfb::decrypt1(aes, iv, data, 8 * data.len()),
        (Cipher::Ofb, _) => reference::ofb::apply(aes, iv, data),
        (Cipher::Ctr, _) => reference::ctr::apply(aes, iv, data),
        (Cipher::Xts, _) => {
            let tweak = reference::Aes::new(key.tweak().expect("XTS has two keys").bytes());
            match direction {
                Direction::Encrypt => reference::xts::encrypt(aes, &tweak, iv, data),
                Direction::Decrypt => reference::xts::decrypt(aes, &tweak, iv, data),
            }
        }
    }
}

/// The executor of streams.
fn executor_of(planner: &Arc<Planner>) -> Arc<dyn Executor> {
    planner.clone()
}

/// Passes pieces to a stream; every third piece is processed in place if the mode supports it.
fn feed(stream: &mut CipherStream, in_place: bool, parts: &[&[u8]]) -> Result<Vec<u8>, Error> {
    let mut output = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        if in_place && i % 3 == 2 {
            let mut place = part.to_vec();
            stream.update_in_place(&mut place)?;
            output.extend(&place);
        } else {
            let mut place = vec![0; stream.output_len(part.len())];
            let len = stream.update(part, &mut place)?;
            output.extend(&place[..len]);
        }
    }
    let mut last = [0; 32];
    let len = stream.finish(&mut last)?;
    output.extend(&last[..len]);
    Ok(output)
}

/// A stream of any cipher, direction, padding and key size gives the result of one call of the oracle, for any split of the data.
pub fn ciphers_in_any_split(planner: &Arc<Planner>, cases: u32) {
    let strategy = (
        (select(Cipher::ALL.to_vec()), direction(), any::<bool>(), select(vec![16usize, 24, 32])),
        material(),
        iv(),
        bytes(0..600),
        pieces(),
    );
    run(cases, strategy, |((cipher, direction, padded, size), material, iv, mut data, pieces)| {
        let padding = if padded && cipher.takes_padding() { Padding::Pkcs7 } else { Padding::None };
        data.resize(lawful(cipher, padding, direction, data.len()), 0x3c);
        let key = cipher_key(cipher, &material, size);
        let begin = |direction| {
            CipherStream::new(executor_of(planner), cipher, direction, padding, key.clone(), &iv).unwrap()
        };
        if padding == Padding::Pkcs7 {
            let expected =
                oracle(cipher, Direction::Encrypt, &key, &iv, &reference::padding::pkcs7_pad(&data));
            let made = feed(&mut begin(Direction::Encrypt), false, &split(&data, &pieces)).unwrap();
            prop_assert_eq!(&made, &expected);
            let back = feed(&mut begin(Direction::Decrypt), false, &split(&made, &pieces)).unwrap();
            prop_assert_eq!(back, data.clone());
            // Random blocks sometimes end in valid padding. The oracle determines whether they do.
            let mut noise = data;
            noise.resize((noise.len() & !15).max(16), 1);
            let plain = oracle(cipher, Direction::Decrypt, &key, &iv, &noise);
            let unpadded = reference::padding::pkcs7_unpad(&plain);
            let found = feed(&mut begin(Direction::Decrypt), false, &split(&noise, &pieces));
            prop_assert_eq!(found, unpadded.ok_or(Error::Padding));
        } else {
            let expected = oracle(cipher, direction, &key, &iv, &data);
            let found = feed(&mut begin(direction), cipher.is_stream(), &split(&data, &pieces)).unwrap();
            prop_assert_eq!(found, expected);
        }
        Ok(())
    });
}

/// Seeks several times in one stream: to any byte in CTR, to any block in XTS.
pub fn seeking_is_skipping(planner: &Arc<Planner>, cases: u32) {
    let seeks = vec((any::<Index>(), pieces()), 1..6);
    let strategy = (any::<bool>(), select(vec![16usize, 24, 32]), material(), iv(), bytes(32..500), seeks);
    run(cases, strategy, |(xts, size, material, iv, data, seeks)| {
        let cipher = if xts { Cipher::Xts } else { Cipher::Ctr };
        let key = cipher_key(cipher, &material, size);
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let expected = oracle(cipher, direction, &key, &iv, &data);
            let mut stream =
                CipherStream::new(executor_of(planner), cipher, direction, Padding::None, key.clone(), &iv)
                    .unwrap();
            for (at, pieces) in &seeks {
                // XTS needs at least one block after the position.
                let at = if xts { 16 * at.index(data.len() / 16) } else { at.index(data.len()) };
                stream.seek(&iv, at as u64).unwrap();
                let found = feed(&mut stream, !xts, &split(&data[at..], pieces)).unwrap();
                prop_assert_eq!(&found, &expected[at..]);
            }
        }
        Ok(())
    });
}

/// Seeks to positions that are too large to be reached by processing data. The test computes the expected counter and tweak from the
/// position.
pub fn seeking_far(planner: &Arc<Planner>, cases: u32) {
    let strategy = (select(vec![16usize, 32]), material(), iv(), any::<u64>(), 0u32..64, bytes(1..80));
    // Positions are smaller on slow devices, such as the mock device: its oracle processes all blocks before the position.
    let least = if planner.devices().iter().any(|device| device.properties().slow) { 48 } else { 0 };
    run(cases, strategy, |(size, material, iv, position, shift, data)| {
        let position = position >> shift.max(least);
        let key = cipher_key(Cipher::Ctr, &material, size);
        let counter = u128::from_be_bytes(iv).wrapping_add(u128::from(position / 16)).to_be_bytes();
        let skip = (position % 16) as usize;
        let padded = [vec![0; skip], data.clone()].concat();
        let expected = oracle(Cipher::Ctr, Direction::Encrypt, &key, &counter, &padded).split_off(skip);
        let encrypt = Direction::Encrypt;
        let mut stream =
            CipherStream::new(executor_of(planner), Cipher::Ctr, encrypt, Padding::None, key, &iv).unwrap();
        stream.seek(&iv, position).unwrap();
        prop_assert_eq!(feed(&mut stream, true, &[&data]).unwrap(), expected);

        let key = cipher_key(Cipher::Xts, &material, size);
        let mut data = data;
        data.resize(16, 0x77);
        let mut stream =
            CipherStream::new(executor_of(planner), Cipher::Xts, encrypt, Padding::None, key.clone(), &iv)
                .unwrap();
        if position & !15 > MAX_DATA_UNIT {
            let refused = Error::TooLong { mode: "XTS", what: "data", limit: MAX_DATA_UNIT };
            prop_assert_eq!(stream.seek(&iv, position & !15), Err(refused));
        }
        // The last valid position is the last block of the longest data unit.
        let position = (position % MAX_DATA_UNIT) & !15;
        let aes = reference::Aes::new(key.data().bytes());
        let tweak = reference::Aes::new(key.tweak().expect("XTS has two keys").bytes()).encrypt(iv);
        let tweak = power_of_alpha(tweak, position / 16);
        let input = std::array::from_fn(|i| data[i] ^ tweak[i]);
        let expected: Vec<u8> = aes.encrypt(input).iter().zip(&tweak).map(|(a, b)| a ^ b).collect();
        stream.seek(&iv, position).unwrap();
        prop_assert_eq!(feed(&mut stream, false, &[&data]).unwrap(), expected);
        Ok(())
    });
}

/// `tweak` times alpha^n. The oracle's multiplication by alpha is a matrix over GF(2), whose columns are the images of
/// single bits. Its powers are computed by repeated squaring.
fn power_of_alpha(tweak: Block, mut n: u64) -> Block {
    let image = |matrix: &[u128], vector: u128| -> u128 {
        (0..128).filter(|bit| vector >> bit & 1 == 1).fold(0, |sum, bit| sum ^ matrix[bit])
    };
    let step = |bit: u32| u128::from_le_bytes(reference::xts::mul_alpha((1u128 << bit).to_le_bytes()));
    let mut matrix: Vec<u128> = (0..128).map(step).collect();
    let mut value = u128::from_le_bytes(tweak);
    while n > 0 {
        if n & 1 == 1 {
            value = image(&matrix, value);
        }
        matrix = matrix.iter().map(|&column| image(&matrix, column)).collect();
        n >>= 1;
    }
    value.to_le_bytes()
}

/// Adds associated data and then data to a message in pieces of these lengths, alternately in place and out of place. Returns the output.
fn feed_pieces<const SEALS: bool>(
    stream: &mut Pieces<SEALS>,
    (aad, aad_pieces): (&[u8], &[usize]),
    (data, pieces): (&[u8], &[usize]),
) -> Vec<u8> {
    split(aad, aad_pieces).into_iter().for_each(|part| stream.aad(part).unwrap());
    let mut output = Vec::new();
    for (i, part) in split(data, pieces).into_iter().enumerate() {
        let mut place = part.to_vec();
        if i % 2 == 0 {
            stream.update_in_place(&mut place).unwrap();
        } else {
            stream.update(part, &mut place).unwrap();
        }
        output.extend(place);
    }
    output
}

/// GCM gives the oracle's results with any length of nonce, tag, associated data and data, in any split.
pub fn gcm_in_any_split(planner: &Arc<Planner>, cases: u32) {
    // GCM computes the first counter block in another way for nonces of 12 bytes.
    let nonce = prop_oneof![bytes(12), bytes(1..40)];
    // Some lengths are near 16 and 32 KiB, where streams start another piece.
    let data = prop_oneof![8 => bytes(0..300), 1 => bytes(16_300..16_500), 1 => bytes(32_700..33_000)];
    let oracle = |aes: &_, nonce: &[u8], aad: &[u8], plain: &[u8], tag_len| {
        let (secret, tag) = reference::gcm::seal(aes, nonce, aad, plain);
        (secret, tag[..tag_len].to_vec())
    };
    let tag_lengths = [4, 8, 12, 13, 14, 15, 16];
    aead_in_any_split(planner, cases, Aead::Gcm, (nonce, bytes(0..100), data), tag_lengths, oracle);
}

/// CCM gives the oracle's results with every length of nonce and tag, in any split.
pub fn ccm_in_any_split(planner: &Arc<Planner>, cases: u32) {
    // From 0xff00 bytes on, the encoded length of the associated data is longer.
    let aad = prop_oneof![8 => bytes(0..100), 1 => bytes(0xfef0..0xff10)];
    let tag_lengths = [4, 6, 8, 10, 12, 14, 16];
    let messages = (bytes(7..14), aad, bytes(0..300));
    aead_in_any_split(planner, cases, Aead::Ccm, messages, tag_lengths, reference::ccm::seal);
}

/// Messages in any split give the ciphertext and the tag of the oracle, whose arguments are the key, the nonce, the associated data,
/// the plaintext and the length of the tag. A wrong tag is refused.
fn aead_in_any_split(
    planner: &Arc<Planner>,
    cases: u32,
    mode: Aead,
    (nonce, aad, data): (
        impl Strategy<Value = Vec<u8>>,
        impl Strategy<Value = Vec<u8>>,
        impl Strategy<Value = Vec<u8>>,
    ),
    tag_lengths: [usize; 7],
    oracle: impl Fn(&reference::Aes, &[u8], &[u8], &[u8], usize) -> (Vec<u8>, Vec<u8>),
) {
    let strategy = (key_bytes(), nonce, aad, data, pieces(), pieces(), any::<Index>());
    run(cases, strategy, |(key, nonce, aad, plain, aad_pieces, pieces, flip)| {
        let tag_len = *flip.get(&tag_lengths);
        let (secret, tag) = oracle(&reference::Aes::new(&key), &nonce, &aad, &plain, tag_len);
        let key = AeadKey::new(mode, &key).unwrap();
        let executor = executor_of(planner);
        let lengths = MessageLengths { aad: aad.len() as u64, data: plain.len() as u64, tag: tag_len };
        let lengths = (mode == Aead::Ccm).then_some(lengths);
        let (aad, pieces) = ((&aad[..], &aad_pieces[..]), &pieces[..]);
        let mut stream = Sealer::new(executor.clone(), &key, &nonce, lengths).unwrap();
        prop_assert_eq!(&feed_pieces(&mut stream, aad, (&plain, pieces)), &secret);
        let mut made = vec![0; tag_len];
        stream.finish(&mut made).unwrap();
        prop_assert_eq!(&made, &tag);

        let mut stream = Opener::new(executor.clone(), &key, &nonce, lengths).unwrap();
        prop_assert_eq!(&feed_pieces(&mut stream, aad, (&secret, pieces)), &plain);
        prop_assert_eq!(stream.finish(&made), Ok(()));

        // A tag with any wrong bit is refused.
        let bit = flip.index(8 * tag_len);
        made[bit / 8] ^= 1 << (bit % 8);
        let mut stream = Opener::new(executor, &key, &nonce, lengths).unwrap();
        feed_pieces(&mut stream, aad, (&secret, pieces));
        prop_assert_eq!(stream.finish(&made), Err(Error::AuthenticationFailed));
        Ok(())
    });
}

/// CMAC of a stream in any split, and CMAC of a batch, give the results of the oracle.
pub fn cmac_in_any_split(planner: &Arc<Planner>, cases: u32) {
    let strategy = vec((key_bytes(), bytes(0..200), pieces(), any::<Index>()), 1..20);
    run(cases, strategy, |messages| {
        let mut expected = Vec::new();
        for (key, data, pieces, flip) in &messages {
            let mac = reference::cmac::cmac(&reference::Aes::new(key), data);
            let stream = || {
                let mut stream = CmacStream::new(executor_of(planner), Key::new(key).unwrap());
                split(data, pieces).into_iter().for_each(|part| stream.update(part).unwrap());
                stream
            };
            prop_assert_eq!(stream().finish().unwrap(), mac);
            let len = 4 + flip.index(13);
            let mut short = mac[..len].to_vec();
            prop_assert_eq!(stream().verify(&short), Ok(()));
            let bit = flip.index(8 * len);
            short[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(stream().verify(&short), Err(Error::AuthenticationFailed));
            expected.push(mac);
        }
        let keys: Vec<_> = messages.iter().map(|(key, ..)| Key::new(key).unwrap()).collect();
        let mut macs = vec![[0; 16]; messages.len()];
        let mut batch: Vec<_> = messages
            .iter()
            .zip(&keys)
            .zip(&mut macs)
            .map(|(((_, data, ..), key), mac)| CmacMessage { key, data, mac })
            .collect();
        cmac(&**planner, &mut batch).unwrap();
        prop_assert_eq!(macs, expected);
        Ok(())
    });
}

/// Batches of messages of any length, in place or not; some messages share a key. The same messages are also processed in
/// two calls, split at a block boundary.
pub fn batches_of_anything(planner: &Arc<Planner>, cases: u32) {
    let message = (any::<Index>(), iv(), bytes(0..400), any::<bool>(), any::<Index>());
    let keys = vec((material(), select(vec![16usize, 24, 32])), 1..4);
    let strategy = (select(Cipher::ALL.to_vec()), direction(), keys, vec(message, 0..40));
    run(cases, strategy, |(cipher, direction, keys, messages)| {
        let keys: Vec<_> = keys.iter().map(|(material, size)| cipher_key(cipher, material, *size)).collect();
        let mut ivs = Vec::new();
        let mut inputs = Vec::new();
        let mut expected = Vec::new();
        for (key, iv, data, ..) in &messages {
            let mut data = data.clone();
            data.resize(lawful(cipher, Padding::None, direction, data.len()), 0x5d);
            expected.push(oracle(cipher, direction, key.get(&keys), iv, &data));
            ivs.push(*iv);
            inputs.push(data);
        }
        // One call, in which some messages are processed in place.
        let mut outputs = inputs.clone();
        let mut moved = ivs.clone();
        let mut batch: Vec<_> = messages
            .iter()
            .zip(&mut moved)
            .zip(inputs.iter().zip(&mut outputs))
            .map(|(((key, _, _, in_place, _), iv), (input, output))| {
                let data =
                    if *in_place { Data::in_place(output) } else { Data::copy(input, output).unwrap() };
                Message { key: key.get(&keys), iv, data }
            })
            .collect();
        cipher.run(&**planner, direction, &mut batch).unwrap();
        prop_assert_eq!(&outputs, &expected);
        if cipher == Cipher::Xts {
            return Ok(());
        }
        // Two calls: the first call leaves the chaining states of the messages in the IVs.
        let mut outputs = inputs.clone();
        let mut moved = ivs.clone();
        let cuts: Vec<_> = messages
            .iter()
            .zip(&inputs)
            .map(|((.., cut), data)| 16 * cut.index(data.len() / 16 + 1))
            .collect();
        for part in 0..2 {
            let mut batch: Vec<_> = messages
                .iter()
                .zip(&mut moved)
                .zip(outputs.iter_mut().zip(&cuts))
                .map(|(((key, ..), iv), (output, &cut))| {
                    let range = if part == 0 { 0..cut } else { cut..output.len() };
                    Message { key: key.get(&keys), iv, data: Data::in_place(&mut output[range]) }
                })
                .collect();
            cipher.run(&**planner, direction, &mut batch).unwrap();
        }
        prop_assert_eq!(&outputs, &expected);
        Ok(())
    });
}

/// Batches of GCM and CCM in which any message may be forged: exactly the forged messages are refused, and their output is
/// zeroed.
pub fn forgeries_among_others(planner: &Arc<Planner>, cases: u32) {
    let message = (
        key_bytes(),
        bytes(7..14),
        bytes(0..40),
        bytes(0..200),
        select(vec![0u8, 0, 1, 2, 3]),
        any::<Index>(),
    );
    let strategy = (any::<bool>(), vec(message, 0..20));
    run(cases, strategy, |(is_gcm, messages)| {
        let keys: Vec<_> = messages.iter().map(|(key, ..)| Key::new(key).unwrap()).collect();
        let mut aads = Vec::new();
        let mut datas = Vec::new();
        let mut tags = Vec::new();
        let mut outcomes = Vec::new();
        for (key, nonce, aad, plain, forgery, place) in &messages {
            let aes = reference::Aes::new(key);
            let tag_len = [4, 8, 12, 14, 16][place.index(5)];
            let (mut secret, mut tag) = if is_gcm {
                let (secret, tag) = reference::gcm::seal(&aes, nonce, aad, plain);
                (secret, tag[..tag_len].to_vec())
            } else {
                reference::ccm::seal(&aes, nonce, aad, plain, tag_len)
            };
            let mut aad = aad.clone();
            let target = match forgery {
                1 => &mut secret,
                2 => &mut aad,
                3 => &mut tag,
                _ => &mut Vec::new(),
            };
            let forged = !target.is_empty();
            if forged {
                let bit = place.index(8 * target.len());
                target[bit / 8] ^= 1 << (bit % 8);
            }
            outcomes.push(if forged { None } else { Some(plain.clone()) });
            aads.push(aad);
            datas.push(secret);
            tags.push(tag);
        }
        let mut batch: Vec<_> = messages
            .iter()
            .zip(&keys)
            .zip(aads.iter().zip(&mut datas).zip(&tags))
            .map(|(((_, nonce, ..), key), ((aad, data), tag))| AeadMessage {
                key,
                nonce,
                aad,
                data: Data::in_place(data),
                tag: Tag::Expect(tag),
                status: Status::Pending,
            })
            .collect();
        let mode = if is_gcm { Aead::Gcm } else { Aead::Ccm };
        let outcome = mode.run_messages(&**planner, Direction::Decrypt, &mut batch);
        let statuses: Vec<_> = batch.iter().map(|message| message.status).collect();
        drop(batch);
        let all_good = outcomes.iter().all(Option::is_some);
        prop_assert_eq!(outcome, if all_good { Ok(()) } else { Err(Error::AuthenticationFailed) });
        for ((data, status), expected) in datas.iter().zip(statuses).zip(outcomes) {
            match expected {
                Some(plain) => prop_assert_eq!((data, status), (&plain, Status::Done)),
                None => {
                    prop_assert_eq!(status, Status::AuthenticationFailed);
                    prop_assert!(data.iter().all(|&byte| byte == 0), "plaintext left over");
                }
            }
        }
        Ok(())
    });
}

/// Makes a module with a test for each property. The expression returns the planner, or `None` to skip the tests.
#[macro_export]
macro_rules! properties {
    ($name:ident, $planner:expr, $cases:expr) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            $crate::properties!(@tests $planner, $cases,
                ciphers_in_any_split seeking_is_skipping seeking_far gcm_in_any_split ccm_in_any_split
                cmac_in_any_split batches_of_anything forgeries_among_others);
        }
    };
    (@tests $planner:expr, $cases:expr, $($property:ident)*) => {
        $(
            #[test]
            fn $property() {
                if let Some(planner) = $planner {
                    $crate::properties::$property(&planner, $cases);
                }
            }
        )*
    };
}
