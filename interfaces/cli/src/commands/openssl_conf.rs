//! `lockstep openssl-conf`

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueHint};
use lockstep_provider_settings::{self as provider_settings, Settings};

use crate::error::{Error, Result, ensure, failed};
use crate::{invocation, terminal};

/// The configuration file that `make install` installs. This command inserts the settings of the command line into it, and prints
/// it.
const TEMPLATE: &str = include_str!("../../../provider/lockstep.cnf");
/// The file name of the installed module, and the file name that the build gives the module.
const NAMES: [&str; 2] = ["lockstep.so", "liblockstep_provider.so"];
/// Names that the dynamic loader replaces in the path of a module if they follow a `$`.
const REPLACED: [&str; 3] = ["ORIGIN", "LIB", "PLATFORM"];

/// Print an OpenSSL configuration that makes Lockstep's provider the preferred one
///
/// For programs that use OpenSSL 3.0 or later: `lockstep openssl-conf > lockstep.cnf`, then `OPENSSL_CONF=lockstep.cnf
/// PROGRAM`. Without --module, the module is searched for in the folder of the `lockstep` program, in ../lib/ossl-modules
/// from there, and in the folder that `openssl version -m` prints. For other settings see lockstep-provider(7).
#[derive(Args)]
#[command(
    after_long_help = "Examples:\n  lockstep openssl-conf > lockstep.cnf\n  OPENSSL_CONF=lockstep.cnf openssl list -providers"
)]
pub struct OpensslConf {
    /// The path of lockstep.so
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    module: Option<PathBuf>,

    /// Set the device: `cpu` (the default), `auto`, or a device such as `cuda:0`
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,

    /// Set the kernel, such as `cpu/soft`
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,

    /// Set launch options of the device and the kernel, such as `threads=128` for --device cuda:0 --kernel
    /// cuda/coarse-shared
    #[arg(long, value_name = "NAME=NUMBER,...")]
    launch: Option<String>,

    /// Set the number of CPU threads for large calls
    #[arg(long, value_name = "N")]
    threads: Option<String>,

    /// Set the smallest size of a call for which threads and devices are used, such as `1M`
    #[arg(long, value_name = "BYTES")]
    threshold: Option<String>,

    /// Set how results of devices are verified: `off`, `sample` or `full`
    #[arg(long, value_name = "HOW")]
    verify: Option<String>,

    /// Set whether operations are measured during use and the results stored in the user's cache folder: `on` or `off`
    #[arg(long, value_name = "WHETHER")]
    calibrate: Option<String>,

    /// Set whether keystream is computed in advance: `on`, `off` or `auto`
    #[arg(long, value_name = "WHEN")]
    ahead: Option<String>,

    /// Set the destination of the trace: `stderr`, `stdout` or the absolute path of a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: Option<String>,
}

pub(crate) fn run(args: &OpensslConf) -> Result<()> {
    let mut text = TEMPLATE.to_string();
    let module = match &args.module {
        Some(path) => Some(given(path)?),
        None => find(),
    };
    match &module {
        Some(path) => set(&mut text, "module", &quoted(path)?),
        None => terminal::print_message(
            "warning: lockstep.so is not found, so the line `module` is omitted: install it with `make install`, \
             or name it with --module",
        ),
    }
    let OpensslConf { device, kernel, launch, threads, threshold, verify, calibrate, ahead, trace, .. } =
        args;
    let all = [device, kernel, launch, threads, threshold, verify, calibrate, ahead, trace];
    let all = provider_settings::NAMES.into_iter().zip(all);
    let given: Vec<_> = all.filter_map(|(name, value)| Some((name, value.as_deref()?))).collect();
    let mut settings = Settings::default();
    for &(name, value) in &given {
        // OpenSSL does not load a provider with an invalid setting, so the settings are checked here with the
        // provider's own code.
        let refuse = |expected| failed(format!("--{name} is `{value}`: give {expected}"));
        settings.set(name, value).map_err(refuse)?;
    }
    if settings.device.is_some() || settings.kernel.is_some() || settings.launch.is_some() {
        settings.engine(provider_settings::PACKAGED_BACKENDS)?;
    }
    for (name, value) in given {
        set(&mut text, name, &quoted(Path::new(value.trim()))?);
    }
    super::print(&text)
}

/// Checks the module that `--module` names, and returns its absolute path.
fn given(path: &Path) -> Result<PathBuf> {
    let is_file = path.metadata().map_err(Error::io("find", path))?.is_file();
    ensure(is_file, format_args!("{} is not a file: name lockstep.so itself", path.display()))?;
    std::path::absolute(path).map_err(Error::io("find", path))
}

/// Searches for the module in the folders that the help lists.
fn find() -> Option<PathBuf> {
    let beside = invocation::program().and_then(Path::parent);
    let installed = beside.and_then(Path::parent).map(|prefix| prefix.join("lib/ossl-modules"));
    let near = beside.into_iter().flat_map(|folder| NAMES.map(|name| folder.join(name)));
    let far = installed.into_iter().chain(std::iter::once_with(modules_folder).flatten());
    near.chain(far.map(|folder| folder.join(NAMES[0]))).find(|path| path.is_file())
}

/// The folder in which the installed OpenSSL searches for modules, if there is one.
fn modules_folder() -> Option<PathBuf> {
    let mut command = Command::new("openssl");
    let output = command.args(["version", "-m"]).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let output = String::from_utf8(output.stdout).ok()?;
    // MODULESDIR: "/usr/lib/x86_64-linux-gnu/ossl-modules"
    let folder = output.trim().strip_prefix("MODULESDIR:")?.trim().trim_matches('"');
    Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute())
}

/// Quotes a path or another value for config(5), if it contains special characters.
fn quoted(path: &Path) -> Result<String> {
    let cannot = |why| failed(format!("{} cannot be written in openssl.cnf: {why}", path.display()));
    let text = path.to_str().ok_or_else(|| cannot("it is not UTF-8"))?;
    if text.contains(char::is_control) {
        return Err(cannot("it has control characters"));
    }
    // The dynamic loader replaces these strings after OpenSSL has read the file, and they cannot be escaped.
    if text.split('$').skip(1).any(|after| {
        let after = after.strip_prefix('{').unwrap_or(after);
        REPLACED.iter().any(|name| after.starts_with(name))
    }) {
        return Err(cannot("the system replaces $ORIGIN, $LIB and $PLATFORM in it"));
    }
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:,".contains(c);
    if text.chars().all(is_plain) {
        return Ok(text.into());
    }
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Sets a value. In the template the setting is a comment; the line of this comment is replaced.
fn set(text: &mut String, name: &str, value: &str) {
    let shown = format!("# {name} = ");
    let line = |line: &str| match line.starts_with(&shown) {
        true => format!("{name} = {value}\n"),
        false => format!("{line}\n"),
    };
    *text = text.lines().map(line).collect();
}

#[cfg(test)]
mod tests;
