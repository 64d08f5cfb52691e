use super::change::{Changer, decode};
use super::random::Random;
use super::*;
use crate::image::{Segment, Symbol};

const START: u64 = 0x1000;

/// A program that consists of one function.
fn image(code: &[u8]) -> Image {
    let segment = Segment { address: START, bytes: code.to_vec(), is_writable: false, is_code: true };
    let symbol = Symbol { address: START, size: code.len() as u64, name: "f".into(), is_function: true };
    Image {
        segments: vec![segment],
        symbols: vec![symbol],
        functions: BTreeMap::from([("f".into(), START)]),
        imports: BTreeMap::new(),
        verdict: None,
    }
}

/// The reason why the removal of the instruction at an offset has no effect.
fn reason_of_removal(code: &[u8], offset: u64) -> Option<Reason> {
    let image = image(code);
    let mutant = Changer::new(&image).change(Kind::Dropped, START + offset, &mut Random::new(1)).unwrap();
    assert!(mutant.after().is_empty());
    dead::reason(&image, &mutant)
}

#[test]
fn registers_that_are_overwritten_are_dead() {
    // mov eax,1; mov eax,2; ret: EAX is the result.
    let code = [0xb8, 1, 0, 0, 0, 0xb8, 2, 0, 0, 0, 0xc3];
    assert_eq!(reason_of_removal(&code, 0), Some(Reason::Dead));
    assert_eq!(reason_of_removal(&code, 5), None);
    // mov eax,1; mov al,2; ret: AL is only a part.
    assert_eq!(reason_of_removal(&[0xb8, 1, 0, 0, 0, 0xb0, 2, 0xc3], 0), None);
    // mov r8d,1; ret: the caller does not use R8. mov ebx,1; ret: functions preserve RBX.
    assert_eq!(reason_of_removal(&[0x41, 0xb8, 1, 0, 0, 0, 0xc3], 0), Some(Reason::Dead));
    assert_eq!(reason_of_removal(&[0xbb, 1, 0, 0, 0, 0xc3], 0), None);
}

#[test]
fn a_load_at_another_address_has_an_effect() {
    // mov r8,[rdi]; ret: the caller does not use R8, but the new address may be out of bounds.
    let code = [0x4c, 0x8b, 0x07, 0xc3];
    assert_eq!(reason_of_removal(&code, 0), Some(Reason::Dead));
    let image = image(&code);
    let before = decode(&code[..3], START);
    // mov r8,[rsi]; mov r9,[rdi]
    for (code, reason) in [([0x4c, 0x8b, 0x06], None), ([0x4c, 0x8b, 0x0f], Some(Reason::Dead))] {
        let mutant =
            Mutant { kind: Kind::Register, address: START, code: code.to_vec(), before: before.clone() };
        assert_eq!(dead::reason(&image, &mutant), reason);
    }
}

#[test]
fn flags_are_live_until_a_branch_reads_them() {
    // cmp eax,16; xor eax,eax; ret
    assert_eq!(reason_of_removal(&[0x83, 0xf8, 0x10, 0x31, 0xc0, 0xc3], 0), Some(Reason::Dead));
    // cmp eax,16; jb +2; xor eax,eax; ret
    assert_eq!(reason_of_removal(&[0x83, 0xf8, 0x10, 0x72, 0x02, 0x31, 0xc0, 0xc3], 0), None);
}

#[test]
fn a_branch_that_panics_is_a_check() {
    // cmp eax,16; jae +1; ret; ud2
    let code = [0x83, 0xf8, 0x10, 0x73, 0x01, 0xc3, 0x0f, 0x0b];
    assert_eq!(reason_of_removal(&code, 0), Some(Reason::Check));
    assert_eq!(reason_of_removal(&code, 3), Some(Reason::Check));
}

#[test]
fn stores_and_loops_have_effects() {
    // mov [rdi],eax; ret
    assert_eq!(reason_of_removal(&[0x89, 0x07, 0xc3], 0), None);
    // dec ecx; jne -4; ret: ECX is live at the head of the loop.
    assert_eq!(reason_of_removal(&[0xff, 0xc9, 0x75, 0xfc, 0xc3], 0), None);
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
        let (mut changer, mut random) = (Changer::new(&image), Random::new(seed));
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
        |offset| Changer::new(&image).change(Kind::Order, START + offset, &mut Random::new(1)).is_some();
    assert_eq!([exchanged(0), exchanged(2)], [false, true]);
}

#[test]
fn a_line_of_the_list_may_name_the_instruction_before() {
    // cmp ecx,11; jb +1; nop; ret
    let image = image(&[0x83, 0xf9, 0x0b, 0x72, 0x01, 0x90, 0xc3]);
    let mutant = Changer::new(&image).change(Kind::Dropped, START + 3, &mut Random::new(1)).unwrap();
    for (previous, describes) in [("cmp e*,0Bh", true), ("cmp e*,0Dh", false)] {
        let list = parse(&format!("dropped: f: jb * -> nothing after {previous}")).unwrap();
        assert_eq!(list[0].describes(&image, &mutant), describes, "{previous}");
    }
}
