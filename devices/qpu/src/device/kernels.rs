//! The kernels of the device, and the passes that they support.

use lockstep_core::backend::KernelInfo;
use lockstep_core::work::Pass;

use crate::kernels::bitslice::{Blocks, Combination};
use crate::launch::Launch;

/// A kernel of the device.
pub(super) struct Kernel {
    pub(super) info: KernelInfo,
    /// Bytes per nanosecond of the simulation, at 20 million simulated instructions per second.
    pub(super) simulated_rate: f64,
    /// Clocks of a QPU for each byte, measured with the simulator, twelve QPUs and a key of 128 bits.
    pub(super) clocks_per_byte: f64,
    /// The program for a pass, if the kernel supports the pass.
    pub(super) launch: fn(Pass) -> Option<Launch>,
}

pub(super) static KERNELS: [Kernel; 4] = [
    Kernel {
        info: KernelInfo {
            name: "qpu/bitslice",
            description: "32 blocks at once, as bit planes",
            constant_time: true,
            missing: None,
        },
        simulated_rate: 0.0055,
        clocks_per_byte: 15.0,
        launch: |pass| match pass {
            Pass::EcbEncrypt => Some(blocks(false, Combination::None)),
            Pass::EcbDecrypt | Pass::PcbcDecrypt => Some(blocks(true, Combination::None)),
            Pass::CbcDecrypt => Some(blocks(true, Combination::Data)),
            Pass::Cfb128Decrypt => Some(blocks(false, Combination::Data)),
            Pass::XtsEncrypt => Some(blocks(false, Combination::Tweak)),
            Pass::XtsDecrypt => Some(blocks(true, Combination::Tweak)),
            Pass::CbcEncrypt | Pass::CbcMac | Pass::Cfb128Encrypt | Pass::Ofb | Pass::PcbcEncrypt => {
                Some(blocks(false, Combination::Chain))
            }
            Pass::Ctr | Pass::Ctr32 => Some(Launch::Ctr),
            _ => None,
        },
    },
    Kernel {
        info: KernelInfo {
            name: "qpu/packed-tuned",
            description: "four blocks in a vector and lookups of columns",
            constant_time: false,
            missing: None,
        },
        simulated_rate: 0.005,
        clocks_per_byte: 26.6,
        launch: |pass| match pass {
            Pass::EcbEncrypt => Some(Launch::PackedTuned { decrypts: false }),
            Pass::EcbDecrypt => Some(Launch::PackedTuned { decrypts: true }),
            _ => None,
        },
    },
    Kernel {
        info: KernelInfo {
            name: "qpu/packed",
            description: "four blocks in a vector and table lookups, as published in the thesis",
            constant_time: false,
            missing: None,
        },
        simulated_rate: 0.001,
        clocks_per_byte: 89.3,
        launch: |pass| match pass {
            Pass::EcbEncrypt => Some(Launch::Packed { decrypts: false }),
            Pass::EcbDecrypt => Some(Launch::Packed { decrypts: true }),
            _ => None,
        },
    },
    Kernel {
        info: KernelInfo {
            name: "qpu/naive",
            description: "one byte in an element, the thesis's first kernel",
            constant_time: false,
            missing: None,
        },
        simulated_rate: 0.0002,
        clocks_per_byte: 512.0,
        launch: |pass| match pass {
            Pass::EcbEncrypt => Some(Launch::Naive { decrypts: false }),
            Pass::EcbDecrypt => Some(Launch::Naive { decrypts: true }),
            _ => None,
        },
    },
];

pub(super) const fn blocks(decrypts: bool, combination: Combination) -> Launch {
    Launch::Blocks(Blocks { decrypts, combination })
}
