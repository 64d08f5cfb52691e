//! The table of instructions: the semantics of each family. An instruction that is not in the table stops a run.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. The tests compare entries with the processor;
//! docs/proof.md states exceptions.

mod arithmetic;
mod bits;
mod control;
mod crypto;
mod lanes;
mod masks;
mod moves;
mod operands;
mod permutations;

use iced_x86::Mnemonic;

pub(crate) use operands::{are_same, is_legacy};

use crate::arm;
use crate::machine::{Run, Semantics};
use crate::value::Domain;

/// The tables of both architectures.
pub fn all<D: Domain>() -> Semantics<D> {
    Semantics { x86: of, arm: arm::execute }
}

/// The semantics of an instruction; `None` if it is not in the table.
pub fn of<D: Domain>(mnemonic: Mnemonic) -> Option<Run<D>> {
    let name = format!("{mnemonic:?}").to_lowercase();
    // A vector instruction has the prefix `v` in the encodings VEX and EVEX.
    let base = name.strip_prefix('v').unwrap_or(&name);
    integer(&name)
        .or_else(|| moves_of_vectors(base))
        .or_else(|| lanes_of_vectors(base))
        .or_else(|| others(base))
}

/// The instance of a function for lanes of the width that the last letter of a name states.
macro_rules! by_width {
    ($name:ident, $module:ident::$function:ident) => {
        match $name.as_bytes().last() {
            Some(b'b') => $module::$function::<D, 1>,
            Some(b'w') => $module::$function::<D, 2>,
            Some(b'd') => $module::$function::<D, 4>,
            _ => $module::$function::<D, 8>,
        }
    };
}

/// The rest of the name of a conditional instruction, as iced-x86 spells it.
fn is_condition(suffix: &str) -> bool {
    const CONDITIONS: [&str; 16] =
        ["a", "ae", "b", "be", "e", "g", "ge", "l", "le", "ne", "no", "np", "ns", "o", "p", "s"];
    CONDITIONS.contains(&suffix)
}

/// Instructions on general registers, flags and control flow.
fn integer<D: Domain>(name: &str) -> Option<Run<D>> {
    Some(match name {
        // Moves.
        "mov" | "movzx" | "movnti" => moves::zero_extended,
        "movsx" | "movsxd" => moves::sign_extended,
        "cbw" | "cwde" | "cdqe" | "cwd" | "cdq" | "cqo" => moves::accumulator_extended,
        "movbe" => moves::swapped_bytes,
        "bswap" => moves::byte_swap,
        "lea" => moves::lea,
        "xchg" => moves::exchange,
        "push" => moves::push,
        "pop" => moves::pop,
        "stosb" | "stosd" | "stosq" => moves::store_string,
        "movsb" | "movsd" | "movsq" => moves::move_string,
        _ if name.strip_prefix("cmov").is_some_and(is_condition) => moves::conditional,
        _ if name.strip_prefix("set").is_some_and(is_condition) => moves::set,
        // Arithmetic.
        "add" | "adc" => arithmetic::add,
        "sub" | "sbb" | "cmp" => arithmetic::subtract,
        "inc" | "dec" => arithmetic::step,
        "neg" => arithmetic::negate,
        "mul" | "imul" | "mulx" => arithmetic::multiply,
        "div" | "idiv" => arithmetic::divide,
        "xadd" => arithmetic::exchange_add,
        "cmpxchg" => arithmetic::compare_exchange,
        // Bits.
        "and" | "or" | "xor" | "test" | "andn" => bits::logic,
        "not" => bits::invert,
        "shl" | "sal" | "shr" | "sar" => bits::shift,
        "shlx" | "shrx" | "sarx" => bits::shift_without_flags,
        "rol" | "ror" | "rorx" => bits::rotate,
        "shld" | "shrd" => bits::double_shift,
        "bt" | "bts" | "btr" | "btc" => bits::test,
        "bsf" | "bsr" | "tzcnt" | "lzcnt" | "popcnt" => bits::count,
        "blsr" | "blsi" | "blsmsk" => bits::lowest,
        // Control flow.
        "jmp" => control::jump,
        _ if name.strip_prefix('j').is_some_and(is_condition) => control::jump_if,
        "call" => control::call,
        "ret" => control::ret,
        "leave" => control::leave,
        "nop" | "endbr64" | "pause" | "lfence" | "mfence" | "sfence" => control::nothing,
        "prefetcht0" | "prefetcht1" | "prefetcht2" | "prefetchw" | "prefetchnta" => control::prefetch,
        "ud2" | "int3" => control::undefined,
        "cpuid" => control::cpuid,
        "xgetbv" => control::xgetbv,
        _ => return None,
    })
}

