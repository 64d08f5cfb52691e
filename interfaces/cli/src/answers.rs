//! Answers to the questions of identities and plugins.

use std::sync::{Arc, Mutex};

use age::Callbacks;
use age::secrecy::SecretString;
use lockstep::hazmat::share::lock;

use crate::error::{Error, Result, failed};
use crate::passphrase::Passphrase;
use crate::{terminal, text};

/// Answers the questions of identities and plugins: with the passphrase file if there is one, otherwise by asking on
/// the terminal.
#[derive(Clone)]
pub(crate) struct Answers {
    passphrase: Option<Passphrase>,
    /// Maximum scrypt work factor of an encrypted identity.
    pub(crate) max_work: u8,
    /// True if this type asks questions on the terminal and prints messages there.
    asks: bool,
    /// The error of the first question that could not be asked.
    problem: Arc<Mutex<Option<Error>>>,
}

impl Answers {
    /// If `asks` is false, the passphrase is the only answer, and no question is asked on the terminal.
    pub(crate) fn new(passphrase: Option<Passphrase>, max_work: u8, asks: bool) -> Answers {
        Answers { passphrase, max_work, asks, problem: Arc::default() }
    }

    /// Returns the passphrase that was given. If there is none, asks `question` and returns the answer.
    pub(crate) fn passphrase(&self, question: &str) -> Option<Passphrase> {
        match &self.passphrase {
            Some(passphrase) => Some(passphrase.clone()),
            None => self.ask(|| Passphrase::ask(&text::one_line(&question))),
        }
    }

    /// Asks a question on the terminal if `self.asks` is true. If it is false, or if the question fails, stores an error for
    /// [`Answers::problem`].
    fn ask<T>(&self, ask: impl FnOnce() -> Result<T>) -> Option<T> {
        let unanswered =
            || Err(failed("the identity or recipient asks a question: use the command `lockstep`"));
        let asked = if self.asks { ask() } else { unanswered() };
        asked.map_err(|error| self.set_problem(error)).ok()
    }

    /// Takes the error of the first question that could not be asked, if any. If there is such an error, the identity
    /// or plugin that needed the answer could not be used.
    pub(crate) fn problem(&self) -> Option<Error> {
        lock(&self.problem).take()
    }

    /// Stores an error for [`Answers::problem`], unless there is an earlier one.
    pub(crate) fn set_problem(&self, error: Error) {
        lock(&self.problem).get_or_insert(error);
    }
}

impl Callbacks for Answers {
    fn display_message(&self, message: &str) {
        if self.asks {
            terminal::print_message(&text::one_line(&message));
        }
    }

    fn confirm(&self, message: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        let lines = [message, yes, no.unwrap_or("no")].map(|text| text::one_line(&text));
        let [statement, if_yes, if_no] = lines;
        let question = format!("{statement} (y: {if_yes}, n: {if_no})");
        let answer = self.ask(|| terminal::ask(&question))?;
        Some(answer.trim().eq_ignore_ascii_case("y") || answer.trim().eq_ignore_ascii_case("yes"))
    }

    fn request_public_string(&self, description: &str) -> Option<String> {
        self.ask(|| terminal::ask(&text::one_line(&description))).filter(|answer| !answer.is_empty())
    }

    fn request_passphrase(&self, description: &str) -> Option<SecretString> {
        self.passphrase(description).map(|passphrase| passphrase.without_mark())
    }
}
