//! The addresses of registers (Broadcom's guide, table 14). Addresses 0 to 31 are the general registers of files A and B. All
//! other addresses have different meanings for reads and for writes.

/// The number of general registers of a file.
pub const FILE: u8 = 32;

/// A read returns no value, and a write has no effect.
pub const NOP: u8 = 39;

/// Read by either file: the next uniform.
pub const UNIFORM: u8 = 32;
/// Read by either file: the next varying.
pub const VARYING: u8 = 35;
/// Read by file A: the number of the element.
pub const ELEMENT_NUMBER: u8 = 38;
/// Read by file B: the number of the QPU.
pub const QPU_NUMBER: u8 = 38;
/// Read: the next vector of the VPM. Written: a vector for the VPM.
pub const VPM: u8 = 48;
/// Read by file A: not zero while a DMA load is running. Read by file B: not zero while a DMA store is running.
pub const DMA_BUSY: u8 = 49;
/// Read by file A: waits for the DMA load. Read by file B: waits for the DMA store.
pub const DMA_WAIT: u8 = 50;
/// Read: waits for the mutex and locks it. Written: unlocks it.
pub const MUTEX: u8 = 51;

/// Written by either file: accumulator 0. The other accumulators follow.
pub const R0: u8 = 32;
/// Written: if the value is not zero, the number 0 means the same texture unit for all QPUs of a slice.
pub const TMU_NOSWAP: u8 = 36;
/// Written by file A: each quad gets its element 0. Written by file B: all elements get element 0.
pub const R5: u8 = 37;
/// Written: a value other than zero interrupts the host.
pub const HOST_INTERRUPT: u8 = 38;
/// Written by file A: the address of the next uniform. Written by file B: the address of the next uniform relative to
/// the current address.
pub const UNIFORMS_ADDRESS: u8 = 40;
/// Written by file A: the setup of reads of the VPM, or of a DMA load. Written by file B: the setup of writes to the VPM, or
/// of a DMA store.
pub const VPM_SETUP: u8 = 49;
/// Written by file A: starts a DMA load from this address. Written by file B: starts a DMA store to this address.
pub const DMA_ADDRESS: u8 = 50;
/// Written: the reciprocal of the value is put in r4.
pub const RECIPROCAL: u8 = 52;
/// Written: the reciprocal of the square root is put in r4.
pub const RECIPROCAL_SQUARE_ROOT: u8 = 53;
/// Written: the power of two is put in r4.
pub const EXPONENT: u8 = 54;
/// Written: the logarithm to base two is put in r4.
pub const LOGARITHM: u8 = 55;
/// Written: coordinate S, or the addresses of a direct lookup, of texture unit 0. T, R and B follow.
pub const TMU0_S: u8 = 56;
/// Written: coordinate S, or the addresses of a direct lookup, of texture unit 1. T, R and B follow.
pub const TMU1_S: u8 = 60;

/// The name in assembly text of a register that is read.
pub fn read_name(is_b: bool, address: u8) -> String {
    let file = if is_b { 'b' } else { 'a' };
    match (address, is_b) {
        (UNIFORM, _) => "unif".into(),
        (VARYING, _) => "vary".into(),
        (ELEMENT_NUMBER, false) => "elem_num".into(),
        (QPU_NUMBER, true) => "qpu_num".into(),
        (NOP, _) => "-".into(),
        (41, false) => "x_coord".into(),
        (41, true) => "y_coord".into(),
        (42, false) => "ms_mask".into(),
        (42, true) => "rev_flag".into(),
        (VPM, _) => "vpm".into(),
        (DMA_BUSY, false) => "vr_busy".into(),
        (DMA_BUSY, true) => "vw_busy".into(),
        (DMA_WAIT, false) => "vr_wait".into(),
        (DMA_WAIT, true) => "vw_wait".into(),
        (MUTEX, _) => "mutex".into(),
        _ => format!("r{file}{address}"),
    }
}

/// The name in assembly text of a register that is written.
pub fn write_name(is_b: bool, address: u8) -> String {
    const FROM_R0: [&str; 8] = ["r0", "r1", "r2", "r3", "tmurs", "r5", "irq", "-"];
    const FROM_40: [[&str; 24]; 2] = [
        [
            "unif_addr",
            "x_coord",
            "ms_mask",
            "stencil",
            "tlbz",
            "tlbm",
            "tlbc",
            "tlbam",
            "vpm",
            "vr_setup",
            "vr_addr",
            "mutex",
            "recip",
            "recipsqrt",
            "exp",
            "log",
            "t0s",
            "t0t",
            "t0r",
            "t0b",
            "t1s",
            "t1t",
            "t1r",
            "t1b",
        ],
        [
            "unif_addr_rel",
            "y_coord",
            "rev_flag",
            "stencil",
            "tlbz",
            "tlbm",
            "tlbc",
            "tlbam",
            "vpm",
            "vw_setup",
            "vw_addr",
            "mutex",
            "recip",
            "recipsqrt",
            "exp",
            "log",
            "t0s",
            "t0t",
            "t0r",
            "t0b",
            "t1s",
            "t1t",
            "t1r",
            "t1b",
        ],
    ];
    match (address, is_b) {
        (R5, false) => "r5quad".into(),
        (R5, true) => "r5rep".into(),
        (32..40, _) => FROM_R0[usize::from(address - 32)].into(),
        (40..64, _) => FROM_40[usize::from(is_b)][usize::from(address - 40)].into(),
        (_, false) => format!("ra{address}"),
        (_, true) => format!("rb{address}"),
    }
}
