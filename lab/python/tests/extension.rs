//! The extension is built beside the test programs. The tests of its behaviour are in Python.

#[test]
fn the_extension_has_both_initialisation_functions() {
    let program = std::env::current_exe().expect("the path of the test program");
    let extension = program.with_file_name("liblockstep_lab_python.so");
    let bytes = std::fs::read(&extension).expect("the extension, which is built with the tests");
    // The names of exported functions end with a null byte. Python looks for the function by the module's name.
    for name in [b"\0PyInit__native\0".as_slice(), b"\0PyInit__lab\0"] {
        assert!(bytes.windows(name.len()).any(|window| window == name), "{}", extension.display());
    }
}