/// Moves of vector registers, and instructions on masks.
fn moves_of_vectors<D: Domain>(name: &str) -> Option<Run<D>> {
    Some(match name {
        // Moves.
        "movdqa" | "movdqu" | "movaps" | "movups" | "movapd" | "movupd" | "lddqu" | "movdqa32"
        | "movdqa64" | "movdqu32" | "movdqu64" | "movdqu8" | "movdqu16" | "movntdq" | "movntps" => {
            moves::vector
        }
        "movd" | "movq" | "movss" | "movsd" => moves::low,
        "movlps" | "movlpd" | "movhps" | "movhpd" | "movlhps" | "movhlps" => moves::half,
        "pinsrb" | "pinsrw" | "pinsrd" | "pinsrq" => by_width!(name, moves::insert),
        "pextrb" | "pextrw" | "pextrd" | "pextrq" => by_width!(name, moves::extract),
        "inserti128" | "insertf128" | "inserti32x4" | "inserti64x2" | "insertf32x4" | "insertf64x2"
        | "inserti32x8" | "inserti64x4" | "insertf32x8" | "insertf64x4" => moves::insert_vector,
        "extracti128" | "extractf128" | "extracti32x4" | "extracti64x2" | "extractf32x4" | "extractf64x2"
        | "extracti32x8" | "extracti64x4" | "extractf32x8" | "extractf64x4" => moves::extract_vector,
        "pbroadcastb" | "pbroadcastw" | "pbroadcastd" | "pbroadcastq" | "broadcastss" | "broadcastsd"
        | "broadcasti128" | "broadcastf128" | "broadcasti32x4" | "broadcasti64x2" | "broadcastf32x4"
        | "broadcastf64x2" | "broadcasti32x8" | "broadcasti64x4" | "broadcastf64x4" | "movddup" => {
            moves::broadcast
        }
        "zeroupper" | "zeroall" => moves::zero_registers,
        // Masks.
        "kmovb" | "kmovw" | "kmovd" | "kmovq" => by_width!(name, masks::moved),
        "kunpckbw" => masks::unpack::<D, 1>,
        "kunpckwd" => masks::unpack::<D, 2>,
        "kunpckdq" => masks::unpack::<D, 4>,
        "kshiftlb" | "kshiftrb" | "kshiftlw" | "kshiftrw" | "kshiftld" | "kshiftrd" | "kshiftlq"
        | "kshiftrq" => by_width!(name, masks::shift),
        "kortestb" | "kortestw" | "kortestd" | "kortestq" => by_width!(name, masks::test_either),
        "pcmpud" | "pcmpuq" => by_width!(name, masks::compare),
        "ptestmd" | "ptestnmd" | "ptestmq" | "ptestnmq" => by_width!(name, masks::test_lanes),
        _ => return None,
    })
}

/// Operations on lanes of vector registers.
fn lanes_of_vectors<D: Domain>(name: &str) -> Option<Run<D>> {
    Some(match name {
        "pxor" | "pxord" | "pxorq" | "xorps" | "xorpd" => lanes::xor,
        "pand" | "pandd" | "pandq" | "andps" | "andpd" => lanes::and,
        "por" | "pord" | "porq" | "orps" | "orpd" => lanes::or,
        "pandn" | "pandnd" | "pandnq" | "andnps" | "andnpd" => lanes::and_not,
        "pternlogd" | "pternlogq" => lanes::ternary,
        "paddb" | "paddw" | "paddd" | "paddq" => by_width!(name, lanes::add),
        "psubb" | "psubw" | "psubd" | "psubq" => by_width!(name, lanes::subtract),
        "pcmpeqb" | "pcmpeqw" | "pcmpeqd" | "pcmpeqq" => by_width!(name, lanes::equal),
        "pcmpgtb" | "pcmpgtw" | "pcmpgtd" | "pcmpgtq" => by_width!(name, lanes::greater),
        "pminud" | "pminuq" => by_width!(name, lanes::minimum),
        "psllw" | "psrlw" | "psraw" | "pslld" | "psrld" | "psrad" | "psllq" | "psrlq" | "psraq" => {
            by_width!(name, lanes::shift)
        }
        "psllvd" | "psrlvd" | "psravd" | "psllvq" | "psrlvq" => by_width!(name, lanes::shift_by_lanes),
        "prold" | "prord" | "prolq" | "prorq" => by_width!(name, lanes::rotate),
        "pmovmskb" | "movmskps" | "movmskpd" => lanes::signs,
        "ptest" => lanes::test,
        "pmuludq" => lanes::multiply,
        _ => return None,
    })
}

