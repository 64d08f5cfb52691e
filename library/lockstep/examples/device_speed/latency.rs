//! Measures single small calls on data in device memory. Each call is timed separately.

use serde_json::json;

use super::Result;
use super::bench::Bench;
use super::message::{Message, key_sizes, parallel};
use super::rows::{Rows, Subject, time};

const SIZES: [usize; 5] = [16, 256, 1 << 10, 4 << 10, 64 << 10];

/// The minimum number of calls of a measurement.
const CALLS: usize = 200;

pub(crate) fn measure(bench: &mut Bench, rows: &mut Rows) -> Result<()> {
    let sizes: Vec<usize> = SIZES.into_iter().filter(|&len| len <= bench.largest).collect();
    // The first five operations of `parallel()`: CTR, ECB encryption, GCM encryption and decryption, and GHASH.
    for operation in parallel().into_iter().take(5) {
        for size in key_sizes(operation) {
            let message = Message::new(operation, size)?;
            for &len in &sizes {
                for (kernel, name) in bench.kernels() {
                    let subject = Subject {
                        what: "latency",
                        kernel: name.into(),
                        operation: operation.to_string(),
                        bits: size.bits(),
                        messages: 1,
                        bytes: len,
                    };
                    if bench.device.cost(kernel, operation, size).is_none() || !rows.wants(&subject) {
                        continue;
                    }
                    let expected = message.prepare(bench, len)?;
                    let seconds = bench.seconds(bench.largest) / 5.0;
                    let calls = if bench.device.properties().slow { 3 } else { CALLS };
                    let outcome = message.check(bench, kernel, len, expected).and_then(|()| {
                        time(seconds, calls, || {
                            message.run_on_device(bench, kernel, len, expected).map(|_| ())
                        })
                    });
                    rows.write(&subject, outcome, json!({"checked": "all"}))?;
                }
            }
        }
    }
    Ok(())
}
