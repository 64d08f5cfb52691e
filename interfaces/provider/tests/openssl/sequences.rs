//! Runs all sequences of three calls after an init. They have every kind of init, also without key and IV and with another direction:
//! before a key is set, after updates, after the end of a message and after failures. Outcomes and error queues are compared with those
//! of the default provider, up to the first difference that [`EXPLANATIONS`] permits. docs/provider.md lists these differences.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::evp::{DECRYPT, ENCRYPT};
use crate::harness::{bytes, library, subject_is_default};
use crate::release::{Release, release};
use crate::script::Call::{self, *};
use crate::script::{Both, Sides, is_siv, key_and_iv};

/// One algorithm of each mode.
const NAMES: [&str; 18] = [
    "AES-128-ECB",
    "AES-256-CBC",
    "AES-128-CFB",
    "AES-128-CFB8",
    "AES-128-CFB1",
    "AES-128-OFB",
    "AES-256-CTR",
    "AES-128-XTS",
    "AES-256-GCM",
    "AES-128-CCM",
    "AES-128-OCB",
    "AES-128-SIV",
    "AES-128-GCM-SIV",
    "AES-128-CBC-CTS",
    "AES-128-WRAP",
    "AES-128-WRAP-PAD",
    "AES-128-WRAP-INV",
    "AES-128-WRAP-PAD-INV",
];

/// Facts about the calls of a sequence so far. The known differences depend on these facts.
#[derive(Default)]
struct Facts {
    has_key: bool,
    has_iv: bool,
    encrypts: bool,
    /// Additional data, data or an end were passed since the last IV, or in SIV since the last init.
    is_begun: bool,
    /// Since `is_begun` became true, there was an init without an IV.
    is_interrupted: bool,
    /// A message was ended, or all of its data were passed, since the last IV, or in SIV since the last init.
    has_ended: bool,
    /// A call was refused by both providers.
    has_failed: bool,
    /// A tag was passed.
    has_tag: bool,
    /// Additional data, data or an end were passed since the start of the sequence.
    was_used: bool,
}

impl Facts {
    /// Records a call that has succeeded on both providers, or failed on both.
    fn record(&mut self, name: &str, call: &Call, ok: bool) {
        self.has_failed |= !ok;
        match call {
            Init(way, key, iv) => {
                self.has_key |= key.is_some();
                self.has_iv |= iv.is_some();
                self.encrypts = if *way == -1 { self.encrypts } else { *way == ENCRYPT };
                self.is_interrupted |= self.is_begun && iv.is_none();
                if iv.is_some() || is_siv(name) {
                    (self.is_begun, self.is_interrupted, self.has_ended) = (false, false, false);
                }
            }
            SetTag(_) => self.has_tag = true,
            Aad(_) | Update(_) | Final => {
                (self.is_begun, self.was_used) = (true, true);
                let is_whole = name.ends_with("CCM") || name.ends_with("SIV");
                self.has_ended |= ok && (*call == Final || is_whole && matches!(call, Update(_)));
            }
            _ => {}
        }
    }

    /// The place in [`EXPLANATIONS`] of the reason why a call differs, and the kind of the difference; `None` if no reason is
    /// known.
    fn explain(&self, name: &str, call: &Call, both: &Both) -> Option<(usize, Difference)> {
        let difference = Difference::of(both)?;
        let explains = |explanation: &Explanation| {
            explanation.modes.contains(&mode(name))
                && explanation.differences.contains(&difference)
                && explanation.releases.contains(&release())
                && (explanation.applies)(self, call)
        };
        Some((EXPLANATIONS.iter().position(explains)?, difference))
    }
}

/// The part of the algorithm's name after the key length.
fn mode(name: &str) -> &str {
    name.trim_start_matches("AES-").trim_start_matches(char::is_numeric).trim_start_matches('-')
}

/// How this provider differs from the default provider in a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Difference {
    /// This provider refuses a call that succeeds in the default provider.
    Stricter,
    /// The default provider refuses a call that succeeds in this provider.
    Laxer,
    /// The call succeeds in both providers, with different bytes.
    Bytes,
    /// The call fails in both providers, with different entries on the error queue.
    Entries,
}

