//! Prints the programs as JSON, for the page in `interfaces/web/page`.

use lockstep_opengl::{exported_programs, exported_tables};
use serde_json::{Value, json};

fn main() {
    let programs = exported_programs().into_iter().map(|program| {
        json!({
            "kernel": program.kernel, "pass": program.pass, "keyBits": program.key_bits, "vertex": program.vertex,
            "fragment": program.fragment, "feedback": program.feedback, "uniforms": program.uniforms,
        })
    });
    let [encrypt, decrypt] = exported_tables().map(|tables| {
        Value::Object(tables.into_iter().map(|(name, words)| (name.to_owned(), json!(words))).collect())
    });
    println!(
        "{}",
        json!({
            "programs": programs.collect::<Vec<_>>(),
            "tables": { "encrypt": encrypt, "decrypt": decrypt },
        })
    );
}
