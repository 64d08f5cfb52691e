//! All measurements, and their representation as JSON.

use lockstep_qpu::launch::Launch;
use serde_json::{Value, json};

use super::Error;
use super::appendix::{self, FirstKernel, Times};
use super::compile::{self, Compiled};
use super::hypotheses::{self, Hypothesis, Tables};
use super::kernels::{KERNELS, Named};
use super::measured::{KEY_BITS, Measured, QPU_COUNTS, Spent};
use super::model::{CLOCK_HZ, HOST_BYTE, HOST_CALL, HOST_LONG_CALL, INVOCATION, LONG_CALL};
use super::paper::{self, Decryption, Encryption};
use super::throughput::{self, Rates};

/// The measurements so far. A table is empty until it is needed.
#[derive(Debug, Default)]
pub struct Report {
    pub(super) encryption: Vec<(Encryption, Rates)>,
    pub(super) decryption: Vec<(Decryption, Rates)>,
    pub(super) overclocked: [[f64; 2]; 2],
    /// Seconds of a call with one block with one QPU and with 12, for encryption and decryption.
    pub(super) one_block: [[f64; 2]; 2],
    pub(super) table_7_1: Times<2>,
    pub(super) table_7_2: Times<2>,
    pub(super) table_7_3: Times<3>,
    pub(super) table_7_4: Vec<FirstKernel>,
    pub(super) hypotheses: Vec<Hypothesis>,
    pub(super) measured: Vec<Measured>,
    pub(super) compiled: Vec<Compiled>,
}

impl Report {
    /// Simulates everything, which takes some seconds.
    ///
    /// # Errors
    /// [`Error::Kernel`] if a kernel does not run, which is a bug.
    pub fn measure() -> Result<Report, Error> {
        let mut report = Report::default();
        report.measure_encryption()?;
        report.measure_decryption()?;
        report.measure_overclocked()?;
        report.measure_one_block()?;
        report.measure_compiler()?;
        report.measure_table_7_1()?;
        report.measure_table_7_2()?;
        report.measure_table_7_3()?;
        report.measure_table_7_4()?;
        report.measure_hypotheses()?;
        report.measure_kernels()?;
        Ok(report)
    }

    pub(super) fn measure_encryption(&mut self) -> Result<(), Error> {
        self.encryption = throughput::encryption()?;
        Ok(())
    }

    pub(super) fn measure_decryption(&mut self) -> Result<(), Error> {
        self.decryption = throughput::decryption()?;
        Ok(())
    }

    pub(super) fn measure_overclocked(&mut self) -> Result<(), Error> {
        self.overclocked = throughput::overclocked()?;
        Ok(())
    }

    pub(super) fn measure_one_block(&mut self) -> Result<(), Error> {
        self.one_block = [throughput::one_block(false)?, throughput::one_block(true)?];
        Ok(())
    }

    pub(super) fn measure_compiler(&mut self) -> Result<(), Error> {
        self.compiled = compile::measure();
        Ok(())
    }

    pub(super) fn measure_table_7_1(&mut self) -> Result<(), Error> {
        self.table_7_1 = appendix::table_7_1()?;
        Ok(())
    }

    pub(super) fn measure_table_7_2(&mut self) -> Result<(), Error> {
        self.table_7_2 = appendix::table_7_2()?;
        Ok(())
    }

    pub(super) fn measure_table_7_3(&mut self) -> Result<(), Error> {
        self.table_7_3 = appendix::table_7_3()?;
        Ok(())
    }

    pub(super) fn measure_table_7_4(&mut self) -> Result<(), Error> {
        self.table_7_4 = appendix::table_7_4()?;
        Ok(())
    }

    /// Tests the explanations of the differences, after Tables 7.1 to 7.4 have been measured.
    pub(super) fn measure_hypotheses(&mut self) -> Result<(), Error> {
        self.hypotheses = hypotheses::all(&Tables {
            sums: &self.table_7_1,
            products: &self.table_7_2,
            multiplications: &self.table_7_3,
            first: &self.table_7_4,
        })?;
        Ok(())
    }

