//! Figures of the thesis: AES-128 on a GeForce 6800 GT and on a GeForce 8800 GTS in an OpenSSL engine (2007). Times are
//! seconds of the program `openssl` for a whole file, three runs each.

/// Quad pipelines of the GeForce 6800 GT, of four pixel processors each (section 2.3: 16 pixel processors).
pub const QUAD_PIPES: u32 = 4;

/// Pixel processors of the GeForce 6800 GT (section 2.3).
pub const PIXEL_PIPES: u32 = 4 * QUAD_PIPES;

/// The clock of the pixel processors of the GeForce 6800 GT, in Hz (section 2.3).
pub const CLOCK_HZ: f64 = 350e6;

/// The throughput of the memory of the GeForce 6800 GT, in bytes per second (section 2.3).
pub const MEMORY: f64 = 32e9;

/// The edge of the data texture, in texels of 16 bytes, in all experiments except those of Table A6.
pub const EDGE: u32 = 512;

/// The edge of the data texture in Table A6.
pub const LARGE_EDGE: u32 = 1024;

/// The key of the experiments. The thesis derives it from the password `abcd` without salt (section 4). At that time, OpenSSL
/// derived keys by MD5.
pub const KEY: [u8; 16] = 0xe2fc_714c_4727_ee93_95f3_24cd_2e7f_331f_u128.to_be_bytes();

/// Three runs on a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Runs {
    /// The number of the file in Table 6.2.1.
    pub file: u32,
    /// Seconds of each of the three runs.
    pub seconds: [f64; 3],
}

impl Runs {
    /// The mean in seconds. The thesis prints it for files 1 to 4.
    pub fn mean(&self) -> f64 {
        self.seconds.iter().sum::<f64>() / 3.0
    }

    /// The median, in seconds.
    pub fn median(&self) -> f64 {
        let mut sorted = self.seconds;
        sorted.sort_by(f64::total_cmp);
        sorted[1]
    }

    /// The shortest and the longest run, in seconds.
    pub fn range(&self) -> (f64, f64) {
        self.seconds.iter().fold((f64::MAX, f64::MIN), |(low, high), &at| (low.min(at), high.max(at)))
    }
}

/// The runs on the file with this number, from a table.
///
/// # Panics
/// If the table has no such file.
pub fn runs(table: &[Runs], file: u32) -> Runs {
    *table.iter().find(|runs| runs.file == file).expect("the table has this file")
}

const fn on(file: u32, seconds: [f64; 3]) -> Runs {
    Runs { file, seconds }
}

/// Table A5: the GeForce 6800 with textures of 512 x 512 texels.
pub const A5_6800: [Runs; 7] = [
    on(1, [86.895, 86.970, 88.780]),
    on(2, [84.737, 80.460, 80.659]),
    on(3, [201.782, 200.754, 201.832]),
    on(4, [202.042, 202.385, 202.922]),
    on(5, [102.798, 101.390, 100.759]),
    on(6, [101.819, 103.049, 101.380]),
    on(7, [26.282, 26.498, 26.462]),
];

/// Table A5: the CPU, a Pentium 4 at 3.2 GHz.
pub const A5_CPU: [Runs; 7] = [
    on(1, [46.197, 46.895, 46.736]),
    on(2, [45.512, 42.789, 46.112]),
    on(3, [45.006, 43.940, 43.604]),
    on(4, [44.859, 45.938, 45.561]),
    on(5, [21.061, 20.883, 20.170]),
    on(6, [21.547, 19.722, 20.162]),
    on(7, [2.009, 1.856, 1.905]),
];

/// Table A6: the GeForce 6800 with textures of 1024 x 1024 texels.
pub const A6_6800: [Runs; 2] = [on(1, [88.954, 90.592, 90.857]), on(3, [206.346, 207.879, 206.622])];

/// Table A6: the CPU.
pub const A6_CPU: [Runs; 2] = [on(1, [44.231, 43.415, 43.821]), on(3, [40.993, 41.173, 40.071])];

/// Table A1: the GeForce 8800 with 360 blocks of 512 threads, 10 rounds in a thread, and buffers of 29,491,200 bytes.
pub const A1_8800: [Runs; 4] = [
    on(1, [42.238, 42.815, 43.935]),
    on(2, [40.750, 40.965, 41.920]),
    on(3, [40.620, 39.443, 41.030]),
    on(4, [43.539, 43.482, 42.655]),
];

/// Table A1: the CPU.
pub const A1_CPU: [Runs; 4] = [
    on(1, [47.856, 43.887, 45.957]),
    on(2, [40.158, 41.328, 43.493]),
    on(3, [41.802, 43.242, 41.883]),
    on(4, [42.365, 43.684, 42.750]),
];

/// Table A2: the GeForce 8800 with 360 blocks of 512 threads, 10 rounds in a thread, and buffers of 58,982,400 bytes.
pub const A2_8800: [Runs; 4] = [
    on(1, [42.405, 42.600, 43.935]),
    on(2, [39.691, 40.368, 38.306]),
    on(3, [37.892, 37.607, 39.958]),
    on(4, [40.301, 42.218, 40.377]),
];

