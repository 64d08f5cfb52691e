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

use crate::machine::Run;
use crate::value::Domain;

/// The semantics of an instruction; `None` if it is not in the table.
pub fn of<D: Domain>(mnemonic: Mnemonic) -> Option<Run<D>> {
    integer(mnemonic)
        .or_else(|| moves_of_vectors(mnemonic))
        .or_else(|| lanes_of_vectors(mnemonic))
        .or_else(|| others(mnemonic))
}

/// Instructions on general registers, flags and control flow.
fn integer<D: Domain>(mnemonic: Mnemonic) -> Option<Run<D>> {
    use Mnemonic::*;
    Some(match mnemonic {
        // Moves.
        Mov | Movzx | Movnti => moves::zero_extended,
        Movsx | Movsxd => moves::sign_extended,
        Cbw | Cwde | Cdqe | Cwd | Cdq | Cqo => moves::accumulator_extended,
        Movbe => moves::swapped_bytes,
        Bswap => moves::byte_swap,
        Lea => moves::lea,
        Xchg => moves::exchange,
        Push => moves::push,
        Pop => moves::pop,
        Cmova | Cmovae | Cmovb | Cmovbe | Cmove | Cmovg | Cmovge | Cmovl | Cmovle | Cmovne | Cmovno
        | Cmovnp | Cmovns | Cmovo | Cmovp | Cmovs => moves::conditional,
        Seta | Setae | Setb | Setbe | Sete | Setg | Setge | Setl | Setle | Setne | Setno | Setnp | Setns
        | Seto | Setp | Sets => moves::set,
        Stosb | Stosd | Stosq => moves::store_string,
        Movsb | Movsd | Movsq => moves::move_string,
        // Arithmetic.
        Add | Adc => arithmetic::add,
        Sub | Sbb | Cmp => arithmetic::subtract,
        Inc | Dec => arithmetic::step,
        Neg => arithmetic::negate,
        Mul | Imul | Mulx => arithmetic::multiply,
        Div | Idiv => arithmetic::divide,
        Xadd => arithmetic::exchange_add,
        Cmpxchg => arithmetic::compare_exchange,
        // Bits.
        And | Or | Xor | Test | Andn => bits::logic,
        Not => bits::invert,
        Shl | Sal | Shr | Sar => bits::shift,
        Shlx | Shrx | Sarx => bits::shift_without_flags,
        Rol | Ror | Rorx => bits::rotate,
        Shld | Shrd => bits::double_shift,
        Bt | Bts | Btr | Btc => bits::test,
        Bsf | Bsr | Tzcnt | Lzcnt | Popcnt => bits::count,
        Blsr | Blsi | Blsmsk => bits::lowest,
        // Control flow.
        Jmp => control::jump,
        Ja | Jae | Jb | Jbe | Je | Jg | Jge | Jl | Jle | Jne | Jno | Jnp | Jns | Jo | Jp | Js => {
            control::jump_if
        }
        Call => control::call,
        Ret => control::ret,
        Leave => control::leave,
        Nop | Endbr64 | Pause | Lfence | Mfence | Sfence => control::nothing,
        Prefetcht0 | Prefetcht1 | Prefetcht2 | Prefetchw | Prefetchnta => control::prefetch,
        Ud2 | Int3 => control::undefined,
        Cpuid => control::cpuid,
        Xgetbv => control::xgetbv,
        _ => return None,
    })
}

