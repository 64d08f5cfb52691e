//! The programs of `opengl/fixslice`: their shaders for each mode, direction and key size.

use lockstep_core::KeySize;
use lockstep_core::work::{Operation, Pass};

use super::keys::PLANES;
use crate::gl::{COVERING_VERTICES, Sources};

const UNIFORMS: [&str; 7] =
    ["first_blocks", "second_blocks", "tiles", "width", "tile_count", "half_shift", "round_keys"];

/// The use of the cipher in a shader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Mode {
    Ecb,
    Ctr,
    Cbc,
    Cfb,
    Xts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Program {
    mode: Mode,
    /// True for the inverse cipher.
    pub(crate) decrypts: bool,
    /// Number of bits of the counter block that are incremented.
    pub(crate) counter_bits: u32,
    pub(crate) size: KeySize,
    /// True if all tiles have the same key, which is then in uniforms.
    pub(crate) one_key: bool,
}

impl Program {
    /// The program of an operation; `None` for serial passes, GHASH and fused AEADs, which the backend does not support.
    pub(crate) fn of(operation: Operation, size: KeySize, one_key: bool) -> Option<Program> {
        let Operation::Pass(pass) = operation else { return None };
        let (mode, decrypts) = match pass {
            Pass::EcbEncrypt => (Mode::Ecb, false),
            Pass::EcbDecrypt => (Mode::Ecb, true),
            Pass::Ctr | Pass::Ctr32 => (Mode::Ctr, false),
            Pass::CbcDecrypt => (Mode::Cbc, true),
            Pass::Cfb128Decrypt => (Mode::Cfb, false),
            Pass::XtsEncrypt => (Mode::Xts, false),
            Pass::XtsDecrypt => (Mode::Xts, true),
            _ => return None,
        };
        let counter_bits = if pass == Pass::Ctr { 128 } else { 32 };
        Some(Program { mode, decrypts, counter_bits, size, one_key })
    }

    /// The shaders of the program.
    pub(crate) fn sources(self) -> Sources {
        let vectors = PLANES / 4 * (self.size.rounds() + 1);
        Sources {
            vertex: COVERING_VERTICES.into(),
            fragment: self.fragment_shader(),
            feedback: None,
            uniforms: &UNIFORMS,
            round_keys: self.one_key.then_some(("round_keys", vectors)),
        }
    }

    fn fragment_shader(self) -> String {
        let modes = ["ECB", "CTR", "CBC", "CFB", "XTS"];
        let mut text = String::from("precision highp float;\nprecision highp int;\n");
        for (number, mode) in modes.iter().enumerate() {
            text += &format!("#define {mode} {number}\n");
        }
        let chains = matches!(self.mode, Mode::Cbc | Mode::Cfb);
        let settings = [
            ("MODE", self.mode as usize),
            ("CHAINS", usize::from(chains)),
            ("DECRYPTS", usize::from(self.decrypts)),
            ("COUNTER_BITS", self.counter_bits as usize),
            ("ROUNDS", self.size.rounds()),
            ("ONE_KEY", usize::from(self.one_key)),
        ];
        for (name, value) in settings {
            text += &format!("#define {name} {value}\n");
        }
        text += include_str!("../../shaders/sbox.glsl");
        // The declarations come first, because the cipher uses them to fetch round keys.
        let (declarations, main) =
            include_str!("../../shaders/tiles.glsl").split_once("void main").expect("a main function");
        text += declarations;
        text += include_str!("../../shaders/fixslice.glsl");
        text + "void main" + main
    }
}
