use std::rc::Rc;

use iced_x86::Register;

use super::change::{Changer, decode};
use super::*;
use crate::machine::{Machine, Program};
use crate::taint::Taint;
use crate::value::Domain;
use crate::{contracts, semantics};

const START: u64 = 0x1000;

fn image(code: &[u8]) -> Image {
    Image::of_function(START, code)
}

/// True if the removal of the instruction at an offset has an effect on RAX, on a branch or on an address.
fn removal_has_effect(code: &[u8], offset: u64) -> bool {
    has_effect(Kind::Dropped, code, offset)
}

/// True if a change of the instruction at an offset has an effect on RAX, on a branch or on an address.
fn has_effect(kind: Kind, code: &[u8], offset: u64) -> bool {
    let image = Arc::new(image(code));
    let mutant = Changer::new(&image).change(kind, START + offset, &mut Random(1)).unwrap();
    assert_eq!(mutant.after().len(), if kind == Kind::Order { 2 } else { 0 });
    let mut program = Program::<Taint>::new(image, semantics::all(), contracts::answer);
    program.change = Some(mutant.change());
    let mut machine = Machine::new(Rc::new(program));
    machine.clear_scratch();
    machine.call("f", &[]).expect("the function returns");
    let result = machine.register(Register::RAX);
    !machine.findings.is_empty() || result.iter().any(|byte| Taint::secret(*byte) != 0)
}

#[test]
fn a_change_of_a_register_has_an_effect_until_it_is_overwritten() {
    // mov eax,1; mov eax,2; ret
    let code = [0xb8, 1, 0, 0, 0, 0xb8, 2, 0, 0, 0, 0xc3];
    assert_eq!([0, 5].map(|offset| removal_has_effect(&code, offset)), [false, true]);
    // mov eax,1; mov al,2; ret: AL is only a part of EAX.
    assert!(removal_has_effect(&[0xb8, 1, 0, 0, 0, 0xb0, 2, 0xc3], 0));
    // mov eax,0x10; and eax,0x1f; ret: the result is the same.
    assert!(!removal_has_effect(&[0xb8, 0x10, 0, 0, 0, 0x83, 0xe0, 0x1f, 0xc3], 5));
    // mov eax,0x10; and eax,0x0f; ret
    assert!(removal_has_effect(&[0xb8, 0x10, 0, 0, 0, 0x83, 0xe0, 0x0f, 0xc3], 5));
}

#[test]
fn a_change_of_flags_has_an_effect_if_a_branch_reads_them() {
    // cmp eax,16; xor eax,eax; ret
    assert!(!removal_has_effect(&[0x83, 0xf8, 0x10, 0x31, 0xc0, 0xc3], 0));
    // xor eax,eax; cmp eax,16; jb +0; ret
    assert!(removal_has_effect(&[0x31, 0xc0, 0x83, 0xf8, 0x10, 0x72, 0, 0xc3], 2));
    // xor eax,eax; cmp eax,16; jae +1; ret; ud2: the branch is not taken in either program.
    assert!(!removal_has_effect(&[0x31, 0xc0, 0x83, 0xf8, 0x10, 0x73, 1, 0xc3, 0x0f, 0x0b], 5));
    // xor eax,eax; cmp eax,16; jb +1; nop; ret
    assert!(removal_has_effect(&[0x31, 0xc0, 0x83, 0xf8, 0x10, 0x72, 1, 0x90, 0xc3], 5));
}

#[test]
fn a_change_of_memory_has_an_effect_if_it_is_read() {
    // mov [rsp-8],rcx; xor eax,eax; ret
    assert!(!removal_has_effect(&[0x48, 0x89, 0x4c, 0x24, 0xf8, 0x31, 0xc0, 0xc3], 0));
    // mov [rsp-8],rcx; mov rax,[rsp-8]; ret
    assert!(removal_has_effect(&[0x48, 0x89, 0x4c, 0x24, 0xf8, 0x48, 0x8b, 0x44, 0x24, 0xf8, 0xc3], 0));
    // mov ecx,8; mov eax,[rsp+rcx-8]; xor eax,eax; ret: an address depends on RCX.
    let code = [0xb9, 8, 0, 0, 0, 0x8b, 0x44, 0x0c, 0xf8, 0x31, 0xc0, 0xc3];
    assert!(removal_has_effect(&code, 0));
}

