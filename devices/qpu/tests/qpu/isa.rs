//! Tests of the encoding, decoding and text of instructions.

use lockstep_qpu::isa::{
    AddOp, Alu, Branch, BranchCondition, Condition, DecodeError, Destination, ImmediateKind, Instruction,
    LoadImmediate, MulOp, Mux, Semaphore, Signal, SmallImmediate, disassemble, registers,
};

/// Words that known tools generate for these instructions, and the text of the instructions.
const WORDS: [(u64, &str); 3] = [
    (0x1000_09e7_009e_7000, "nop"),
    (0x3000_09e7_009e_7000, "nop;  thrend"),
    (0xa000_09e7_009e_7000, "nop;  ldtmu0"),
];

#[test]
fn known_words() {
    for (word, text) in WORDS {
        let instruction = Instruction::decode(word).unwrap();
        assert_eq!((instruction.encode(), &*instruction.to_string()), (word, text), "{word:#x}");
    }
    assert_eq!(Instruction::Alu(Alu::NOP).encode(), WORDS[0].0);
}

/// A generator of pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next() as usize % from.len()]
    }

    fn address(&mut self) -> u8 {
        (self.next() % 64) as u8
    }

    fn bit(&mut self) -> bool {
        self.next() & 1 == 1
    }

    fn destination(&mut self) -> Destination {
        Destination {
            pack: (self.next() % 16) as u8,
            pm: self.bit(),
            add_condition: self.pick(Condition::ALL),
            mul_condition: self.pick(Condition::ALL),
            sets_flags: self.bit(),
            is_swapped: self.bit(),
            add: self.address(),
            mul: self.address(),
        }
    }

    fn instruction(&mut self) -> Instruction {
        let to = self.destination();
        match self.next() % 4 {
            0 => Instruction::Alu(Alu {
                signal: self.pick(Signal::ALL),
                unpack: (self.next() % 8) as u8,
                to,
                mul: self.pick(MulOp::ALL),
                add: self.pick(AddOp::ALL),
                read_a: self.address(),
                read_b: self.address(),
                add_inputs: [self.pick(Mux::ALL), self.pick(Mux::ALL)],
                mul_inputs: [self.pick(Mux::ALL), self.pick(Mux::ALL)],
            }),
            1 => {
                let kinds = [ImmediateKind::Word, ImmediateKind::PairsSigned, ImmediateKind::PairsUnsigned];
                let value = self.next() as u32;
                Instruction::LoadImmediate(LoadImmediate { kind: self.pick(&kinds), to, value })
            }
            2 => {
                let number = (self.next() % 16) as u8;
                Instruction::Semaphore(Semaphore { to, number, decrements: self.bit() })
            }
            _ => Instruction::Branch(Branch {
                condition: self.pick(BranchCondition::ALL),
                is_relative: self.bit(),
                register: self.bit().then(|| self.address() % 32),
                is_swapped: self.bit(),
                link_add: self.address(),
                link_mul: self.address(),
                offset: self.next() as i32,
            }),
        }
    }
}

#[test]
fn what_is_encoded_is_decoded() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let instruction = random.instruction();
        let word = instruction.encode();
        assert_eq!(Instruction::decode(word), Ok(instruction), "{word:#x}");
    }
}

#[test]
fn any_word_is_an_instruction_or_an_error() {
    let mut random = Random(2);
    let mut instructions = 0;
    for _ in 0..200_000 {
        let word = random.next();
        if let Ok(instruction) = Instruction::decode(word) {
            assert_eq!(instruction.encode(), word);
            assert!(!instruction.to_string().is_empty());
            instructions += 1;
        }
    }
    assert!((50_000..190_000).contains(&instructions), "{instructions}");
}

#[test]
fn fields_without_a_meaning_are_named() {
    let nop = Alu::NOP;
    let word = Instruction::Alu(nop).encode();
    let refused = |word: u64| Instruction::decode(word).unwrap_err();
    assert_eq!(refused(word | 9 << 24), DecodeError { field: "op_add", value: 9 });
    assert_eq!(refused(0xe << 60 | 2 << 57), DecodeError { field: "unpack", value: 2 });
    assert_eq!(refused(0xf << 60 | 12 << 52), DecodeError { field: "cond_br", value: 12 });
    // A branch that has the number of a register but does not use it is refused, as is a semaphore with a number of
    // more than four bits.
    assert_eq!(refused(0xf << 60 | 3 << 45).field, "reserved");
    assert_eq!(refused(0xe << 60 | 4 << 57 | 1 << 5).field, "reserved");
    assert!(refused(word | 9 << 24).to_string().contains("the value 9 in the field op_add"));
}

