//! Exports programs as raw images and as source for the GNU assembler.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Image;
use crate::isa::{Format, Inst, Op};

impl Image {
    /// Returns the content of the local store from address 0.
    pub fn raw(&self) -> Vec<u8> {
        let mut raw = vec![0; self.origin as usize];
        raw.extend(&self.bytes);
        raw
    }

    /// Returns source in GNU syntax. It assembles to the same bytes at the same addresses.
    pub fn source(&self) -> String {
        // The names of generated labels start with a prefix of no other symbol.
        let mut prefix = String::from(".L");
        while self.symbols.keys().any(|name| name.starts_with(&prefix)) {
            prefix.push('_');
        }
        let mut places = BTreeSet::new();
        for (at, inst) in self.instructions() {
            let Some(inst) = inst else { continue };
            places.extend(target(&inst, at));
            places.extend(hinted(&inst, at));
        }
        let mut out = String::from("\t.text\n\t.align 4\n");
        if self.origin > 0 {
            let _ = writeln!(out, "\t.space {}", self.origin);
        }
        let mut at = self.origin;
        while at + 4 <= self.end() {
            for (name, _) in self.symbols.iter().filter(|(_, place)| **place == at) {
                let _ = writeln!(out, "{name}:");
            }
            if places.contains(&at) {
                let _ = writeln!(out, "{prefix}{at:x}:");
            }
            let word = self.word(at).expect("inside");
            // A word that has no form in assembly text is written as data.
            let is_code = self.code.contains(&at) && !self.constants.iter().any(|data| data.contains(&at));
            let same = |inst: &Inst| is_code && inst.is_writable() && inst.encode() == word;
            match Inst::decode(word).filter(same) {
                Some(inst) => {
                    let _ = writeln!(out, "\t{}", self.with_labels(&inst, at, &prefix));
                }
                None => {
                    let _ = writeln!(out, "\t.long {word:#010x}");
                }
            }
            at += 4;
        }
        for &byte in &self.bytes[(at - self.origin) as usize..] {
            let _ = writeln!(out, "\t.byte {byte:#04x}");
        }
        out
    }

    /// Returns the text of an instruction. A relative address is written as a label if its target is inside the program.
    fn with_labels(&self, inst: &Inst, at: u32, prefix: &str) -> String {
        // A target outside the program is written as a distance.
        let label = |place: u32, words: i32| match place >= self.origin && place + 4 <= self.end() {
            true => format!("{prefix}{place:x}"),
            false => (words * 4).to_string(),
        };
        let to_branch = i32::from(inst.to_branch);
        let mnemonic = inst.op.mnemonic();
        match (inst.op.format(), target(inst, at), hinted(inst, at)) {
            (Format::HintIndirect, _, Some(branch)) => {
                format!("{mnemonic} {},{}", label(branch, to_branch), inst.ra)
            }
            // The address is a number, because the GNU assembler would leave the resolution of a label to the linker.
            (Format::HintAbsolute, Some(to), Some(branch)) => {
                format!("{mnemonic} {},{to:#x}", label(branch, to_branch))
            }
            (_, Some(to), Some(branch)) => {
                format!("{mnemonic} {},{}", label(branch, to_branch), label(to, inst.imm))
            }
            // The target is a distance, because the GNU assembler would leave a call of a label to the linker.
            (_, Some(_), None) if inst.op == Op::Brsl => format!("{mnemonic} {},{}", inst.rt, inst.imm * 4),
            (Format::Branch, Some(to), None) => format!("{mnemonic} {}", label(to, inst.imm)),
            (_, Some(to), None) => format!("{mnemonic} {},{}", inst.rt, label(to, inst.imm)),
            _ => inst.to_string(),
        }
    }
}

/// Returns the target address of an instruction with a relative address, or of a hint with an address.
fn target(inst: &Inst, at: u32) -> Option<u32> {
    use Format::*;
    match inst.op.format() {
        Ri16Relative | Ri16RelativeStore | Branch | BranchIf | HintRelative => {
            Some(at.wrapping_add((inst.imm as u32) << 2) & 0x3_ffff)
        }
        HintAbsolute => Some(((inst.imm as u32) << 2) & 0x3_ffff),
        _ => None,
    }
}

fn hinted(inst: &Inst, at: u32) -> Option<u32> {
    inst.op.is_hint().then(|| at.wrapping_add((i32::from(inst.to_branch) as u32) << 2) & 0x3_ffff)
}