    pub(super) fn measure_kernels(&mut self) -> Result<(), Error> {
        for named in KERNELS {
            for bits in KEY_BITS {
                for qpus in QPU_COUNTS {
                    self.measured.push(Measured::of(named, bits, qpus)?);
                }
            }
        }
        Ok(())
    }

    /// The rows of Table 5.1 with the rates of the model.
    pub fn encryption(&self) -> &[(Encryption, Rates)] {
        &self.encryption
    }

    /// The rows of Table 5.2 with the rates of the model.
    pub fn decryption(&self) -> &[(Decryption, Rates)] {
        &self.decryption
    }

    /// Tables 7.1 and 7.2 by the model, in milliseconds.
    pub fn transfers(&self) -> [Times<2>; 2] {
        [self.table_7_1, self.table_7_2]
    }

    /// Table 7.3 by the model, in milliseconds.
    pub fn multiplications(&self) -> Times<3> {
        self.table_7_3
    }

    /// Table 7.4 (the first kernel) by the model, by 1 to 12 QPUs.
    pub fn first_kernel(&self) -> &[FirstKernel] {
        &self.table_7_4
    }

    /// Explanations of the differences between the model and the thesis.
    pub fn hypotheses(&self) -> &[Hypothesis] {
        &self.hypotheses
    }

    /// Rates at 500 MHz by the model in kB/s, in the order of [`paper::FAST`].
    pub fn overclocked(&self) -> [[f64; 2]; 2] {
        self.overclocked
    }

    /// Microseconds of a call with one block by the model, with one QPU and with 12, for encryption and decryption.
    pub fn one_block(&self) -> [[f64; 2]; 2] {
        self.one_block.map(|row| row.map(|seconds| 1e6 * seconds))
    }

    /// The measurements of all kernels. Empty until they are needed.
    pub fn measured(&self) -> &[Measured] {
        &self.measured
    }

    /// The measurement of a kernel.
    ///
    /// # Panics
    /// If it has not been measured.
    pub fn find(&self, launch: Launch, bits: u32, qpus: u8) -> &Measured {
        let is_wanted = |one: &&Measured| (one.named.launch, one.bits, one.qpus) == (launch, bits, qpus);
        self.measured.iter().find(is_wanted).expect("the report has all kernels")
    }

    /// The rates of chained modes by the thesis's kernel: see [`Chain`].
    ///
    /// # Panics
    /// If the kernels have not been measured.
    pub fn chains(&self) -> Vec<Chain> {
        let of = |qpus: u8, in_vector: u32| {
            let measured = self.find(Launch::Packed { decrypts: false }, 128, qpus);
            let messages = u32::from(qpus) * in_vector;
            let rate = f64::from(16 * messages) * CLOCK_HZ / measured.clocks_of_turn / 1e3;
            Chain { qpus, in_vector, messages, rate }
        };
        vec![of(1, 1), of(1, 4), of(12, 1), of(12, 4)]
    }

