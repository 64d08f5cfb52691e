//! The arguments of the command line, and the path of the program.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lockstep::hazmat::shown;

/// The arguments of the command line, and the path of the program.
static INVOCATION: OnceLock<(Vec<OsString>, Option<PathBuf>)> = OnceLock::new();

/// Stores the arguments and the path of the program. The first argument is the name of the program.
pub(crate) fn set(arguments: Vec<OsString>, program: Option<PathBuf>) {
    INVOCATION.get_or_init(|| (arguments, program));
}

/// The arguments after the name of the program.
pub(crate) fn arguments() -> &'static [OsString] {
    INVOCATION.get().and_then(|(arguments, _)| arguments.get(1..)).unwrap_or_default()
}

/// The path of the program; None if the command is a part of another program.
pub(crate) fn program() -> Option<&'static Path> {
    INVOCATION.get()?.1.as_deref()
}

/// Removes the arguments that are keys from a message. A user can give a key by mistake where a name or a path is expected, and
/// messages of the parser repeat arguments. An argument is not removed if it is the name of a file that exists at the first message.
pub(crate) fn without_keys(message: &str) -> Cow<'_, str> {
    static KEYS: OnceLock<Vec<String>> = OnceLock::new();
    let keys = KEYS.get_or_init(|| {
        arguments().iter().flat_map(|argument| keys_in(&argument.to_string_lossy())).collect()
    });
    keys.iter()
        .filter(|key| message.contains(&***key))
        .fold(Cow::Borrowed(message), |message, key| message.replace(&**key, "(a key, not shown)").into())
}

/// The keys in an argument. A key can be the whole argument, or the value in `--option=VALUE` or `-oVALUE`.
fn keys_in(argument: &str) -> Vec<String> {
    let value_of_long = argument.split_once('=').map(|(_, value)| value);
    let value_of_short = argument.strip_prefix('-').and_then(|rest| rest.get(1..));
    let values = [value_of_long, value_of_short, Some(argument)].into_iter().flatten().map(str::trim);
    let is_key = |value: &&str| {
        shown::is_only_key(value.as_bytes())
            && (shown::is_secret(value.as_bytes()) || !Path::new(value).exists())
    };
    values.filter(is_key).map(str::to_owned).collect()
}