#[test]
fn changes_are_reproducible_and_keep_the_length() {
    // add rax,[rdi+8]; mov [rdi+16],rax; shl rax,3; vpxor xmm1,xmm2,xmm3; ret
    let code = [
        0x48, 0x03, 0x47, 0x08, 0x48, 0x89, 0x47, 0x10, 0x48, 0xc1, 0xe0, 0x03, 0xc5, 0xe9, 0xef, 0xcb, 0xc3,
    ];
    let image = image(&code);
    let places: Vec<u64> = decode(&code, START).iter().map(|i| i.ip()).collect();
    let changes = |seed| {
        let (mut changer, mut random) = (Changer::new(&image), Random(seed));
        let mut found = Vec::new();
        for kind in Kind::ALL {
            for place in (0..40).map(|index| places[index % 4]) {
                found.extend(changer.change(kind, place, &mut random));
            }
        }
        found
    };
    let mutants = changes(5);
    for kind in Kind::ALL {
        assert!(mutants.iter().any(|mutant| mutant.kind == kind), "{kind}");
    }
    for mutant in &mutants {
        let len: usize = mutant.before.iter().map(|i| i.len()).sum();
        assert_eq!(mutant.code.len(), len, "{}", mutant.text());
        let start = (mutant.address - START) as usize;
        assert_ne!(mutant.code, code[start..start + len], "{}", mutant.text());
    }
    let texts = |mutants: &[Mutant]| mutants.iter().map(Mutant::text).collect::<Vec<_>>();
    assert_eq!(texts(&mutants), texts(&changes(5)));
    assert_ne!(texts(&mutants), texts(&changes(6)));
}

#[test]
fn instructions_that_do_not_depend_on_each_other_are_not_exchanged() {
    // mov [rdi],eax; mov [rdi+4],ecx; mov [rdi+6],edx; ret: the second and the third overlap.
    let code = [0x89, 0x07, 0x89, 0x4f, 0x04, 0x89, 0x57, 0x06, 0xc3];
    let image = image(&code);
    let exchanged =
        |offset| Changer::new(&image).change(Kind::Order, START + offset, &mut Random(1)).is_some();
    assert_eq!([exchanged(0), exchanged(2)], [false, true]);
}

#[test]
fn an_exchange_has_an_effect_if_the_order_matters() {
    // mov eax,1; mov eax,2; ret
    assert!(has_effect(Kind::Order, &[0xb8, 1, 0, 0, 0, 0xb8, 2, 0, 0, 0, 0xc3], 0));
    // xor eax,eax; add eax,1; add eax,2; ret: the sum does not depend on the order.
    assert!(!has_effect(Kind::Order, &[0x31, 0xc0, 0x83, 0xc0, 1, 0x83, 0xc0, 2, 0xc3], 2));
    // jmp +5; mov eax,1; mov eax,2; ret: a jump to the second instruction, where the exchanged program has the first one.
    assert!(has_effect(Kind::Order, &[0xeb, 5, 0xb8, 1, 0, 0, 0, 0xb8, 2, 0, 0, 0, 0xc3], 2));
    // jmp +5; mov eax,1; mov al,2; ret: in the exchanged program, the jump leads into an instruction.
    assert!(has_effect(Kind::Order, &[0xeb, 5, 0xb8, 1, 0, 0, 0, 0xb0, 2, 0xc3], 2));
}

#[test]
fn a_line_of_the_list_may_name_the_instructions_before_and_after() {
    // cmp ecx,11; jb +1; nop; ret
    let image = image(&[0x83, 0xf9, 0x0b, 0x72, 0x01, 0x90, 0xc3]);
    let mutant = Changer::new(&image).change(Kind::Dropped, START + 3, &mut Random(1)).unwrap();
    for (around, describes) in [
        ("after cmp e*,0Bh", true),
        ("after cmp e*,0Dh", false),
        ("after cmp e*,0Bh before nop", true),
        ("before nop", true),
        ("after cmp e*,0Bh before ret", false),
    ] {
        let list = parse(&format!("dropped: f: jb * -> nothing {around}")).unwrap();
        assert_eq!(list[0].describes(&image, &mutant), describes, "{around}");
    }
}
