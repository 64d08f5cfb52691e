//! The channels of an SPU: DMA between the local store and main storage, and the mailbox for output.
//!
//! A DMA command takes the latency of [`Chip::CELL`], and then 8 bytes per clock. The latencies of commands overlap, and the commands share
//! the bandwidth of the memory. Data of complete commands are transferred at the next instruction for a channel, and at the `stop`. So a
//! program that does not wait for its tag sees the old data in the local store. If a program overwrites the source of a `put` before it
//! waits, the `put` writes the new data. On the chip, both results would depend on the time.

use zeroize::Zeroize;

use super::Chip;
use super::decoded::Decoded;
use super::{ADDRESS_MASK, LOCAL_STORE};
use crate::isa::Op;

// Numbers of channels (Cell Broadband Engine Architecture, section 9).
const MFC_LSA: u32 = 16;
const MFC_EAH: u32 = 17;
const MFC_EAL: u32 = 18;
const MFC_SIZE: u32 = 19;
const MFC_TAG_ID: u32 = 20;
const MFC_CMD: u32 = 21;
const MFC_WR_TAG_MASK: u32 = 22;
const MFC_WR_TAG_UPDATE: u32 = 23;
const MFC_RD_TAG_STAT: u32 = 24;
const SPU_WR_OUT_MBOX: u32 = 28;

/// Number of commands that the queue of the memory flow controller holds.
const QUEUE: usize = 16;

/// Maximum number of bytes of a command.
const MAX_TRANSFER: u32 = 16 << 10;

/// The commands `put` and `get`. The two lowest bits request a barrier or a fence. These requests change nothing here, because commands
/// complete in order.
const PUT: u32 = 0x20;
const GET: u32 = 0x40;

/// A DMA command that is not complete.
#[derive(Clone, Copy)]
struct Command {
    tag: u32,
    to_main: bool,
    local: u32,
    main: usize,
    size: usize,
    /// The cycle in which the command completes.
    done: u64,
}

/// The state of the channels, and main storage.
#[derive(Default)]
pub(super) struct Channels {
    pub(super) main: Vec<u8>,
    /// The values that the program has written to the mailbox.
    pub(super) mailbox: Vec<u32>,
    local: u32,
    high: u32,
    low: u32,
    size: u32,
    tag: u32,
    mask: u32,
    update: Option<u32>,
    pending: Vec<Command>,
}

impl Channels {
    /// Discards commands and parameters of an earlier run.
    pub(super) fn reset(&mut self) {
        self.mailbox.zeroize();
        *self = Channels { main: std::mem::take(&mut self.main), ..Channels::default() };
    }

    /// Executes `rdch` or `rchcnt`. Returns the value, and the cycle in which it is available.
    pub(super) fn read(&mut self, inst: &Decoded, now: u64) -> Result<(u32, u64), String> {
        let done = |command: &&Command| command.done <= now;
        if inst.op == Op::Rchcnt {
            let waiting = self.pending.iter().filter(|command| !done(command)).count();
            return match inst.imm {
                MFC_CMD => Ok(((QUEUE - waiting.min(QUEUE)) as u32, now)),
                MFC_RD_TAG_STAT => Ok((u32::from(self.status(now).is_some_and(|(_, at)| at <= now)), now)),
                MFC_LSA..=MFC_TAG_ID | MFC_WR_TAG_MASK | MFC_WR_TAG_UPDATE | SPU_WR_OUT_MBOX => Ok((1, now)),
                other => Err(unknown(other)),
            };
        }
        match inst.imm {
            MFC_RD_TAG_STAT => {
                let found = self.status(now).ok_or("a read of the tag status without a request waits for ever: expected a write to $ch23 before it")?;
                self.update = None;
                Ok(found)
            }
            other => Err(unknown(other)),
        }
    }

    /// Returns the completed tags, and the cycle in which the requested condition holds.
    fn status(&self, now: u64) -> Option<(u32, u64)> {
        // A tag is complete when the last command with this tag is complete.
        let ends = |tag: u32| {
            self.pending.iter().filter(|command| command.tag == tag).map(|command| command.done).max()
        };
        let tags = (0..32).filter(|tag| self.mask >> tag & 1 == 1);
        let ends: Vec<(u32, u64)> = tags.map(|tag| (tag, ends(tag).unwrap_or(0))).collect();
        let at = match self.update? {
            0 => now,
            1 => ends.iter().map(|(_, end)| *end).min().unwrap_or(now),
            _ => ends.iter().map(|(_, end)| *end).max().unwrap_or(now),
        }
        .max(now);
        let complete = ends.iter().filter(|(_, end)| *end <= at).fold(0, |all, (tag, _)| all | 1 << tag);
        Some((complete, at))
    }

