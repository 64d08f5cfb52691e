//! Secret bits of the table: other values of the secrets change no bit that is not secret. This needs no processor, so that it
//! covers all entries.

use lockstep_proof::machine::{Kind, text};
use lockstep_proof::taint::Taint;
use lockstep_proof::value::Domain;

use crate::assemble::{assemble, encodings};
use crate::state::{Random, State, execute, machine, read};

/// The address of the memory of a state.
const MEMORY: u64 = 0x2000;
/// Number of states for each encoding.
const STATES: usize = 12;

/// Applies a function to all parts of two states, except the address in RDI.
fn combine(x: &State, y: &State, function: impl Fn(u64, u64) -> u64) -> State {
    let bytes = |x: &[u8; 64], y: &[u8; 64]| {
        std::array::from_fn(|i| function(u64::from(x[i]), u64::from(y[i])) as u8)
    };
    let mut general = std::array::from_fn(|i| function(x.general[i], y.general[i]));
    general[7] = x.general[7];
    State {
        general,
        vectors: std::array::from_fn(|i| bytes(&x.vectors[i], &y.vectors[i])),
        memory: bytes(&x.memory, &y.memory),
        masks: std::array::from_fn(|i| function(x.masks[i], y.masks[i])),
        flags: function(x.flags, y.flags),
    }
}

#[test]
fn other_secrets_change_secret_bits_only() {
    let mut random = Random(2);
    let (mut tested, mut reported) = (0, 0);
    for code in encodings() {
        for state in 0..STATES {
            let prefers_memory = state % 2 == 1;
            let Some((instruction, bytes)) = assemble(code, prefers_memory, random.next()) else { continue };
            let (values, mut secret) = (random.state(MEMORY), random.state(MEMORY));
            secret.general[7] = 0;
            let noise = random.state(MEMORY);
            let others =
                combine(&combine(&noise, &secret, |noise, secret| noise & secret), &values, |x, y| x ^ y);
            let mut others = others;
            others.general[7] = MEMORY;
            let mut first = machine(&bytes, &values, &secret);
            let mut second = machine(&bytes, &others, &secret);
            if execute(&mut first).is_err() || execute(&mut second).is_err() {
                continue;
            }
            // A secret where the table demands a public number is reported.
            let is_reported = |kind: Kind| matches!(kind, Kind::Time | Kind::Address | Kind::Branch);
            if first.findings.keys().any(|finding| is_reported(finding.kind)) {
                reported += 1;
                continue;
            }
            let values_of = |machine| read(machine, MEMORY, Taint::value, |flag| flag.value && flag.defined);
            let result_secret = read(&first, MEMORY, Taint::secret, |flag| flag.secret || !flag.defined);
            let changed = combine(&values_of(&first), &values_of(&second), |x, y| x ^ y);
            let missing = combine(&changed, &result_secret, |changed, secret| changed & !secret);
            let mut nothing = combine(&missing, &missing, |_, _| 0);
            nothing.general[7] = missing.general[7];
            assert_eq!(
                missing,
                nothing,
                "`{}`: bits depend on secrets and are not secret",
                text(&instruction)
            );
            tested += 1;
        }
    }
    assert!(tested > 5000, "only {tested} states were compared; {reported} were reported");
}