/// Table A2: the CPU.
pub const A2_CPU: [Runs; 4] = [
    on(1, [42.915, 42.663, 43.619]),
    on(2, [36.840, 39.915, 37.776]),
    on(3, [42.080, 38.806, 40.251]),
    on(4, [42.071, 39.994, 40.836]),
];

/// Table A3: the GeForce 8800 with 240 blocks of 256 threads, 10 rounds in a thread, and buffers of 9,830,400 bytes.
pub const A3_8800: [Runs; 6] = [
    on(1, [43.628, 42.469, 42.038]),
    on(2, [40.133, 42.327, 40.243]),
    on(3, [41.577, 42.327, 40.913]),
    on(4, [42.643, 41.263, 42.332]),
    on(5, [21.718, 19.860, 13.307]),
    on(6, [16.764, 16.847, 8.984]),
];

/// Table A3: the CPU.
pub const A3_CPU: [Runs; 6] = [
    on(1, [43.082, 43.988, 43.863]),
    on(2, [42.269, 40.310, 41.558]),
    on(3, [40.501, 42.538, 40.299]),
    on(4, [42.583, 44.158, 43.450]),
    on(5, [9.918, 20.248, 12.297]),
    on(6, [21.995, 19.970, 7.784]),
];

/// Table A4: the GeForce 8800 with 360 blocks of 512 threads, 10 rounds in a thread, and buffers of 58,982,400 bytes, while
/// the X server is running.
pub const A4_8800: [Runs; 8] = [
    on(1, [41.143, 41.507, 42.868]),
    on(2, [39.670, 40.648, 38.681]),
    on(3, [39.138, 38.153, 40.415]),
    on(4, [39.820, 41.788, 39.946]),
    on(5, [21.369, 20.190, 20.289]),
    on(6, [20.090, 17.688, 20.441]),
    on(7, [2.469, 2.306, 2.303]),
    on(8, [1.557, 1.922, 2.684]),
];

/// Table A4: the CPU, while the X server is running.
pub const A4_CPU: [Runs; 8] = [
    on(1, [43.319, 43.871, 42.291]),
    on(2, [38.865, 39.358, 42.673]),
    on(3, [41.431, 41.910, 42.371]),
    on(4, [41.168, 43.584, 40.605]),
    on(5, [20.457, 18.095, 19.284]),
    on(6, [17.945, 19.747, 19.549]),
    on(7, [1.967, 1.931, 1.894]),
    on(8, [1.068, 1.098, 1.076]),
];

/// A table of the 8800 and of the CPU on the same machine.
pub struct Pair {
    /// The name of the table.
    pub name: &'static str,
    /// The runs on the CPU.
    pub cpu: &'static [Runs],
    /// The runs on the GeForce 8800.
    pub on_8800: &'static [Runs],
}

/// Tables A1 to A4.
pub const ON_8800: [Pair; 4] = [
    Pair { name: "A1", cpu: &A1_CPU, on_8800: &A1_8800 },
    Pair { name: "A2", cpu: &A2_CPU, on_8800: &A2_8800 },
    Pair { name: "A3", cpu: &A3_CPU, on_8800: &A3_8800 },
    Pair { name: "A4", cpu: &A4_CPU, on_8800: &A4_8800 },
];

/// Table 6.2.2: the mean times of files 1 to 4 in seconds, on the CPU and on the GeForce 8800.
pub const TABLE_6_2_2: [(f64, f64); 4] =
    [(43.208, 41.949), (40.647, 40.474), (42.383, 41.824), (41.786, 40.314)];

/// The largest throughput of copies between the memories of the host and of the GeForce 8800, in bytes per second, that was observed with
/// CUDA 0.8 (section 2.3).
pub const COPIES: f64 = 2e9;

/// Table A7: an engine that does nothing. The thesis states one measurement for files 1 to 4 together, which is the row of file 1 here.
pub const A7_NULL: [Runs; 4] = [
    on(1, [34.073, 34.855, 35.891]),
    on(5, [14.920, 15.495, 14.918]),
    on(7, [3.491, 0.697, 0.697]),
    on(8, [1.635, 0.602, 1.141]),
];

/// Table A7: an engine that copies the data to the GeForce 6800 and back, without the shader.
pub const A7_COPIES_6800: [Runs; 4] = [
    on(1, [40.500, 41.775, 41.190]),
    on(5, [20.952, 18.620, 18.450]),
    on(7, [6.022, 1.672, 1.499]),
    on(8, [2.140, 1.174, 1.174]),
];

/// Table A7: an engine that copies the data to the GeForce 8800 and back, without the kernel.
pub const A7_COPIES_8800: [Runs; 4] = [
    on(1, [34.257, 35.831, 36.244]),
    on(5, [16.849, 14.653, 16.281]),
    on(7, [4.367, 4.411, 3.478]),
    on(8, [2.609, 3.297, 1.709]),
];

#[cfg(test)]
mod tests;