    /// Executes `wrch`. Returns the cycle in which the channel accepts the value.
    pub(super) fn write(&mut self, channel: u32, value: u32, now: u64) -> Result<u64, String> {
        match channel {
            MFC_LSA => self.local = value,
            MFC_EAH => self.high = value,
            MFC_EAL => self.low = value,
            MFC_SIZE => self.size = value,
            MFC_TAG_ID => self.tag = value,
            MFC_CMD => return self.command(value, now),
            MFC_WR_TAG_MASK => self.mask = value,
            MFC_WR_TAG_UPDATE if value > 2 => {
                return Err(format!(
                    "{value:#x} is no condition for tags: expected 0 (now), 1 (any) or 2 (all)"
                ));
            }
            MFC_WR_TAG_UPDATE => self.update = Some(value),
            SPU_WR_OUT_MBOX => self.mailbox.push(value),
            other => return Err(unknown(other)),
        }
        Ok(now)
    }

    fn command(&mut self, code: u32, now: u64) -> Result<u64, String> {
        let Channels { local, size, tag, .. } = *self;
        let main = u64::from(self.high) << 32 | u64::from(self.low);
        let to_main = match code {
            PUT..=0x22 => true,
            GET..=0x42 => false,
            other => {
                return Err(format!("{other:#x} is no DMA command here: expected 0x20 (put) or 0x40 (get)"));
            }
        };
        let what = || format!("a DMA of {size} bytes between {local:#x} and main storage {main:#x}");
        let align = match size {
            1 | 2 | 4 | 8 => u64::from(size),
            16..=MAX_TRANSFER if size % 16 == 0 => 16,
            _ => {
                return Err(format!(
                    "{}: expected 1, 2, 4, 8, or a multiple of 16 up to {MAX_TRANSFER}",
                    what()
                ));
            }
        };
        if main % align != 0 || main & 15 != u64::from(local) & 15 {
            return Err(format!(
                "{}: expected addresses with the same last four bits, multiples of {align}",
                what()
            ));
        }
        if tag > 31 {
            return Err(format!("{} with tag {tag}: expected a tag of 0 to 31", what()));
        }
        let end = main.checked_add(size.into()).filter(|end| *end <= self.main.len() as u64);
        if end.is_none() || u64::from(local) + u64::from(size) > LOCAL_STORE as u64 {
            let bytes = self.main.len();
            return Err(format!(
                "{}: expected addresses in the {bytes} bytes of main storage and in the local store",
                what()
            ));
        }
        // The queue accepts a command when fewer than sixteen are waiting.
        let full = self.pending.len().checked_sub(QUEUE).map_or(0, |first| self.pending[first].done);
        let at = now.max(full);
        let before = self.pending.last().map_or(0, |command| command.done);
        let done =
            before.max(at + Chip::CELL.latency as u64) + u64::from(size).div_ceil(Chip::CELL.port as u64);
        let local = local & ADDRESS_MASK;
        self.pending.push(Command { tag, to_main, local, main: main as usize, size: size as usize, done });
        Ok(at)
    }

    /// Transfers the data of all commands that are complete at a cycle. `allowed` returns an error for a write to a part of the local store
    /// that must not change.
    pub(super) fn complete<E>(
        &mut self,
        now: u64,
        memory: &mut [u8; LOCAL_STORE],
        allowed: impl Fn(u32, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let complete = self.pending.partition_point(|command| command.done <= now);
        for Command { to_main, local, main, size, .. } in self.pending.drain(..complete) {
            let (near, far) =
                (&mut memory[local as usize..local as usize + size], &mut self.main[main..main + size]);
            if to_main {
                far.copy_from_slice(near);
            } else {
                allowed(local, size)?;
                near.copy_from_slice(far);
            }
        }
        Ok(())
    }
}

fn unknown(channel: u32) -> String {
    format!(
        "channel {channel} cannot be used in this direction: expected one of DMA ($ch16 to $ch24) or $ch28, the outbound mailbox"
    )
}
