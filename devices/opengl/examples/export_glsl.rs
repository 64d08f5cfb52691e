//! Prints the programs as JSON, for the page in `interfaces/web/page`.

use lockstep_opengl::{exported_programs, exported_tables};
use serde_json::{Value, json};

fn main() {
    let programs = exported_programs().into_iter().map(|program| {
        let tables = program.tables.iter().map(|(uniform, name)| ((*uniform).to_owned(), json!(name)));
        json!({
            "kernel": program.kernel, "pass": program.pass, "keyBits": program.key_bits, "vertex": program.vertex,
            "fragment": program.fragment, "feedback": program.feedback, "uniforms": program.uniforms,
            "tables": Value::Object(tables.collect()),
        })
    });
    let tables = exported_tables().into_iter().map(|(name, words)| (name.to_owned(), json!(words)));
    println!(
        "{}",
        json!({
            "programs": programs.collect::<Vec<_>>(),
            "tables": Value::Object(tables.collect()),
        })
    );
}
