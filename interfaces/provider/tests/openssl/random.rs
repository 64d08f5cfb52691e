//! Random scripts: calls in any order with any data. If the default provider succeeds, this provider returns the same
//! bytes; if it fails, this provider fails. A call that both refuse ends a script.
//!
//! The scripts contain no calls for which the result of the default provider is accidental: a change of the direction of
//! ECB, CBC and XTS without a new key (it uses the wrong key schedule) or in the middle of a GCM message, CTR with a
//! `num` that does not result from data (it outputs its buffer), and a CCM context after its message.

use proptest::prelude::*;

use crate::harness::{ALGORITHMS, Algorithm, Mode, bytes};
use crate::libcrypto::EVP_CTRL_AEAD_SET_TAG;
use crate::script::Call::*;
use crate::script::{Call, compare_until_failure, key_and_iv};

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        3 => 0..40usize,
        2 => (0..20usize).prop_map(|n| n * 16),
        2 => 0..600usize,
        1 => prop_oneof![Just(4096), Just(4095), Just(4097), Just(16384), Just(70_001)],
    ]
}

/// The data of an update. For XTS, the data are whole data units.
fn data(algorithm: &'static Algorithm) -> impl Strategy<Value = Vec<u8>> {
    (length(), any::<u64>()).prop_map(move |(n, seed)| {
        let n = if algorithm.max_test_len() < usize::MAX { n.min(600) } else { n };
        bytes(if algorithm.mode == Mode::Xts { n.max(16) } else { n }, seed)
    })
}

/// An init with any combination of direction, key and IV.
fn init(algorithm: &'static Algorithm) -> impl Strategy<Value = Call> {
    let (key, iv) = key_and_iv(algorithm.name());
    let keyed = algorithm.is_block() || matches!(algorithm.mode, Mode::Xts | Mode::Ocb);
    let takes_iv_once = matches!(algorithm.mode, Mode::Gcm | Mode::Ocb);
    // Without an IV, the default provider's OCB discards buffered bytes and continues the message.
    let needs_iv = algorithm.mode == Mode::Ocb;
    (-1..=1, any::<Option<u64>>(), any::<Option<u64>>()).prop_map(move |(way, key_seed, iv_seed)| {
        let iv_seed = iv_seed.or(needs_iv.then_some(1));
        let new_key = key_seed.map(|seed| bytes(key.len(), seed));
        let new_iv = iv_seed.filter(|_| !iv.is_empty()).map(|seed| bytes(iv.len(), seed));
        let same_way = (keyed && new_key.is_none()) || (takes_iv_once && new_iv.is_none());
        // After a new key in the middle of a message of GCM or OCB, the default provider continues with a zero counter. So a new key is
        // used only together with a new IV.
        let new_key = new_key.filter(|_| !takes_iv_once || new_iv.is_some());
        Init(if same_way { -1 } else { way }, new_key, new_iv)
    })
}

fn call(algorithm: &'static Algorithm) -> BoxedStrategy<Call> {
    let all = prop_oneof![
        8 => data(algorithm).prop_map(Update),
        1 => Just(Final),
        2 => init(algorithm),
        2 => Just(State),
        2 => Just(Copy),
    ];
    match algorithm.mode {
        Mode::Ecb | Mode::Cbc => {
            prop_oneof![
                8 => all,
                2 => any::<bool>().prop_map(Padding),
                1 => data(algorithm).prop_map(|data| Cipher(data[..data.len() / 16 * 16].to_vec())),
            ]
            .boxed()
        }
        Mode::Stream | Mode::Xts => {
            // Releases of OpenSSL treat any other `num` differently; state.rs tests the rule of this provider.
            let num = 0..=0;
            prop_oneof![
                8 => all,
                3 => data(algorithm).prop_map(InPlace),
                1 => data(algorithm).prop_map(Cipher),
                1 => num.prop_map(Num),
            ]
            .boxed()
        }
        Mode::Gcm => {
            prop_oneof![
                8 => all,
                2 => data(algorithm).prop_map(InPlace),
                3 => data(algorithm).prop_map(Aad),
                1 => (1..=16usize).prop_map(|n| SetTag(bytes(n, 1))),
                1 => (1..=16, any::<u8>()).prop_map(|(n, byte)| Control(EVP_CTRL_AEAD_SET_TAG, n, vec![byte; 16])),
                1 => Just(CipherEnd),
            ]
            .boxed()
        }
        Mode::Ocb => {
            prop_oneof![
                8 => all,
                3 => data(algorithm).prop_map(Aad),
                1 => Just(SetTag(bytes(16, 1))),
            ]
            .boxed()
        }
        Mode::Ccm => all.boxed(),
        Mode::Cts | Mode::Wrap | Mode::Siv => unreachable!("cts.rs, wrap.rs and siv.rs have their scripts"),
    }
}

