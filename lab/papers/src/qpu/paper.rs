//! Figures of the thesis: AES-128-ECB on the GPU of a Raspberry Pi 2 Model B, at 250 MHz unless stated otherwise. Rates are in kB/s
//! of 1000 bytes.

/// A row of Table 5.1: encryption.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Encryption {
    /// The number of bytes of a call.
    pub bytes: u64,
    /// The rate of OpenSSL on the board's ARM processor, in kB/s.
    pub openssl: Option<f64>,
    /// The rate of one QPU with the copies by the host, in kB/s. `None` for runs of more than ten
    /// seconds, which are not possible.
    pub one: Option<f64>,
    /// The rate of 12 QPUs with the copies by the host, in kB/s.
    pub twelve: f64,
    /// The rate of 12 QPUs without the copies, in kB/s.
    pub kernel: f64,
}

const fn encryption(power: u32, openssl: f64, one: f64, twelve: f64, kernel: f64) -> Encryption {
    Encryption { bytes: 1 << power, openssl: known(openssl), one: known(one), twelve, kernel }
}

/// The number that represents an empty cell of a table.
const NONE: f64 = 0.0;

const fn known(rate: f64) -> Option<f64> {
    if rate == NONE { None } else { Some(rate) }
}

/// Table 5.1: encryption, by the number of bytes of a call.
pub const TABLE_5_1: [Encryption; 13] = [
    encryption(4, 19068.0, 65.0, 65.0, 153.0),
    encryption(6, 21435.0, 261.0, 265.0, 615.0),
    encryption(8, 22250.0, 819.0, 1034.0, 2415.0),
    encryption(10, 22393.0, 1533.0, 3715.0, 8063.0),
    encryption(12, NONE, 2298.0, 10307.0, 18618.0),
    encryption(14, 22446.0, 2635.0, 13912.0, 27769.0),
    encryption(16, NONE, 2699.0, 16896.0, 31890.0),
    encryption(18, NONE, 2808.0, 21483.0, 32576.0),
    encryption(20, NONE, 2833.0, 22220.0, 33043.0),
    encryption(22, NONE, 2840.0, 23150.0, 33279.0),
    encryption(24, NONE, 2863.0, 24309.0, 33391.0),
    encryption(26, NONE, NONE, 24993.0, 33467.0),
    encryption(27, NONE, NONE, 25087.0, 33481.0),
];

/// A row of Table 5.2: decryption, with the copies by the host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decryption {
    /// The number of bytes of a call.
    pub bytes: u64,
    /// The rate of OpenSSL on the board's ARM processor, in kB/s.
    pub openssl: Option<f64>,
    /// The rate of one QPU with the copies by the host, in kB/s.
    pub one: Option<f64>,
    /// The rate of 12 QPUs with the copies by the host, in kB/s.
    pub twelve: f64,
}

const fn decryption(power: u32, openssl: f64, one: f64, twelve: f64) -> Decryption {
    Decryption { bytes: 1 << power, openssl: known(openssl), one: known(one), twelve }
}

/// Table 5.2: decryption, by the number of bytes of a call.
pub const TABLE_5_2: [Decryption; 11] = [
    decryption(4, 17083.0, 38.0, 37.0),
    decryption(6, 20629.0, 149.0, 143.0),
    decryption(8, 21825.0, 229.0, 566.0),
    decryption(10, 22146.0, 303.0, 1320.0),
    decryption(12, NONE, 332.0, 2667.0),
    decryption(14, 22249.0, 339.0, 3391.0),
    decryption(16, NONE, 340.0, 3582.0),
    decryption(18, NONE, 342.0, 3794.0),
    decryption(20, NONE, 342.0, 3857.0),
    decryption(22, NONE, NONE, 3860.0),
    decryption(24, NONE, NONE, 3883.0),
];

/// The clock of the overclocked QPUs, in Hz.
pub const FAST_CLOCK_HZ: f64 = 500e6;

