//! Detection of misspelt setting names in the provider's section.
//!
//! OpenSSL (3.0 to 4.0: `core_get_params` in crypto/provider_core.c) returns the value of a given name. It cannot list the
//! names in a section, and `core_gettable_params` lists only the parameters of the library. This module therefore looks up
//! likely mistakes: every name with one wrong letter, the usual pairs of mistakes, other spellings, and synonyms. In total,
//! these are 6,000 names. One call looks up all names for one setting, and all calls together take 0.3 ms. Less likely mistakes
//! are not found.

use std::ffi::CStr;

use lockstep_provider_settings::NAMES;

/// Characters that are inserted into a name or substituted for one of its letters.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz_-";

/// Synonyms of a setting, separated by spaces.
const WORDS: [(&str, &str); NAMES.len()] = [
    ("device", "dev device_name device-name gpu backend processor"),
    ("kernel", "kernel_name kernel-name implementation"),
    ("launch", "launches launch_options launch-options options"),
    ("threads", "nthreads num_threads num-threads max_threads max-threads thread_count cpus cores"),
    ("threshold", "min_size min-size min_bytes cutoff crossover threshold_bytes"),
    ("verify", "verification verify_results validate"),
    ("calibrate", "calibration auto_calibrate auto-calibrate measure"),
    ("ahead", "lookahead look_ahead read_ahead readahead prefetch keystream keystream_ahead"),
    ("trace", "tracefile trace_file trace-file trace_to tracing logfile log_file log-file log"),
];

/// Returns a misspelt name that the section contains, and the setting that was probably meant. `section` returns the values of
/// names.
pub(super) fn misspelt(section: impl Fn(&[&CStr]) -> Vec<Option<String>>) -> Option<(String, &'static str)> {
    WORDS.iter().find_map(|(name, words)| {
        let wrong = mistakes(name, words);
        let all: Vec<&CStr> = wrong.iter().collect();
        let found = section(&all).iter().position(Option::is_some)?;
        Some((all[found].to_string_lossy().into_owned(), *name))
    })
}

/// A list of names in one allocation. Each name is followed by a NUL. One allocation saves time, because each program that
/// loads the provider generates thousands of names.
#[derive(Default)]
struct Names(Vec<u8>);

impl Names {
    /// Adds the name that consists of `parts`, unless this name is a setting.
    fn add(&mut self, parts: &[&[u8]]) {
        let start = self.0.len();
        parts.iter().for_each(|part| self.0.extend_from_slice(part));
        match NAMES.iter().any(|name| name.as_bytes() == &self.0[start..]) {
            true => self.0.truncate(start),
            false => self.0.push(0),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &CStr> {
        self.0.split_inclusive(|byte| *byte == 0).filter_map(|name| CStr::from_bytes_with_nul(name).ok())
    }
}

/// Returns misspelt forms and synonyms of the setting `name`.
fn mistakes(name: &str, words: &str) -> Names {
    let right = name.as_bytes();
    let mut first_mistake = Names::default();
    usual_mistakes(right, &mut first_mistake);
    let mut all = Names::default();
    one_letter(right, &mut all);
    for first_mistake in first_mistake.iter().map(CStr::to_bytes).chain([right]) {
        usual_mistakes(first_mistake, &mut all);
        // Names are case-sensitive, so the name in upper case is a mistake.
        all.add(&[&first_mistake.to_ascii_uppercase()]);
        all.add(&[&first_mistake[..1].to_ascii_uppercase(), &first_mistake[1..]]);
    }
    words.split(' ').for_each(|word| all.add(&[word.as_bytes()]));
    for prefix in ["lockstep_", "lockstep-", "lockstep."] {
        all.add(&[prefix.as_bytes(), right]);
    }
    all.add(&[b"LOCKSTEP_", &right.to_ascii_uppercase()]);
    all
}

/// Adds all names with one letter inserted or substituted.
fn one_letter(name: &[u8], all: &mut Names) {
    for at in 0..=name.len() {
        let (before, after) = name.split_at(at);
        for letter in LETTERS.iter().map(std::slice::from_ref) {
            all.add(&[before, letter, after]);
            if let Some((_, after)) = after.split_first() {
                all.add(&[before, letter, after]);
            }
        }
    }
}

/// Adds the usual mistakes: a missing or doubled letter, or two letters swapped.
fn usual_mistakes(name: &[u8], all: &mut Names) {
    for at in 0..name.len() {
        let (before, after) = name.split_at(at);
        all.add(&[before, &after[1..]]);
        all.add(&[before, &after[..1], after]);
        if let [first, second, after @ ..] = after {
            all.add(&[before, &[*second, *first], after]);
        }
    }
}

#[cfg(test)]
mod tests;
