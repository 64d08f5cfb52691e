//! `lockstep decrypt -O`: decrypts each of many files to a separate file.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard};

use aws_lc_rs::digest::{SHA256, digest};
use lockstep::envelope::Start;
use lockstep::tree::{self, Direction, Existing, Operation, Pair, Prepared};
use lockstep::{Engine, Envelope, FileKey, Sparse, file};

use super::{Decrypt, check_unlockable, find_unlock, no_key};
use crate::age_file;
use crate::error::Result;
use crate::file_keys::KeyError;
use crate::signals;
use crate::wrapping::{self, Unlock};

/// The SHA-256 digest of an envelope.
type EnvelopeId = [u8; 32];
/// The key in an envelope, or the reason why the envelope cannot be opened.
type Opened = std::result::Result<Arc<FileKey>, KeyError>;

/// Decrypts many files, each with the key in its envelope or, without an envelope, with the key of the key file.
pub(super) struct DecryptMany<'a> {
    pub(super) engine: &'a Engine,
    pub(super) args: &'a Decrypt,
    /// The key of the key file.
    pub(super) key: Option<FileKey>,
    /// The keys by envelope. All files of one call of `encrypt` have the same envelope, which is opened only once. The
    /// map contains pointers to the keys, so that no copies of keys remain in memory when the map grows.
    keys: Mutex<HashMap<EnvelopeId, Opened>>,
}

/// Passphrase and identities, which are read or asked for only once. Only the thread that has read the identities uses
/// them.
#[derive(Default)]
pub(super) struct Unlocks {
    passphrase: Option<Unlock>,
    identities: Option<Unlock>,
}

impl<'a> DecryptMany<'a> {
    pub(super) fn new(engine: &'a Engine, args: &'a Decrypt, key: Option<FileKey>) -> Self {
        DecryptMany { engine, args, key, keys: Mutex::default() }
    }

    /// Finds the key of a file and stores it.
    ///
    /// # Errors
    /// If the passphrase or the identities cannot be read. No file that needs them can be opened then.
    pub(super) fn prepare(&self, unlocks: &mut Unlocks, mut input: &File) -> Result<Prepared> {
        let envelope = match Envelope::read(&mut input) {
            Ok(Start::Envelope(envelope)) => envelope,
            Ok(Start::Bare(first_bytes)) if age_file::is_age_file(&first_bytes) => {
                let message = "this is an age file: decrypt it by itself, with -o";
                return Ok(Prepared::Failed(tree::Error::Failed(message.into())));
            }
            Ok(Start::Bare(_)) if self.key.is_some() => return Ok(Prepared::Ready),
            Ok(Start::Bare(first_bytes)) => {
                return Ok(Prepared::Failed(KeyError::from(no_key(Some(input), &first_bytes)).into()));
            }
            Err(error) => return Ok(Prepared::Failed(error.into())),
        };
        let id = id(&envelope);
        let known = self.keys().get(&id).cloned();
        let opened = match known {
            Some(opened) => opened,
            None => {
                let opened = self.open(unlocks, &envelope)?;
                self.keys().insert(id, opened.clone());
                opened
            }
        };
        Ok(opened.map_or_else(|error| Prepared::Failed(error.into()), |_| Prepared::Ready))
    }

    fn open(&self, unlocks: &mut Unlocks, envelope: &Envelope) -> Result<Opened> {
        let header = wrapping::header(envelope);
        let header = header.and_then(|header| check_unlockable(self.args, &header).map(|()| header));
        let header = match header {
            Ok(header) => header,
            Err(error) => return Ok(Err(error.into())),
        };
        let place = if header.is_passphrase() { &mut unlocks.passphrase } else { &mut unlocks.identities };
        let unlock = match place {
            Some(unlock) => unlock,
            None => place.insert(find_unlock(self.args, &header)?),
        };
        Ok(wrapping::unwrap(envelope, unlock, &signals::stopped).map(Arc::new).map_err(KeyError::from))
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<EnvelopeId, Opened>> {
        self.keys.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn id(envelope: &Envelope) -> EnvelopeId {
    let mut id = [0; 32];
    id.copy_from_slice(digest(&SHA256, envelope.as_bytes()).as_ref());
    id
}

impl Operation for DecryptMany<'_> {
    fn direction(&self) -> Direction {
        Direction::Decrypt
    }

    fn sparse(&self) -> Sparse {
        self.args.sparse.when
    }

    fn compare(&self, pair: &Pair<'_>) -> tree::Result<Existing> {
        pair.decrypted()
    }

    fn process(
        &self,
        input: &File,
        output: &mut (dyn Write + Send),
        options: lockstep::Options<'_>,
    ) -> tree::Result<u64> {
        let envelope = Envelope::read_file(input)?;
        let opened = match &envelope {
            Some(envelope) => self.keys().get(&id(envelope)).cloned(),
            None => self.key.clone().map(|key| Ok(Arc::new(key))),
        };
        let changed =
            || tree::Error::Failed("the file changed after its key had been found: try again".into());
        let key = opened.ok_or_else(changed)??;
        let context = wrapping::context(envelope.as_ref(), self.args.context.as_deref());
        let options = options.partial(self.args.partial);
        let summary = file::decrypt_open_file(self.engine, &key, context, input, output, options)?;
        Ok(summary.plaintext_len)
    }
}