    /// All results as JSON.
    pub fn json(&self) -> Value {
        let times = |paper: &[Vec<f64>], model: &[Vec<f64>]| -> Value {
            let rows = (1..).zip(paper.iter().zip(model));
            rows.map(|(qpus, (thesis, model))| json!({"qpus": qpus, "thesis": thesis, "model": model}))
                .collect()
        };
        let rows = |rows: &[[f64; 2]]| -> Vec<Vec<f64>> { rows.iter().map(|row| row.to_vec()).collect() };
        let of_three = |rows: &[[f64; 3]]| -> Vec<Vec<f64>> { rows.iter().map(|row| row.to_vec()).collect() };
        json!({
            "clock_hz": CLOCK_HZ,
            "model": {
                "invocation": INVOCATION,
                "host_call": HOST_CALL,
                "host_byte": HOST_BYTE,
                "host_long_call": HOST_LONG_CALL,
                "long_call": LONG_CALL,
            },
            "table_5_1": self.encryption.iter().map(encryption_json).collect::<Value>(),
            "table_5_2": self.decryption.iter().map(decryption_json).collect::<Value>(),
            "overclocked": {
                "clock_hz": paper::FAST_CLOCK_HZ,
                "bytes": paper::FAST_BYTES,
                "thesis": paper::FAST,
                "model": self.overclocked,
            },
            "one_block_microseconds": {"thesis": paper::CALL_MICROSECONDS, "model": self.one_block()},
            "compile": {
                "thesis_milliseconds": paper::COMPILE_MILLISECONDS,
                "programs": self.compiled.iter().map(compiled_json).collect::<Value>(),
            },
            "table_7_1": times(&rows(&paper::TABLE_7_1), &rows(&self.table_7_1)),
            "table_7_2": times(&rows(&paper::TABLE_7_2), &rows(&self.table_7_2)),
            "table_7_3": times(&of_three(&paper::TABLE_7_3), &of_three(&self.table_7_3)),
            "table_7_4": self.table_7_4.iter().zip(paper::TABLE_7_4).zip(1..).map(|((model, thesis), qpus)| {
                json!({
                    "qpus": qpus,
                    "thesis": thesis,
                    "instructions_only": model.milliseconds[0],
                    "with_waits": model.milliseconds[1],
                    "clocks_per_block": model.clocks,
                })
            }).collect::<Value>(),
            "explanations": self.hypotheses.iter().map(Hypothesis::json).collect::<Value>(),
            "chains": self.chains().iter().map(Chain::json).collect::<Value>(),
            "kernels": self.measured.iter().map(measured_json).collect::<Value>(),
        })
    }
}

/// Messages of a chained mode, which the thesis's kernel encrypts block by block. A vector contains one block of each of up to four
/// messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chain {
    /// The number of QPUs that process the messages.
    pub qpus: u8,
    /// Number of messages in a vector, at most four.
    pub in_vector: u32,
    /// The number of messages that all QPUs process at the same time.
    pub messages: u32,
    /// The rate of all messages in kB/s, without invocation and copies.
    pub rate: f64,
}

impl Chain {
    fn json(&self) -> Value {
        json!({
            "qpus": self.qpus,
            "messages_in_a_vector": self.in_vector,
            "messages": self.messages,
            "kilobytes_per_second": self.rate,
        })
    }
}

fn encryption_json((row, model): &(Encryption, Rates)) -> Value {
    json!({
        "bytes": row.bytes,
        "thesis": {
            "openssl": row.openssl,
            "one_qpu": row.one,
            "twelve_qpus": row.twelve,
            "twelve_qpus_without_copies": row.kernel,
        },
        "model": model.json(),
    })
}

fn decryption_json((row, model): &(Decryption, Rates)) -> Value {
    json!({
        "bytes": row.bytes,
        "thesis": {"openssl": row.openssl, "one_qpu": row.one, "twelve_qpus": row.twelve},
        "model": model.json(),
    })
}

fn compiled_json(one: &Compiled) -> Value {
    let of =
        |(seconds, instructions): (f64, usize)| json!({"seconds": seconds, "instructions": instructions});
    json!({"program": one.program, "sequential": one.sequential.map(of), "scheduled": one.scheduled.map(of)})
}

fn measured_json(one: &Measured) -> Value {
    let Named { kernel, mode, decrypts, unit, .. } = one.named;
    let all = one.spent.total() as f64;
    let percent = |clocks: u64| 100.0 * clocks as f64 / all;
    let Spent { both, one: single, nops, texture, loads, stores, synchronization } = one.spent;
    json!({
        "kernel": kernel,
        "mode": mode,
        "bits": one.bits,
        "decrypt": decrypts,
        "argument": one.named.argument(),
        "qpus": one.qpus,
        "clocks_per_byte_per_qpu": one.clocks_per_byte(),
        "bytes_of_an_iteration": unit,
        "megabytes_per_second": one.megabytes(),
        "percent": {
            "two_operations": percent(both),
            "one_operation": percent(single),
            "nops": percent(nops),
            "texture_unit": percent(texture),
            "dma_loads": percent(loads),
            "dma_stores": percent(stores),
            "synchronization": percent(synchronization),
        },
    })
}
