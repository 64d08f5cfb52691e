//! Checks that the files of the shaders that are generated from the circuits are up to date.

use std::path::Path;

/// `LOCKSTEP_REGENERATE=1 cargo test -p lockstep-wgpu circuit::` writes these files again.
#[test]
fn shaders_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders/aes");
    for (name, text) in lockstep_circuit::wgsl(&lockstep_circuit::aes()) {
        let path = folder.join(name).with_extension("wgsl");
        if std::env::var_os("LOCKSTEP_REGENERATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "{} is out of date", path.display());
    }
}
