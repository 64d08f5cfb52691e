//! Prints all programs as JSON, for the page in `interfaces/web/page`.

use lockstep_wgpu::{exported_constants, exported_programs, exported_table};
use serde_json::{Value, json};

fn main() {
    let programs = exported_programs()
        .into_iter()
        .map(|program| json!({ "name": program.name, "wgsl": program.wgsl, "workgroup": program.workgroup }));
    let constants = exported_constants().into_iter().map(|(name, value)| (name.to_owned(), json!(value)));
    let exported = json!({
        "programs": programs.collect::<Vec<_>>(),
        "constants": Value::Object(constants.collect()),
        "tables": { "encrypt": exported_table(false), "decrypt": exported_table(true) },
    });
    println!("{exported}");
}
