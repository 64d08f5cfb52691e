//! Tests that the extension module was built, in the same folder as the test programs. The tests of its behaviour are in Python.

#[test]
fn the_extension_has_its_initialisation_function() {
    let program = std::env::current_exe().expect("the path of the test program");
    let extension = program.with_file_name("liblockstep_native.so");
    let bytes = std::fs::read(&extension).expect("the extension, which is built with the tests");
    // The names of exported functions end with a null byte. Python looks for the function by the module's name.
    let name = b"\0PyInit__native\0";
    assert!(bytes.windows(name.len()).any(|window| window == name), "{}", extension.display());
}