impl Difference {
    /// The kind of a difference; `None` if no explanation can permit it.
    fn of(both: &Both) -> Option<Difference> {
        match (both.ours.ok(), both.theirs.ok()) {
            (false, true) => Some(Difference::Stricter),
            (true, false) => Some(Difference::Laxer),
            (true, true) => both.queues_are_equal.then_some(Difference::Bytes),
            (false, false) => (both.ours == both.theirs).then_some(Difference::Entries),
        }
    }
}

/// A permitted difference.
struct Explanation {
    modes: &'static [&'static str],
    /// The releases whose default provider differs.
    releases: Range<Release>,
    applies: fn(&Facts, &Call) -> bool,
    differences: &'static [Difference],
    why: &'static str,
}

const ALL: Range<Release> = (3, 0, 0)..(u32::MAX, 0, 0);
const UP_TO_3: Range<Release> = (3, 0, 0)..(4, 0, 0);
const SINCE_3_2: Range<Release> = (3, 2, 0)..(u32::MAX, 0, 0);
const SINCE_4: Range<Release> = (4, 0, 0)..(u32::MAX, 0, 0);

fn is_data(call: &Call) -> bool {
    matches!(call, Aad(_) | Update(_) | Final)
}

/// All permitted differences. [`all_short_sequences`] fails if a mode or a difference of an explanation does not occur.
const EXPLANATIONS: [Explanation; 20] = {
    use Difference::*;
    [
        Explanation {
            modes: &["GCM"],
            releases: ALL,
            applies: |facts, _| !facts.has_iv && facts.encrypts,
            differences: &[Bytes],
            why: "an encryption without an IV uses a random IV, which is another one in each provider",
        },
        Explanation {
            modes: &["GCM", "OCB"],
            releases: ALL,
            applies: |facts, call| is_data(call) && facts.is_interrupted,
            differences: &[Stricter],
            why: "a change of direction, or a key without an IV, ends the message",
        },
        Explanation {
            modes: &["GCM"],
            releases: SINCE_3_2,
            applies: |facts, call| *call == Final && facts.is_interrupted,
            differences: &[Entries],
            why: "the same; the default provider continues the message and reports that it has no tag",
        },
        Explanation {
            modes: &["GCM", "OCB"],
            releases: ALL,
            applies: |facts, call| is_data(call) && facts.has_failed && facts.has_tag && !facts.encrypts,
            differences: &[Stricter],
            why: "a wrong tag ends the message",
        },
        Explanation {
            modes: &["OCB"],
            releases: ALL,
            applies: |facts, call| {
                matches!(call, Update(_)) && facts.has_failed && !facts.has_tag && !facts.encrypts
            },
            differences: &[Bytes],
            why: "an end without a tag is refused; the default provider has then used the partial block of data",
        },
        Explanation {
            modes: &["GCM"],
            releases: ALL,
            applies: |facts, call| *call == Tag(16) && facts.has_tag,
            differences: &[Stricter, Bytes],
            why: "the default provider stores a tag that is refused, and returns it instead of the message's",
        },
        Explanation {
            modes: &["OCB"],
            releases: ALL,
            applies: |facts, call| *call == Tag(16) && !facts.has_ended,
            differences: &[Stricter],
            why: "the tag is computed at the end",
        },
        Explanation {
            modes: &["CCM"],
            releases: ALL,
            applies: |facts, call| facts.was_used && (is_data(call) || matches!(call, Tag(_))),
            differences: &[Stricter, Laxer],
            why: "a message ends with its data, and a nonce begins another message",
        },
        Explanation {
            modes: &["CCM"],
            releases: UP_TO_3,
            applies: |facts, call| *call == Final && !facts.was_used && !facts.encrypts,
            differences: &[Stricter],
            why: "the default provider does not check the tag of a message without an update",
        },
        Explanation {
            modes: &["CCM"],
            releases: ALL,
            applies: |facts, call| matches!(call, Tag(_)) && !facts.was_used && facts.has_tag,
            differences: &[Stricter],
            why: "the default provider returns a tag without a message",
        },
        Explanation {
            modes: &["SIV"],
            releases: ALL,
            applies: |facts, call| *call == Tag(16) && !facts.has_ended,
            differences: &[Stricter],
            why: "the tag is computed by the update",
        },
        Explanation {
            modes: &["SIV"],
            releases: ALL,
            applies: |facts, call| is_data(call) && facts.is_begun,
            differences: &[Stricter],
            why: "the message has ended",
        },
        Explanation {
            modes: &["GCM-SIV"],
            releases: SINCE_3_2,
            applies: |facts, call| is_data(call) && !facts.has_iv,
            differences: &[Stricter],
            why: "data without a nonce are refused",
        },
        Explanation {
            modes: &["GCM-SIV"],
            releases: SINCE_3_2,
            applies: |facts, call| is_data(call) && facts.has_iv && !facts.encrypts && !facts.was_used,
            differences: &[Stricter],
            why: "data for decryption are refused without a tag that was set for decryption",
        },
        Explanation {
            modes: &["GCM-SIV"],
            releases: SINCE_3_2,
            // All tags of the sequences are wrong, so each such message is forged.
            applies: |facts, call| {
                matches!(call, Update(_)) && facts.has_iv && !facts.encrypts && facts.has_tag
            },
            differences: &[Bytes],
            why: "a forged message gives zeros instead of its plaintext",
        },
        Explanation {
            modes: &["GCM-SIV"],
            releases: SINCE_3_2,
            applies: |facts, call| {
                matches!(call, Update(_)) && facts.has_iv && facts.encrypts && facts.was_used
            },
            differences: &[Bytes],
            why: "the default provider uses the additional data of an earlier message",
        },
        Explanation {
            modes: &["GCM-SIV"],
            releases: SINCE_3_2,
            applies: |facts, call| is_data(call) && facts.has_iv && facts.was_used,
            differences: &[Stricter, Laxer],
            why: "additional data and data after the end of a message are refused, and an init begins another message",
        },
        Explanation {
            modes: &["GCM-SIV"],
            releases: SINCE_3_2,
            applies: |facts, call| matches!(call, Tag(_)) && facts.has_ended && facts.has_failed,
            differences: &[Laxer],
            why: "a call that is refused after the message does not discard its tag",
        },
        Explanation {
            modes: &["WRAP", "WRAP-PAD", "WRAP-INV", "WRAP-PAD-INV"],
            releases: SINCE_4,
            applies: |facts, call| facts.was_used && matches!(call, Update(_)),
            differences: &[Laxer, Entries],
            why: "the default provider requires an init for each key",
        },
        Explanation {
            modes: &["ECB", "CBC"],
            releases: ALL,
            applies: |facts, call| matches!(call, Update(_) | Final) && facts.has_failed && !facts.encrypts,
            differences: &[Bytes, Entries],
            why: "the default provider keeps the block of a refused end, decrypted",
        },
    ]
};

