//! Help and messages, compared with snapshots. `SNAPSHOTS=overwrite cargo test -p lockstep-lab` updates them.

use snapbox::{assert_data_eq, file};

use crate::common::*;

/// The command line, followed by the output of the command.
fn output_of(folder: &Folder, args: &str) -> String {
    let ended = folder.run(args.split_whitespace());
    let text = format!("{}{}", ended.text(), ended.stderr);
    format!("$ lockstep-lab {args}\n{text}? {}\n\n", ended.code)
}

#[test]
fn help() {
    let folder = Folder::new();
    let commands = [
        "",
        "lab ",
        "lab cell ",
        "lab cell trace ",
        "lab cell asm ",
        "lab cuda ",
        "lab g80 ",
        "lab geforce ",
        "lab opengl ",
        "lab qpu ",
        "lab qpu trace ",
        "lab qpu asm ",
        "lab qpu run ",
    ];
    let all: String =
        commands.iter().map(|command| output_of(&folder, &format!("{command}--help"))).collect();
    assert_data_eq!(all, file!["snapshots/help.txt"].raw());
}

#[test]
fn errors() {
    let folder = Folder::new();
    folder.write("program.s", "nop\n frob $3,$4\n");
    folder.write("hazard.qasm", "nop\nmov ra0, 1\nmov r0, ra0\n");
    folder.write("wrong.qpu", "void kernel(Ptr<Int> a) {\n    Float x = *a\n}\n");
    folder.write("right.qpu", "void kernel(Ptr<Int> a, Int n) { *a = n; }\n");
    folder.write("data", [0; 4]);
    let cases = [
        "lab cell trace abacus",
        "lab cell trace ctr4 --pass Ofb",
        "lab cell trace ctr4 --bits 64",
        "lab cell asm program.s",
        "lab cell asm nothing.s",
        "lab cell --page page",
        "lab qpu trace abacus",
        "lab qpu trace packed --mode ofb",
        "lab qpu trace packed --bits 64",
        "lab qpu asm program.s",
        "lab qpu asm hazard.qasm",
        "lab qpu asm --run hazard.qasm --uniforms 0=many",
        "lab qpu run wrong.qpu",
        "lab qpu run right.qpu --set n=1",
        "lab qpu run right.qpu --in a=data",
        "lab qpu run right.qpu --in b=data",
    ];
    let all: String = cases.iter().map(|case| output_of(&folder, case)).collect();
    assert_data_eq!(all, file!["snapshots/errors.txt"].raw());
}