/// Permutations, AES and carry-less multiplication.
fn others<D: Domain>(name: &str) -> Option<Run<D>> {
    Some(match name {
        "pshufb" => permutations::bytes,
        "pshufd" | "permilps" => permutations::doublewords,
        "pshuflw" | "pshufhw" => permutations::words,
        "shufps" | "shufpd" => permutations::two_sources,
        "pslldq" | "psrldq" => permutations::byte_shift,
        "palignr" => permutations::align_bytes,
        "alignd" | "alignq" => by_width!(name, permutations::align_lanes),
        "punpcklbw" => permutations::interleave::<D, 1, false>,
        "punpckhbw" => permutations::interleave::<D, 1, true>,
        "punpcklwd" => permutations::interleave::<D, 2, false>,
        "punpckhwd" => permutations::interleave::<D, 2, true>,
        "punpckldq" | "unpcklps" => permutations::interleave::<D, 4, false>,
        "punpckhdq" | "unpckhps" => permutations::interleave::<D, 4, true>,
        "punpcklqdq" | "unpcklpd" => permutations::interleave::<D, 8, false>,
        "punpckhqdq" | "unpckhpd" => permutations::interleave::<D, 8, true>,
        "shufi32x4" | "shufi64x2" | "shuff32x4" | "shuff64x2" => permutations::vectors,
        "perm2i128" | "perm2f128" => permutations::two_vectors,
        "permq" | "permpd" => permutations::quadwords,
        "permd" | "permps" => permutations::by_register::<D, 4>,
        "permi2d" | "permt2d" => permutations::of_two_by_register,
        "packuswb" => lanes::pack::<D, 2, 0, 0xff>,
        "packsswb" => lanes::pack::<D, 2, -0x80, 0x7f>,
        "packssdw" => lanes::pack::<D, 4, -0x8000, 0x7fff>,
        "packusdw" => lanes::pack::<D, 4, 0, 0xffff>,
        "blendvps" => permutations::blend_by_sign::<D, 4>,
        "blendvpd" => permutations::blend_by_sign::<D, 8>,
        "pblendvb" => permutations::blend_by_sign::<D, 1>,
        "pblendd" | "pblendw" | "blendps" | "blendpd" => permutations::blend,
        "pmovzxbw" => permutations::extend::<D, 1, 2, false>,
        "pmovzxbd" => permutations::extend::<D, 1, 4, false>,
        "pmovzxbq" => permutations::extend::<D, 1, 8, false>,
        "pmovzxwd" => permutations::extend::<D, 2, 4, false>,
        "pmovzxwq" => permutations::extend::<D, 2, 8, false>,
        "pmovzxdq" => permutations::extend::<D, 4, 8, false>,
        "pmovsxbw" => permutations::extend::<D, 1, 2, true>,
        "pmovsxbd" => permutations::extend::<D, 1, 4, true>,
        "pmovsxbq" => permutations::extend::<D, 1, 8, true>,
        "pmovsxwd" => permutations::extend::<D, 2, 4, true>,
        "pmovsxwq" => permutations::extend::<D, 2, 8, true>,
        "pmovsxdq" => permutations::extend::<D, 4, 8, true>,
        // AES and carry-less multiplication.
        "aesenc" | "aesenclast" | "aesdec" | "aesdeclast" => crypto::round,
        "aesimc" => crypto::inverse_mix_columns,
        "aeskeygenassist" => crypto::key_assist,
        "pclmulqdq" => crypto::carryless,
        _ => return None,
    })
}
