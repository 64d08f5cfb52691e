//! Checks that the headers generated from the circuits are up to date.

use std::path::Path;

/// `LOCKSTEP_REGENERATE=1 cargo test -p lockstep-cuda circuit::` writes the headers again.
#[test]
fn headers_are_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/circuit/aes.cuh");
    let header = lockstep_circuit::cuda(&lockstep_circuit::aes());
    if std::env::var_os("LOCKSTEP_REGENERATE").is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == header,
        "{} is out of date",
        path.display()
    );
}