/// Number of bytes of the calls with the overclocked QPUs.
pub const FAST_BYTES: u64 = 1 << 26;

/// Rates of encryption and decryption at 500 MHz: with the copies by the host and without them, in kB/s (section 5.2).
pub const FAST: [[f64; 2]; 2] = [[38567.0, 66274.0], [7512.0, 8180.0]];

/// The number of vectors of 16 values in Tables 7.1 and 7.2: 1.6 million values.
pub const TRANSFER_VECTORS: u32 = 100_000;

/// The number of vectors of 16 values in Table 7.3, and of blocks of 16 bytes in Table 7.4: 1.0 million values or
/// bytes.
pub const VECTORS: u32 = 62_500;

/// Table 7.1: milliseconds of sums of two arrays by 1 to 12 QPUs. In the first column, the program waits for each load and store. In the
/// second column, it requests loads in advance and does not wait for stores.
pub const TABLE_7_1: [[f64; 2]; 12] = [
    [270.0, 73.0],
    [185.0, 63.0],
    [185.0, 63.0],
    [185.0, 63.0],
    [185.0, 63.0],
    [184.0, 63.0],
    [184.0, 63.0],
    [184.0, 63.0],
    [184.0, 63.0],
    [184.0, 63.0],
    [185.0, 63.0],
    [184.0, 63.0],
];

/// Table 7.2: milliseconds of products in the field of AES by 1 to 12 QPUs, with the two ways of access to memory of
/// Table 7.1.
pub const TABLE_7_2: [[f64; 2]; 12] = [
    [591.0, 350.0],
    [345.0, 175.0],
    [234.0, 116.0],
    [205.0, 87.0],
    [202.0, 70.0],
    [201.0, 64.0],
    [203.0, 64.0],
    [202.0, 64.0],
    [202.0, 64.0],
    [202.0, 64.0],
    [202.0, 64.0],
    [202.0, 64.0],
];

/// Table 7.3: milliseconds of products by 1 to 12 QPUs, by three programs: for any operands, for any operands with the
/// operands exchanged, and for small numbers.
pub const TABLE_7_3: [[f64; 3]; 12] = [
    [162.0, 66.0, 25.0],
    [81.0, 33.0, 12.0],
    [54.0, 22.0, 8.0],
    [40.0, 16.0, 6.0],
    [32.0, 13.0, 5.0],
    [27.0, 11.0, 4.0],
    [23.0, 9.0, 3.0],
    [20.0, 8.0, 3.0],
    [18.0, 9.0, 2.0],
    [16.0, 6.0, 2.0],
    [14.0, 6.0, 2.0],
    [13.0, 6.0, 2.0],
];

/// Table 7.4: milliseconds of the first kernel for 1.0 million bytes by 1 to 12 QPUs.
pub const TABLE_7_4: [f64; 12] =
    [1683.0, 842.0, 562.0, 421.0, 337.0, 281.0, 240.0, 210.0, 188.0, 168.0, 153.0, 140.0];

/// Rates of Table 7.4, in kB/s.
pub const TABLE_7_4_RATES: [f64; 12] =
    [594.0, 1187.0, 1779.0, 2375.0, 2967.0, 3558.0, 4166.0, 4761.0, 5319.0, 5952.0, 6535.0, 7142.0];

/// Milliseconds in which the board compiled the encryption and the decryption (section 5.3).
pub const COMPILE_MILLISECONDS: [f64; 2] = [88.0, 288.0];

/// The shortest times of a call with one block in microseconds, for encryption and decryption (section 5.3).
pub const CALL_MICROSECONDS: [f64; 2] = [97.0, 270.0];

/// The factor by which, as the thesis expects (chapter 6), modes without parallel blocks are slower than one QPU in
/// Table 5.1.
pub const CHAIN_FACTOR: f64 = 4.0;

#[cfg(test)]
mod tests;
