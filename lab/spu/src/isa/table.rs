//! The instruction set as one table with a line for each instruction. Other modules generate their definitions from
//! this table.
//!
//! The columns are: name, mnemonic, the leftmost eleven bits of the word (shorter opcodes padded with zeros), format,
//! class. The class gives pipe and latency (IBM's table of classes).

/// Calls a macro with the whole table.
macro_rules! with_table {
    ($callback:ident) => {
        $callback! {
            // Words.
            A a 0x0c0 Rr Fx,
            Ai ai 0x0e0 Ri10 Fx,
            Sf sf 0x040 Rr Fx,
            Sfi sfi 0x060 Ri10 Fx,
            Addx addx 0x340 RrInOut Fx,
            Cg cg 0x0c2 Rr Fx,
            Ah ah 0x0c8 Rr Fx,
            // Logic.
            And and 0x0c1 Rr Fx,
            Andc andc 0x2c1 Rr Fx,
            Andi andi 0x0a0 Ri10 Fx,
            Andbi andbi 0x0b0 Ri10Byte Fx,
            Or or 0x041 Rr Fx,
            Ori ori 0x020 Ri10 Fx,
            Orbi orbi 0x030 Ri10Byte Fx,
            Xor xor 0x241 Rr Fx,
            Xorbi xorbi 0x230 Ri10Byte Fx,
            Nor nor 0x049 Rr Fx,
            Selb selb 0x400 Rrr Fx,
            // Constants.
            Il il 0x204 Ri16 Fx,
            Ilh ilh 0x20c Ri16 Fx,
            Ilhu ilhu 0x208 Ri16 Fx,
            Ila ila 0x210 Ri18 Fx,
            Iohl iohl 0x304 Ri16InOut Fx,
            // Shifts in words and halfwords.
            Shli shli 0x07b Ri7 Ws,
            Roti roti 0x078 Ri7 Ws,
            Rotmi rotmi 0x079 Ri7 Ws,
            Rotmai rotmai 0x07a Ri7 Ws,
            Rothi rothi 0x07c Ri7 Ws,
            Shlhi shlhi 0x07f Ri7 Ws,
            Rothmi rothmi 0x07d Ri7 Ws,
            // Shifts and permutations of quadwords.
            Shlqbi shlqbi 0x1db Rr Sh,
            Shlqbii shlqbii 0x1fb Ri7 Sh,
            Shlqby shlqby 0x1df Rr Sh,
            Shlqbyi shlqbyi 0x1ff Ri7 Sh,
            Rotqby rotqby 0x1dc Rr Sh,
            Rotqbyi rotqbyi 0x1fc Ri7 Sh,
            Rotqbii rotqbii 0x1f8 Ri7 Sh,
            Rotqmbyi rotqmbyi 0x1fd Ri7 Sh,
            Rotqmbii rotqmbii 0x1f9 Ri7 Sh,
            Shufb shufb 0x580 Rrr Sh,
            Gbb gbb 0x1b2 RrA Sh,
            Fsmb fsmb 0x1b6 RrA Sh,
            Fsmbi fsmbi 0x194 Ri16 Sh,
            // Comparisons.
            Ceq ceq 0x3c0 Rr Fx,
            Ceqi ceqi 0x3e0 Ri10 Fx,
            Ceqb ceqb 0x3d0 Rr Fx,
            Ceqbi ceqbi 0x3f0 Ri10Byte Fx,
            Cgti cgti 0x260 Ri10 Fx,
            Clgtbi clgtbi 0x2f0 Ri10Byte Fx,
            Cgtbi cgtbi 0x270 Ri10Byte Fx,
            // Local store.
            Lqd lqd 0x1a0 Ri10Quad Ls,
            Lqx lqx 0x1c4 Rr Ls,
            Lqa lqa 0x184 Ri16Absolute Ls,
            Lqr lqr 0x19c Ri16Relative Ls,
            Stqd stqd 0x120 Ri10QuadStore St,
            Stqx stqx 0x144 RrStore St,
            Stqa stqa 0x104 Ri16AbsoluteStore St,
            Stqr stqr 0x11c Ri16RelativeStore St,
            // Branches and their hints.
            Br br 0x190 Branch Br,
            Brnz brnz 0x108 BranchIf Br,
            Brz brz 0x100 BranchIf Br,
            Bi bi 0x1a8 Indirect Br,
            Biz biz 0x128 IndirectIf Br,
            Binz binz 0x129 IndirectIf Br,
            Hbr hbr 0x1ac HintIndirect Hb,
            Hbra hbra 0x080 HintAbsolute Hb,
            Hbrr hbrr 0x090 HintRelative Hb,
            // No operation, and stop.
            Nop nop 0x201 Bare Nop,
            Lnop lnop 0x001 Bare Lnop,
            Stop stop 0x000 StopCode Br,
        }
    };
}
pub(crate) use with_table;