/// The calls of the sequences of an algorithm.
fn alphabet(name: &str) -> Vec<Call> {
    let (key, iv) = key_and_iv(name);
    let other_key: Vec<u8> = key.iter().map(|byte| byte ^ 0x55).collect();
    let other_iv = Some(vec![9; iv.len()]).filter(|iv| !iv.is_empty());
    let tag = if name.ends_with("CCM") { 12 } else { 16 };
    let mut calls = vec![
        Init(-1, None, None),
        Init(ENCRYPT, None, None),
        Init(DECRYPT, None, None),
        Init(-1, Some(other_key), None),
        Init(-1, None, other_iv),
        Update(bytes(40, 1)),
        Update(bytes(16, 1)),
        Final,
        State,
    ];
    if ["GCM", "CCM", "OCB", "SIV"].iter().any(|mode| name.ends_with(mode)) {
        calls.extend([Aad(bytes(20, 1)), SetTag(vec![7; tag]), Tag(tag as i32)]);
    }
    calls
}

/// A use of an explanation: its place in [`EXPLANATIONS`], the mode and the difference.
type Use<'n> = (usize, &'n str, Difference);

/// Runs a sequence until the first difference. Records the explanation of the difference, or returns a description if
/// no explanation permits it.
fn unexplained<'n>(name: &'n str, sequence: &[&Call], uses: &mut BTreeSet<Use<'n>>) -> Option<String> {
    let (mut sides, mut facts) = (Sides::new(name), Facts::default());
    for (i, call) in sequence.iter().enumerate() {
        // The default provider crashes on data without a key in some modes, and uses zeros in others: see `bad_input`.
        if !facts.has_key && !matches!(call, Init(..) | State) {
            return None;
        }
        let both = sides.run(call);
        if !both.are_equal() {
            let Some((at, difference)) = facts.explain(name, call, &both) else {
                return Some(format!("{name}: {call:?}: {both:?}\n  after {:?}", &sequence[..i]));
            };
            uses.insert((at, mode(name), difference));
            return None;
        }
        facts.record(name, call, both.ours.ok());
    }
    None
}