#[test]
fn small_immediates() {
    // The values are from table 5 of Broadcom's guide and from vc4asm's addendum.
    let values = [
        (0, 0),
        (15, 15),
        (16, 0xffff_fff0),
        (31, 0xffff_ffff),
        (32, 1.0f32.to_bits()),
        (39, 128.0f32.to_bits()),
        (40, (1.0f32 / 256.0).to_bits()),
        (47, 0.5f32.to_bits()),
        (48, 0xffff_fff0),
        (49, 0xffff_fff1),
        (63, 0xffff_ffff),
    ];
    for (code, value) in values {
        assert_eq!(SmallImmediate::of_code(code).value(), value, "{code}");
    }
    for code in 0..64 {
        assert_eq!(SmallImmediate::of_code(code).code(), Some(code));
    }
    assert_eq!(SmallImmediate::Value(16).code(), None);
}

#[test]
fn constants_of_elements() {
    // Element 0 has the bits 11, element 1 the bits 10, element 15 the bits 01.
    let value = 0x0003_8001;
    let of = |kind, index| LoadImmediate { kind, to: Destination::NONE, value }.element(index) as i32;
    assert_eq!([0, 1, 2, 15].map(|index| of(ImmediateKind::PairsSigned, index)), [-1, -2, 0, 1]);
    assert_eq!([0, 1, 2, 15].map(|index| of(ImmediateKind::PairsUnsigned, index)), [3, 2, 0, 1]);
    assert_eq!(of(ImmediateKind::Word, 3), 0x0003_8001);
}

#[test]
fn text() {
    let always = Destination { add_condition: Condition::Always, add: 3, ..Destination::NONE };
    let add = Alu {
        to: Destination { sets_flags: true, ..always },
        add: AddOp::Add,
        read_a: 7,
        unpack: 4,
        add_inputs: [Mux::A, Mux::R1],
        ..Alu::NOP
    };
    let both = Alu {
        to: Destination {
            pack: 5,
            is_swapped: true,
            mul_condition: Condition::NotZero,
            mul: 9,
            add: registers::R0,
            ..always
        },
        add: AddOp::Xor,
        mul: MulOp::V8min,
        signal: Signal::SmallImmediate,
        read_b: 49 + 2,
        add_inputs: [Mux::R2, Mux::R3],
        mul_inputs: [Mux::R1, Mux::R1],
        ..Alu::NOP
    };
    let load = LoadImmediate { kind: ImmediateKind::Word, to: always, value: 0x1234_5678 };
    let pairs = LoadImmediate { kind: ImmediateKind::PairsSigned, to: always, value: 0x0003_8001 };
    let branch = Branch {
        condition: BranchCondition::AnyNotZero,
        is_relative: true,
        register: None,
        is_swapped: false,
        link_add: registers::NOP,
        link_mul: registers::NOP,
        offset: -64,
    };
    let jump = Branch {
        is_relative: false,
        register: Some(5),
        offset: 0,
        condition: BranchCondition::Always,
        ..branch
    };
    let semaphore = Semaphore { to: Destination::NONE, number: 7, decrements: true };
    for (instruction, text) in [
        (Instruction::Alu(add), "add.setf ra3, ra7.8a, r1"),
        (Instruction::Alu(both), "xor r0, r2, r3;  mov.ifnz ra9.8b, r1 >> 3"),
        (Instruction::LoadImmediate(load), "ldi ra3, 0x12345678"),
        (Instruction::LoadImmediate(pairs), "ldipes ra3, [-1,-2,0,0,0,0,0,0,0,0,0,0,0,0,0,1]"),
        (Instruction::Semaphore(semaphore), "sacq -, 7"),
        (Instruction::Branch(jump), "bra -, ra5"),
    ] {
        assert_eq!(instruction.to_string(), text);
    }
    assert_eq!(Instruction::Branch(branch).show(0x100), "brr.anynz -, 0xe0");
    let lines = disassemble(&[Instruction::Branch(branch).encode(), u64::MAX]);
    assert!(lines.starts_with("0x0000  f03809e7ffffffc0  brr"), "{lines}");
    assert!(lines.contains("0x0008  ffffffffffffffff  .data"), "{lines}");
}