/// Moves of vector registers, and instructions on masks.
fn moves_of_vectors<D: Domain>(mnemonic: Mnemonic) -> Option<Run<D>> {
    use Mnemonic::*;
    Some(match mnemonic {
        // Moves.
        Movdqa | Movdqu | Movaps | Movups | Movapd | Movupd | Lddqu | Vmovdqa | Vmovdqu | Vmovaps
        | Vmovups | Vmovapd | Vmovupd | Vmovdqa32 | Vmovdqa64 | Vmovdqu32 | Vmovdqu64 | Vmovdqu8
        | Vmovdqu16 | Vlddqu | Movntdq | Vmovntdq | Movntps | Vmovntps => moves::vector,
        Movd | Movq | Vmovd | Vmovq | Movss | Vmovss | Vmovsd => moves::low,
        Movlps | Movlpd | Movhps | Movhpd | Vmovlps | Vmovlpd | Vmovhps | Vmovhpd | Movlhps | Movhlps
        | Vmovlhps | Vmovhlps => moves::half,
        Pinsrb | Vpinsrb => moves::insert::<D, 1>,
        Pinsrw | Vpinsrw => moves::insert::<D, 2>,
        Pinsrd | Vpinsrd => moves::insert::<D, 4>,
        Pinsrq | Vpinsrq => moves::insert::<D, 8>,
        Pextrb | Vpextrb => moves::extract::<D, 1>,
        Pextrw | Vpextrw => moves::extract::<D, 2>,
        Pextrd | Vpextrd => moves::extract::<D, 4>,
        Pextrq | Vpextrq => moves::extract::<D, 8>,
        Vinserti128 | Vinsertf128 | Vinserti32x4 | Vinserti64x2 | Vinsertf32x4 | Vinsertf64x2
        | Vinserti32x8 | Vinserti64x4 | Vinsertf32x8 | Vinsertf64x4 => moves::insert_vector,
        Vextracti128 | Vextractf128 | Vextracti32x4 | Vextracti64x2 | Vextractf32x4 | Vextractf64x2
        | Vextracti32x8 | Vextracti64x4 | Vextractf32x8 | Vextractf64x4 => moves::extract_vector,
        Vpbroadcastb | Vpbroadcastw | Vpbroadcastd | Vpbroadcastq | Vbroadcastss | Vbroadcastsd
        | Vbroadcasti128 | Vbroadcastf128 | Vbroadcasti32x4 | Vbroadcasti64x2 | Vbroadcastf32x4
        | Vbroadcastf64x2 | Vbroadcasti32x8 | Vbroadcasti64x4 | Vbroadcastf64x4 | Movddup | Vmovddup => {
            moves::broadcast
        }
        Vzeroupper | Vzeroall => moves::zero_registers,
        // Masks.
        Kmovb => masks::moved::<D, 1>,
        Kmovw => masks::moved::<D, 2>,
        Kmovd => masks::moved::<D, 4>,
        Kmovq => masks::moved::<D, 8>,
        Kunpckbw => masks::unpack::<D, 1>,
        Kunpckwd => masks::unpack::<D, 2>,
        Kunpckdq => masks::unpack::<D, 4>,
        Kshiftlb | Kshiftrb => masks::shift::<D, 1>,
        Kshiftlw | Kshiftrw => masks::shift::<D, 2>,
        Kshiftld | Kshiftrd => masks::shift::<D, 4>,
        Kshiftlq | Kshiftrq => masks::shift::<D, 8>,
        Kortestb => masks::test_either::<D, 1>,
        Kortestw => masks::test_either::<D, 2>,
        Kortestd => masks::test_either::<D, 4>,
        Kortestq => masks::test_either::<D, 8>,
        Vpcmpud => masks::compare::<D, 4>,
        Vpcmpuq => masks::compare::<D, 8>,
        Vptestmd | Vptestnmd => masks::test_lanes::<D, 4>,
        Vptestmq | Vptestnmq => masks::test_lanes::<D, 8>,
        _ => return None,
    })
}

/// Operations on lanes of vector registers.
fn lanes_of_vectors<D: Domain>(mnemonic: Mnemonic) -> Option<Run<D>> {
    use Mnemonic::*;
    Some(match mnemonic {
        Pxor | Vpxor | Vpxord | Vpxorq | Xorps | Xorpd | Vxorps | Vxorpd => lanes::xor,
        Pand | Vpand | Vpandd | Vpandq | Andps | Andpd | Vandps | Vandpd => lanes::and,
        Por | Vpor | Vpord | Vporq | Orps | Orpd | Vorps | Vorpd => lanes::or,
        Pandn | Vpandn | Vpandnd | Vpandnq | Andnps | Andnpd | Vandnps | Vandnpd => lanes::and_not,
        Vpternlogd | Vpternlogq => lanes::ternary,
        Paddb | Vpaddb => lanes::add::<D, 1>,
        Paddw | Vpaddw => lanes::add::<D, 2>,
        Paddd | Vpaddd => lanes::add::<D, 4>,
        Paddq | Vpaddq => lanes::add::<D, 8>,
        Psubb | Vpsubb => lanes::subtract::<D, 1>,
        Psubw | Vpsubw => lanes::subtract::<D, 2>,
        Psubd | Vpsubd => lanes::subtract::<D, 4>,
        Psubq | Vpsubq => lanes::subtract::<D, 8>,
        Pcmpeqb | Vpcmpeqb => lanes::equal::<D, 1>,
        Pcmpeqw | Vpcmpeqw => lanes::equal::<D, 2>,
        Pcmpeqd | Vpcmpeqd => lanes::equal::<D, 4>,
        Pcmpeqq | Vpcmpeqq => lanes::equal::<D, 8>,
        Pcmpgtb | Vpcmpgtb => lanes::greater::<D, 1>,
        Pcmpgtw | Vpcmpgtw => lanes::greater::<D, 2>,
        Pcmpgtd | Vpcmpgtd => lanes::greater::<D, 4>,
        Pcmpgtq | Vpcmpgtq => lanes::greater::<D, 8>,
        Pminud | Vpminud => lanes::minimum::<D, 4>,
        Vpminuq => lanes::minimum::<D, 8>,
        Psllw | Vpsllw | Psrlw | Vpsrlw | Psraw | Vpsraw => lanes::shift::<D, 2>,
        Pslld | Vpslld | Psrld | Vpsrld | Psrad | Vpsrad => lanes::shift::<D, 4>,
        Psllq | Vpsllq | Psrlq | Vpsrlq | Vpsraq => lanes::shift::<D, 8>,
        Vpsllvd | Vpsrlvd | Vpsravd => lanes::shift_by_lanes::<D, 4>,
        Vpsllvq | Vpsrlvq => lanes::shift_by_lanes::<D, 8>,
        Vprold | Vprord => lanes::rotate::<D, 4>,
        Vprolq | Vprorq => lanes::rotate::<D, 8>,
        Pmovmskb | Vpmovmskb | Movmskps | Movmskpd | Vmovmskps | Vmovmskpd => lanes::signs,
        Ptest | Vptest => lanes::test,
        Pmuludq | Vpmuludq => lanes::multiply,
        _ => return None,
    })
}

