//! Tests of the batches of modules whose places the caller has found itself.

use lockstep::hazmat::Key;
use lockstep::hazmat::work::Status;

use super::*;
use crate::format::file_crypto;
use crate::{EncryptedModule, Kind, Module, Protection, ciphertext, decrypt_modules, module_aad};

/// A module of a file, as a reader of Parquet finds it.
struct Found {
    range: std::ops::Range<usize>,
    key: usize,
    kind: Kind,
    aad: Vec<u8>,
    plain: Option<Vec<u8>>,
}

/// Finds the page headers and pages of all column chunks by their length fields. The expected plaintext of each page is that of
/// `bodies`.
fn modules_of(file: &[u8], plain: &[u8], algorithm: Algorithm) -> Vec<Found> {
    let unique = encryption(file, file_crypto::ENCRYPTION_ALGORITHM).binary(2).unwrap().try_into().unwrap();
    // The view has the offsets of the encrypted file.
    let footer = Struct::read_whole(&plain[footer_range(plain)], "footer").unwrap();
    let mut found = Vec::new();
    for (group, chunks) in list(&footer, file::ROW_GROUPS).iter().enumerate() {
        for (column, chunk) in list(chunks, row_group::COLUMNS).iter().enumerate() {
            let meta = chunk.structure(chunk::META_DATA).unwrap().unwrap();
            let mut at = meta.int(column::DICTIONARY_PAGE_OFFSET).unwrap() as usize;
            for (number, body) in bodies(group, column).into_iter().enumerate() {
                let types = match number {
                    0 => [Module::DictionaryPageHeader, Module::DictionaryPage],
                    _ => [Module::DataPageHeader, Module::DataPage],
                };
                for (module, plain) in types.into_iter().zip([None, Some(body)]) {
                    let stated = u32::from_le_bytes(file[at..].first_chunk().copied().unwrap());
                    let range = at..at + 4 + stated as usize;
                    at = range.end;
                    let page = number.saturating_sub(1) as i16;
                    let aad = module_aad(b"", &unique, module, group as i16, column as i16, page).unwrap();
                    let kind = Kind::of(algorithm, module);
                    found.push(Found { range, key: usize::from(COLUMNS[column] == "b"), kind, aad, plain });
                }
            }
        }
    }
    found
}

struct Setting {
    engine: Engine,
    file: Vec<u8>,
    found: Vec<Found>,
}

impl Setting {
    fn new(algorithm: Algorithm) -> Setting {
        let engine = Engine::new().unwrap();
        let file = encrypted(&engine, &policy(algorithm, false));
        let plain = read_with(&engine, file.clone(), &keys(), ANY).unwrap();
        let found = modules_of(&file, &plain, algorithm);
        assert_eq!(found.len(), GROUPS * COLUMNS.len() * 8);
        Setting { engine, file, found }
    }

    /// Decrypts the modules. Returns the outcome, the statuses and the outputs, which are filled with nonzero bytes
    /// before the call.
    fn decrypt(&self) -> (crate::Result<()>, Vec<Status>, Vec<Vec<u8>>) {
        let keys = [Key::new(FOOTER).unwrap(), Key::new(COLUMN).unwrap()];
        let len = |found: &Found| ciphertext(found.kind, found.range.len()).unwrap().len();
        let mut outputs: Vec<Vec<u8>> = self.found.iter().map(|found| vec![0xee; len(found)]).collect();
        let mut modules: Vec<_> = self
            .found
            .iter()
            .zip(&mut outputs)
            .map(|(found, output)| {
                let Found { range, key, kind, aad, .. } = found;
                let protection = Protection { key: &keys[*key], kind: *kind, aad: aad.clone() };
                EncryptedModule::on_host(protection, &self.file[range.clone()], output).unwrap()
            })
            .collect();
        let outcome = decrypt_modules(self.engine.planner(), &mut modules);
        let statuses = modules.iter().map(EncryptedModule::status).collect();
        (outcome, statuses, outputs)
    }
}

#[test]
fn all_pages_of_a_file_in_one_batch() {
    for algorithm in [Algorithm::GcmV1, Algorithm::GcmCtrV1] {
        let setting = Setting::new(algorithm);
        let (outcome, statuses, outputs) = setting.decrypt();
        outcome.unwrap();
        assert!(statuses.iter().all(|status| *status == Status::Done));
        for (found, output) in setting.found.iter().zip(&outputs) {
            match &found.plain {
                Some(plain) => assert_eq!(output, plain),
                None => assert!(Struct::read_whole(output, "page header").is_ok()),
            }
        }
    }
}

/// If one module is damaged, only this module is refused.
#[test]
fn a_damaged_module_is_zeroed_and_the_others_are_not() {
    for algorithm in [Algorithm::GcmV1, Algorithm::GcmCtrV1] {
        let intact = Setting::new(algorithm).found.len();
        for (module, place) in [(1, 0), (1, 5), (6, 17), (intact - 1, 3), (intact - 2, 31)] {
            let mut setting = Setting::new(algorithm);
            let Found { range, kind, .. } = &setting.found[module];
            let (at, kind) = (range.start + place, *kind);
            setting.file[at] ^= 4;
            let (outcome, statuses, outputs) = setting.decrypt();
            // The length field is checked in both modes. Only the tag of GCM protects everything else.
            if kind == Kind::Ctr && place >= 4 {
                outcome.unwrap();
                continue;
            }
            let refused =
                matches!(outcome, Err(Error::NotAuthentic(text)) if text.contains(&module.to_string()));
            assert!(refused);
            for (index, (status, output)) in statuses.iter().zip(outputs).enumerate() {
                if index == module {
                    assert_eq!(*status, Status::AuthenticationFailed);
                    assert!(output.iter().all(|byte| *byte == 0));
                } else {
                    assert_eq!(*status, Status::Done);
                    assert!(setting.found[index].plain.as_ref().is_none_or(|plain| *plain == output));
                }
            }
        }
    }
}

/// A module is refused if it was moved to another place, or comes from a module of another type or from another file.
#[test]
fn modules_are_bound_to_their_places() {
    let mut setting = Setting::new(Algorithm::GcmV1);
    assert!(setting.decrypt().0.is_ok());
    let (one, other) = (setting.found[5].aad.clone(), setting.found[7].aad.clone());
    assert_ne!(one, other);
    (setting.found[5].aad, setting.found[7].aad) = (other, one);
    let (outcome, statuses, _) = setting.decrypt();
    assert!(outcome.is_err());
    let failed: Vec<usize> = (0..statuses.len()).filter(|index| statuses[*index] != Status::Done).collect();
    assert_eq!(failed, [5, 7]);
}

#[test]
fn wrong_lengths_are_errors() {
    let key = Key::new(FOOTER).unwrap();
    let gcm = || Protection { key: &key, kind: Kind::Gcm, aad: Vec::new() };
    assert!(matches!(EncryptedModule::on_host(gcm(), &[0; 31], &mut []), Err(Error::Malformed(_))));
    assert!(EncryptedModule::on_host(gcm(), &[0; 40], &mut [0; 7]).is_err());
    assert!(EncryptedModule::on_host(gcm(), &[0; 40], &mut [0; 8]).is_ok());
    let ctr = Protection { kind: Kind::Ctr, ..gcm() };
    assert!(EncryptedModule::on_host(ctr, &[0; 24], &mut [0; 8]).is_ok());
}
