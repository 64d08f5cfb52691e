//! Generates the JavaScript that loads a module of WebAssembly and calls its functions.
//!
//! `lockstep-web-bindgen MODULE.wasm FOLDER` writes `NAME.js` and `NAME_bg.wasm` to the folder, where `NAME` is that of the module.

use std::env::args_os;
use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<_> = args_os().skip(1).collect();
    let [module, folder] = &arguments[..] else {
        eprintln!("usage: lockstep-web-bindgen MODULE.wasm FOLDER");
        return ExitCode::from(2);
    };
    let generate = || {
        // Names of functions take a third of the module, and are not needed.
        let mut generator = Bindgen::new();
        generator.input_path(module).web(true)?.typescript(false).remove_name_section(true);
        generator.remove_producers_section(true).generate(folder)
    };
    match generate() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstep-web-bindgen: {error:#}");
            ExitCode::FAILURE
        }
    }
}
