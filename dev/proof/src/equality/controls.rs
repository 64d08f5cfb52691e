//! Wrong results that the proofs must refute.

use std::sync::Arc;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

use super::cipher::{block, public, xor_blocks};
use super::{Prover, block_of, loops, modes, prove, tasks};
use crate::cases::modes::{MODES, set_key};
use crate::cases::tasks::PASSES;
use crate::cases::{self, Buffer, Extent, Group, Operation};
use crate::decoder;
use crate::image::Image;
use crate::machine::Stop;
use crate::symbols::{ONE, Symbol};
use crate::value::Domain;

const SECRET: Buffer = Buffer(20);
const RESULT: Buffer = Buffer(21);

/// The encryption of a block, by its index in the list of modes.
const BLOCK: usize = 0;

fn block_mode() -> Operation {
    assert_eq!(MODES[BLOCK].name, "block");
    Operation::Mode(BLOCK)
}

/// A kernel with AES instructions.
fn with_instructions(image: &Image) -> &'static str {
    if image.is_arm { "cpu/armv8" } else { "cpu/aesni" }
}

fn prover(image: &Arc<Image>, name: &str, operation: Operation) -> Result<Prover, Stop> {
    let kernel =
        *cases::kernels(image).iter().find(|kernel| kernel.name == name).expect("a kernel of the list");
    Prover::new(image, Group { kernel, key_len: 16, operation }, Extent::Short)
}

/// A function of the harness that computes one wrong byte, and only for one in 65,536 secrets.
fn finds_rare_fault(image: &Arc<Image>) -> Result<bool, Stop> {
    let mut session = prover(image, with_instructions(image), block_mode())?.session;
    let mut symbols = session.machine.domain.clone();
    let secret = symbols.inputs(16);
    let arguments =
        [session.buffer(SECRET, secret.clone(), false), session.public(RESULT, &[0xee; 16], true)];
    session.call("proof_control_rare", &arguments)?;
    let mut is_right = |place: &usize| session.bytes(RESULT)[*place] == symbols.not(secret[*place]);
    Ok((0..16).filter(|place| !is_right(place)).eq([5]))
}

/// A definition of AES that is wrong in one bit, and only for one of the 2^128 keys.
fn finds_wrong_definition(image: &Arc<Image>) -> Result<bool, Stop> {
    let Prover { mut session, symbols, key, cipher, .. } =
        prover(image, with_instructions(image), block_mode())?;
    let place = set_key(&mut session, key.clone())?;
    let input = symbols.inputs(16);
    let address = session.buffer(RESULT, input.clone(), true);
    session.call("proof_block", &[place, address])?;
    let right = cipher.encrypt(&input);
    let mut table = symbols.table();
    let is_that_key = key.as_flattened().iter().fold(ONE, |all, bit| table.and(all, *bit));
    drop(table);
    let mut fault = block(&public(&[0; 16]));
    fault[9][3] = is_that_key;
    let result = block_of(&session, RESULT);
    Ok(result == right && result != xor_blocks(&symbols, &right, &fault))
}

/// The index of a pass.
fn pass(name: &str) -> usize {
    PASSES.iter().position(|pass| pass.name == name).expect("a pass of the list")
}

/// A definition of GHASH with two blocks in the wrong order.
fn finds_wrong_order(image: &Arc<Image>) -> Result<bool, Stop> {
    let ghash = pass("Ghash");
    let prover = prover(image, with_instructions(image), Operation::Pass(ghash))?;
    let messages = tasks::messages(&prover, &[160], &mut Vec::new());
    let mut session = prover.session.clone();
    let differences = tasks::prove_pass(&prover, &mut session, &PASSES[ghash], &messages, false)?;
    let mut swapped: Vec<Symbol> = messages[0].data.clone();
    swapped[16..48].rotate_left(16);
    let result = block_of(&session, cases::tasks::buffer(2, 0));
    let (key, state) = (tasks::HashKey::of(&prover, true, &messages[0]), &messages[0].state);
    Ok(differences.is_empty() && !tasks::is_hash_right(&prover, &key, state, &swapped, result))
}

const ROUNDS: &[Mnemonic] = &[Mnemonic::Aesenc, Mnemonic::Vaesenc];
const ANDS_OF_VECTORS: &[Mnemonic] = &[Mnemonic::Pand, Mnemonic::Vpand, Mnemonic::Vpandq, Mnemonic::Vpandd];

fn instruction_at(image: &Image, address: u64) -> Option<Instruction> {
    Some(Decoder::with_ip(64, image.code_at(address)?, address, DecoderOptions::NONE).decode())
}

