//! Writes programs as source for the GNU assembler (`.s`) and as a raw image from address 0 (`.raw`): every kernel, kernels as functions, a
//! program with every instruction, and `tests/gnu/text.s`, which tests the syntax.

use std::path::Path;

use lockstep_spu::asm::{Image, assemble};
use lockstep_spu::isa::{Inst, Op, Reg};
use lockstep_spu::kernels::KERNELS;
use lockstep_spu::schedule::Effort;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: export FOLDER")?;
    let write = |name: &str, image: &Image| -> std::io::Result<()> {
        let base = Path::new(&folder).join(name);
        std::fs::write(base.with_extension("s"), image.source())?;
        std::fs::write(base.with_extension("raw"), image.raw())
    };
    for kernel in KERNELS {
        for (pass, of) in kernel.loops {
            let name = format!("{}-{pass:?}", kernel.name.replace('/', "-"));
            write(&name, &of.compile(10, Effort::Full)?.program.image)?;
        }
    }
    // Writes the kernels as functions. The symbol of a function is not part of the bytes.
    for kernel in KERNELS {
        if let Ok(function) = kernel.loops[0].1.function(10, "aes") {
            write(&format!("function-{}", kernel.name.replace('/', "-")), &function.image)?;
        }
    }
    write("every-instruction", &every_instruction()?)?;
    // The file `text.s` is replaced by the source that the program was assembled from, which is written by hand.
    const TEXT: &str = include_str!("../tests/gnu/text.s");
    write("text", &assemble("text.s", TEXT)?)?;
    std::fs::write(Path::new(&folder).join("text.s"), TEXT)?;
    Ok(())
}

/// A program with every instruction, each with operands of every type.
fn every_instruction() -> Result<Image, Box<dyn std::error::Error>> {
    let mut text = String::new();
    for &op in Op::ALL {
        let reg = Reg::new;
        // The count of a right shift is negative.
        let is_right = ["rotm", "rothm", "rotqm"].iter().any(|start| op.mnemonic().starts_with(start));
        let imm = if is_right { -5 } else { 5 };
        let inst = Inst { op, rt: reg(3), ra: reg(127), rb: reg(64), rc: reg(5), imm, to_branch: 9 };
        let inst = Inst::decode(inst.encode()).ok_or("encoded, so it decodes")?;
        text += &format!("{inst}\n");
    }
    // A branch hint refers to an address after the hint, so instructions must follow.
    text += &"nop\nlnop\n".repeat(8);
    // The GNU assembler pads sections to a multiple of 16 bytes, so the program ends with the padding.
    text += ".align 4\n";
    Ok(assemble("every.s", &text)?)
}
