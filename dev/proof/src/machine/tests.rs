use super::*;
use crate::taint::Taint;
use crate::{contracts, semantics};

/// The kinds of the findings when a function is called.
fn findings(code: &[u8]) -> Vec<Kind> {
    findings_in(Image::of_function(0x1000, code))
}

fn findings_in(image: Image) -> Vec<Kind> {
    let program = Program::<Taint>::new(Arc::new(image), semantics::all(), contracts::answer);
    let mut machine = Machine::new(Rc::new(program));
    machine.clear_scratch();
    machine.call("f", &[]).expect("the function returns");
    machine.findings.keys().map(|finding| finding.kind).collect()
}

#[test]
fn a_function_preserves_registers() {
    // mov eax,1; ret
    assert_eq!(findings(&[0xb8, 1, 0, 0, 0, 0xc3]), []);
    // mov ebx,1; ret
    assert_eq!(findings(&[0xbb, 1, 0, 0, 0, 0xc3]), [Kind::Preserved]);
    // push rbx; mov ebx,1; pop rbx; ret
    assert_eq!(findings(&[0x53, 0xbb, 1, 0, 0, 0, 0x5b, 0xc3]), []);
    // push rbx; call +4; pop rbx; ret; nop; mov ebx,1; ret: the called function does not preserve RBX, although its caller does.
    assert_eq!(
        findings(&[0x53, 0xe8, 3, 0, 0, 0, 0x5b, 0xc3, 0x90, 0xbb, 1, 0, 0, 0, 0xc3]),
        [Kind::Preserved]
    );
}

#[test]
fn the_stack_is_restored_as_deep_as_it_was_written() {
    // mov [rsp-1000],rsp; push rsp; pop rax; ret
    let image =
        Image::of_function(0x1000, &[0x48, 0x89, 0xa4, 0x24, 0x18, 0xfc, 0xff, 0xff, 0x54, 0x58, 0xc3]);
    let program = Rc::new(Program::<Taint>::new(Arc::new(image), semantics::all(), contracts::answer));
    let stack = |machine: &Machine<Taint>| {
        let region = machine.memory.region(STACK_END - STACK as u64).expect("the stack");
        (region.bytes().to_vec(), region.writers().to_vec())
    };
    let mut machine = Machine::new(Rc::clone(&program));
    machine.call("f", &[]).expect("the function returns");
    assert_ne!(stack(&machine), stack(&Machine::new(Rc::clone(&program))));
    machine.clear_scratch();
    assert_eq!(stack(&machine), stack(&Machine::new(program)));
}

#[test]
fn only_a_called_outlined_function_may_change_registers() {
    let outlined = |code: &[u8]| {
        let mut image = Image::of_function(0x1000, code);
        let symbol = crate::image::Symbol { name: "OUTLINED_FUNCTION_0".into(), ..image.symbols[0].clone() };
        image.symbols[0].size = 9;
        image.symbols.push(crate::image::Symbol { address: 0x1009, size: code.len() as u64 - 9, ..symbol });
        findings_in(image)
    };
    // push rbx; call +3; pop rbx; ret; nop; then in the outlined function: mov ebx,1; ret
    assert_eq!(outlined(&[0x53, 0xe8, 3, 0, 0, 0, 0x5b, 0xc3, 0x90, 0xbb, 1, 0, 0, 0, 0xc3]), []);
    // mov ebx,1; jmp +2; nop; nop; then in the outlined function: ret
    assert_eq!(outlined(&[0xbb, 1, 0, 0, 0, 0xeb, 2, 0x90, 0x90, 0xc3]), [Kind::Preserved]);
}

#[test]
fn operands_of_sse_are_aligned() {
    let stops = |code: &[u8]| std::panic::catch_unwind(|| findings(code)).is_err();
    // movups xmm0,[rsp-23]; ret, and movaps, whose address is not a multiple of 16.
    assert!(!stops(&[0x0f, 0x10, 0x44, 0x24, 0xe9, 0xc3]));
    assert!(stops(&[0x0f, 0x28, 0x44, 0x24, 0xe9, 0xc3]));
    // pxor xmm0,[rsp-23], and with VEX: vpxor xmm0,xmm0,[rsp-23].
    assert!(stops(&[0x66, 0x0f, 0xef, 0x44, 0x24, 0xe9, 0xc3]));
    assert!(!stops(&[0xc5, 0xf9, 0xef, 0x44, 0x24, 0xe9, 0xc3]));
}

#[test]
fn secrets_beside_copies_of_results_are_found() {
    use crate::taint::Tainted;
    let result: Vec<u8> = (1..=20).collect();
    let places = |bytes: &[u8]| {
        let secrets: Vec<_> = bytes.iter().map(|byte| Tainted::secret(*byte)).collect();
        remains::secret_places::<Taint>(&secrets, &[&result])
    };
    assert_eq!(places(&result), []);
    // Two copies, one of them of a part.
    assert_eq!(places(&[&result[..], &result[4..8]].concat()), []);
    assert_eq!(places(&[1, 2, 3]), [0, 1, 2]);
    assert_eq!(places(&[&[90][..], &result[2..7], &[91, 1, 2, 3]].concat()), [0, 6, 7, 8, 9]);
}
