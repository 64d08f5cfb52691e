//! Checks that the part of the shaders that is generated from the circuits is up to date.

use std::path::Path;

/// `LOCKSTEP_REGENERATE=1 cargo test -p lockstep-opengl circuit::` writes this part again.
#[test]
fn shader_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders/sbox.glsl");
    let text = lockstep_circuit::glsl(&lockstep_circuit::aes());
    if std::env::var_os("LOCKSTEP_REGENERATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap_or_default() == text, "{} is out of date", path.display());
}
