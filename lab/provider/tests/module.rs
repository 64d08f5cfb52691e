//! The module is built beside the test programs. `tools/provider-test` tests its behaviour.

#[test]
fn the_module_has_its_entry_point() {
    let module = std::env::current_exe().expect("a path").with_file_name("liblockstep_lab_provider.so");
    let bytes = std::fs::read(&module).expect("the module, which is built with the tests");
    // The names of exported functions end with a null byte.
    let name = b"\0OSSL_provider_init\0";
    assert!(bytes.windows(name.len()).any(|window| window == name), "{}", module.display());
}
