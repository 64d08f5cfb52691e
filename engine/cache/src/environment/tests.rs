
#[test]
fn an_unprivileged_program_reads_its_environment() {
    assert_eq!(super::variable("PATH"), std::env::var_os("PATH"));
}