#[test]
fn all_short_sequences() {
    let (mut differences, mut uses) = (Vec::new(), BTreeSet::new());
    for name in NAMES {
        // The default provider has GCM-SIV since 3.2.
        if library().cipher(name, "provider=default").is_none() {
            continue;
        }
        let (key, iv) = key_and_iv(name);
        let iv = Some(iv).filter(|iv| !iv.is_empty());
        let starts = [
            Init(ENCRYPT, Some(key.clone()), iv.clone()),
            Init(DECRYPT, Some(key), iv),
            Init(ENCRYPT, None, None),
        ];
        let calls = alphabet(name);
        for start in &starts {
            for first in &calls {
                for second in &calls {
                    differences.extend(
                        calls
                            .iter()
                            .filter_map(|third| unexplained(name, &[start, first, second, third], &mut uses)),
                    );
                }
            }
        }
    }
    let examples = differences.iter().step_by(differences.len() / 20 + 1).cloned().collect::<Vec<_>>();
    assert!(differences.is_empty(), "{} differences, such as\n{}", differences.len(), examples.join("\n"));
    if subject_is_default("it does not differ from itself") {
        return;
    }
    let unused = unused_explanations(&uses);
    assert!(unused.is_empty(), "no sequence needs\n{}", unused.join("\n"));
}

/// The modes and differences of explanations for this release that do not occur in `uses`. The explanations were written for the releases
/// 3.0 and 4.0. On releases between them, the result is empty.
fn unused_explanations(uses: &BTreeSet<Use>) -> Vec<String> {
    let mut unused = Vec::new();
    if ((3, 1, 0)..(4, 0, 0)).contains(&release()) {
        return unused;
    }
    for (at, explanation) in EXPLANATIONS.iter().enumerate() {
        if !explanation.releases.contains(&release()) {
            continue;
        }
        for mode in explanation.modes {
            for difference in explanation.differences {
                if !uses.contains(&(at, *mode, *difference)) {
                    unused.push(format!("{mode}: {difference:?}: {}", explanation.why));
                }
            }
        }
    }
    unused
}

/// The control: a difference without an explanation and an explanation without a use are found.
#[test]
fn a_difference_without_an_explanation_is_found() {
    if subject_is_default("it does not differ from itself") {
        return;
    }
    let name = "AES-128-SIV";
    let (key, _) = key_and_iv(name);
    let (start, data, aad) = (Init(ENCRYPT, Some(key), None), Update(bytes(40, 1)), Aad(bytes(20, 1)));
    let mut sides = Sides::new(name);
    assert!(sides.run(&start).are_equal() && sides.run(&data).are_equal());
    let both = sides.run(&aad);
    assert!(!both.are_equal() && Facts::default().explain(name, &aad, &both).is_none());
    assert!(!unused_explanations(&BTreeSet::new()).is_empty());
}