/// Permutations, AES and carry-less multiplication.
fn others<D: Domain>(mnemonic: Mnemonic) -> Option<Run<D>> {
    use Mnemonic::*;
    Some(match mnemonic {
        Pshufb | Vpshufb => permutations::bytes,
        Pshufd | Vpshufd | Vpermilps => permutations::doublewords,
        Pshuflw | Pshufhw | Vpshuflw | Vpshufhw => permutations::words,
        Shufps | Vshufps | Shufpd | Vshufpd => permutations::two_sources,
        Pslldq | Vpslldq | Psrldq | Vpsrldq => permutations::byte_shift,
        Palignr | Vpalignr => permutations::align_bytes,
        Valignd => permutations::align_lanes::<D, 4>,
        Valignq => permutations::align_lanes::<D, 8>,
        Punpcklbw | Punpckhbw | Vpunpcklbw | Vpunpckhbw => permutations::interleave::<D, 1>,
        Punpcklwd | Punpckhwd | Vpunpcklwd | Vpunpckhwd => permutations::interleave::<D, 2>,
        Punpckldq | Punpckhdq | Vpunpckldq | Vpunpckhdq | Unpcklps | Unpckhps | Vunpcklps | Vunpckhps => {
            permutations::interleave::<D, 4>
        }
        Punpcklqdq | Punpckhqdq | Vpunpcklqdq | Vpunpckhqdq | Unpcklpd | Unpckhpd | Vunpcklpd | Vunpckhpd => {
            permutations::interleave::<D, 8>
        }
        Vshufi32x4 | Vshufi64x2 | Vshuff32x4 | Vshuff64x2 => permutations::vectors,
        Vperm2i128 | Vperm2f128 => permutations::two_vectors,
        Vpermq | Vpermpd => permutations::quadwords,
        Vpermd | Vpermps => permutations::by_register::<D, 4>,
        Vpermi2d | Vpermt2d => permutations::of_two_by_register,
        Packuswb | Vpackuswb => lanes::pack::<D, 2, 0, 0xff>,
        Packssdw | Vpackssdw => lanes::pack::<D, 4, -0x8000, 0x7fff>,
        Blendvps | Vblendvps => permutations::blend_by_sign::<D, 4>,
        Blendvpd | Vblendvpd => permutations::blend_by_sign::<D, 8>,
        Pblendvb | Vpblendvb => permutations::blend_by_sign::<D, 1>,
        Vpblendd | Pblendw | Vpblendw | Blendps | Vblendps | Blendpd | Vblendpd => permutations::blend,
        Pmovzxbw | Pmovzxbd | Pmovzxbq | Pmovzxwd | Pmovzxwq | Pmovzxdq | Vpmovzxbw | Vpmovzxbd
        | Vpmovzxbq | Vpmovzxwd | Vpmovzxwq | Vpmovzxdq | Pmovsxbw | Pmovsxbd | Pmovsxbq | Pmovsxwd
        | Pmovsxwq | Pmovsxdq | Vpmovsxbw | Vpmovsxbd | Vpmovsxbq | Vpmovsxwd | Vpmovsxwq | Vpmovsxdq => {
            permutations::extend
        }
        // AES and carry-less multiplication.
        Aesenc | Vaesenc | Aesenclast | Vaesenclast | Aesdec | Vaesdec | Aesdeclast | Vaesdeclast => {
            crypto::round
        }
        Aesimc | Vaesimc => crypto::inverse_mix_columns,
        Aeskeygenassist | Vaeskeygenassist => crypto::key_assist,
        Pclmulqdq | Vpclmulqdq => crypto::carryless,
        _ => return None,
    })
}