/// A script that starts with all calls that its mode needs.
fn script(algorithm: &'static Algorithm) -> impl Strategy<Value = Vec<Call>> {
    let (key, iv) = key_and_iv(algorithm.name());
    (0..=1, prop::collection::vec(call(algorithm), 1..14)).prop_map(move |(way, calls)| {
        let iv = Some(iv.clone()).filter(|iv| !iv.is_empty());
        // The tag is requested at the end only. Before the end, the default provider returns the tag of the previous message, or the tag
        // that was set.
        let end = if matches!(algorithm.mode, Mode::Gcm | Mode::Ocb) { vec![Final, Tag(16)] } else { vec![] };
        [vec![Init(way, Some(key.clone()), iv)], calls, end].concat()
    })
}

/// A script of CCM: a random subset of the calls that a message needs, and calls after it.
fn ccm_script(algorithm: &'static Algorithm) -> impl Strategy<Value = Vec<Call>> {
    let (key, _) = key_and_iv(algorithm.name());
    let message =
        (6..=14usize, 0..=17, any::<[bool; 8]>(), data(algorithm), data(algorithm)).prop_map(move |all| {
            let (iv, tag, [way, no_length, no_aad, no_tag, wrong_length, one, in_place, copy], aad, data) =
                all;
            let way = i32::from(way);
            // A nonce of 13 bytes leaves two bytes for the length. The data are shortened to fit, because this provider
            // refuses longer data earlier than the default provider, which refuses them when they are passed.
            let data = data[..data.len().min(65_000)].to_vec();
            let mut script = vec![Init(way, None, None)];
            script.push(if one { IvLength(12) } else { IvLength(iv as i32) });
            let iv = if one { 12 } else { iv };
            let tag = tag / 2 * 2;
            if way == 0 && !no_tag {
                script.push(SetTag(bytes(tag as usize, 3)));
            } else if !no_tag {
                script.push(TagLength(tag));
            }
            script.push(Init(-1, Some(key.clone()), Some(bytes(iv, 5))));
            if copy {
                script.push(Copy);
            }
            if !no_length {
                script.push(Length(data.len() + usize::from(wrong_length)));
            }
            if !no_aad {
                script.push(Aad(aad));
            }
            script.extend([State, if in_place { InPlace(data) } else { Update(data) }]);
            // Getting the tag ends a message. If the context still holds a tag, the default provider's behaviour is
            // accidental.
            script.extend((way == 1).then_some(Tag(if no_tag { 12 } else { tag })));
            script
        });
    prop::collection::vec(message, 1..4).prop_map(|messages| messages.concat())
}

/// Runs many scripts with random algorithms.
fn try_all(of: impl Fn(&Algorithm) -> bool) {
    let algorithms: Vec<_> = ALGORITHMS.iter().filter(|algorithm| of(algorithm)).collect();
    let scripts = prop::sample::select(algorithms).prop_flat_map(|algorithm| {
        let script = if algorithm.mode == Mode::Ccm {
            ccm_script(algorithm).boxed()
        } else {
            script(algorithm).boxed()
        };
        script.prop_map(move |script| (algorithm.name(), script))
    });
    let config = ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |((name, script) in scripts)| {
        compare_until_failure(name, &script);
    });
}

#[test]
fn any_script_of_ecb_and_cbc() {
    try_all(Algorithm::is_block);
}

#[test]
fn any_script_of_cfb_ofb_and_ctr() {
    try_all(|algorithm| algorithm.mode == Mode::Stream);
}

#[test]
fn any_script_of_xts() {
    try_all(|algorithm| algorithm.mode == Mode::Xts);
}

#[test]
fn any_script_of_gcm() {
    try_all(|algorithm| algorithm.mode == Mode::Gcm);
}

#[test]
fn any_script_of_ccm() {
    try_all(|algorithm| algorithm.mode == Mode::Ccm);
}

#[test]
fn any_script_of_ocb() {
    try_all(|algorithm| algorithm.mode == Mode::Ocb);
}