/// NOPs for the instruction at an address, if it is one of `removed` (on Arm: MixColumns of a round).
fn nops_for(image: &Image, address: u64, removed: &[Mnemonic]) -> Option<Vec<u8>> {
    if image.is_arm {
        const NOP: u32 = 0xd503_201f;
        let is_round = decoder::decode(image.code_at(address)?)?.opcode == decoder::Opcode::AESMC;
        return is_round.then(|| NOP.to_le_bytes().to_vec());
    }
    const NOP: u8 = 0x90;
    let instruction = instruction_at(image, address)?;
    removed.contains(&instruction.mnemonic()).then(|| vec![NOP; instruction.len()])
}

/// Removes an instruction from the encryption of a block, and checks that the proof then fails. With AES instructions, this is the first AES
/// round. In `cpu/soft`, the check is repeated for every 16th AND; an AND is a product in the circuit of the S-box, or applies a mask.
fn finds_missing(image: &Arc<Image>, name: &str) -> Result<bool, Stop> {
    let mut prover = prover(image, name, block_mode())?;
    modes::prove(&mut prover, BLOCK)?;
    let is_circuit = prover.group.kernel.width.is_some();
    let all = prover.session.machine.visited().filter_map(|address| {
        let nops = nops_for(image, address, if is_circuit { ANDS_OF_VECTORS } else { ROUNDS })?;
        Some((address, nops))
    });
    let removed: Vec<_> = if is_circuit { all.step_by(16).collect() } else { all.take(1).collect() };
    let is_refuted = |(address, nops): &(u64, Vec<u8>)| {
        let faulty = Arc::new(image.with_code(*address, nops));
        let failures = prove(&faulty, prover.group, prover.extent).failures;
        failures.iter().any(|failure| failure.contains(" differ,"))
    };
    Ok(prover.outcome.failures.is_empty() && !removed.is_empty() && removed.iter().all(is_refuted))
}

fn finds_missing_round(image: &Arc<Image>) -> Result<bool, Stop> {
    finds_missing(image, with_instructions(image))
}

fn finds_missing_product(image: &Arc<Image>) -> Result<bool, Stop> {
    finds_missing(image, "cpu/soft")
}

/// Removes an AND of two registers from POLYVAL by integer products in `cpu/soft`, and checks that the proof then fails. The check is repeated
/// for every eighth AND. The first AND rounds the length down to blocks, and is skipped; the others apply masks to factors and products.
fn finds_missing_mask(image: &Arc<Image>) -> Result<bool, Stop> {
    let polyval = pass("Polyval");
    let run = |image: &Arc<Image>| -> Result<(Prover, bool), Stop> {
        let prover = prover(image, "cpu/soft", Operation::Pass(polyval))?;
        let messages = tasks::messages(&prover, &[32], &mut Vec::new());
        let session = &mut prover.session.clone();
        let differences = tasks::prove_pass(&prover, session, &PASSES[polyval], &messages, false)?;
        Ok((prover, differences.is_empty()))
    };
    let (prover, is_right) = run(image)?;
    let is_of_registers = |address: &u64| {
        image.function_at(*address).contains("soft::ghash::update")
            && instruction_at(image, *address).is_some_and(|i| i.op1_kind() == OpKind::Register)
    };
    let visited = prover.session.machine.visited().filter(is_of_registers);
    let all = visited.filter_map(|address| Some((address, nops_for(image, address, &[Mnemonic::And])?)));
    let removed: Vec<_> = all.skip(1).step_by(8).collect();
    let is_refuted = |(address, nops): &(u64, Vec<u8>)| {
        matches!(run(&Arc::new(image.with_code(*address, nops))), Ok((_, false)))
    };
    Ok(is_right && !removed.is_empty() && removed.iter().all(is_refuted))
}

/// A function with a loop whose result is wrong only in a late iteration.
fn finds_late_fault(image: &Arc<Image>) -> Result<bool, Stop> {
    loops::finds_late_fault(&prover(image, with_instructions(image), block_mode())?)
}

/// The names of the controls that the proofs do not refute.
pub fn missed(image: &Arc<Image>) -> Vec<&'static str> {
    type Control = fn(&Arc<Image>) -> Result<bool, Stop>;
    // The last four need the proofs of GHASH, which the kernels for Arm do not have, and instructions of x86-64.
    let controls: [(&str, Control); 7] = [
        ("proof_control_rare", finds_rare_fault),
        ("a program without an AES round", finds_missing_round),
        ("a wrong definition of AES", finds_wrong_definition),
        ("a wrong order of blocks of GHASH", finds_wrong_order),
        ("circuits without a product", finds_missing_product),
        ("integer products without a mask", finds_missing_mask),
        ("proof_control_loop_result", finds_late_fault),
    ];
    let controls = if image.is_arm { &controls[..3] } else { &controls[..] };
    controls.iter().filter(|(_, control)| control(image) != Ok(true)).map(|(name, _)| *name).collect()
}
