//! How long work takes: a model of an operation's time by the shape of the work, stated by a device or measured on it.

use lockstep_core::backend::Cost;

/// How much work there is in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Messages, or segments of messages.
    pub messages: usize,
    /// Bytes of all of them together.
    pub bytes: usize,
    /// Bytes of the longest.
    pub longest: usize,
}

impl Shape {
    /// Of messages of these lengths.
    pub fn of(lengths: impl Iterator<Item = usize>) -> Shape {
        let none = Shape { messages: 0, bytes: 0, longest: 0 };
        lengths.fold(none, |shape, len| Shape {
            messages: shape.messages + 1,
            bytes: shape.bytes + len,
            longest: shape.longest.max(len),
        })
    }
}

impl From<usize> for Shape {
    /// One message of so many bytes.
    fn from(bytes: usize) -> Shape {
        Shape { messages: 1, bytes, longest: bytes }
    }
}

/// The time of a single message of some length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Its length in bytes.
    pub bytes: f64,
    /// Nanoseconds from the call to the result.
    pub ns: f64,
}

/// A picosecond a byte is less than any device takes.
const LEAST_NS_PER_BYTE: f64 = 1e-3;

/// A model of an operation's time.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// For one message, by increasing length: straight lines between these, and on from the last two; what is shorter than
    /// the first takes as long as it. Two at least.
    points: Vec<Point>,
    /// Nanoseconds that each message takes beyond the first, beside its bytes.
    per_message_ns: f64,
    /// For serial passes and whole fused AEADs, nanoseconds of each byte where many messages are worked on side by side.
    wide_ns_per_byte: Option<f64>,
}

impl Timing {
    /// From points of increasing length and time. `None` if there are fewer than two, or if they are nothing that was measured.
    pub fn new(points: Vec<Point>, per_message_ns: f64, wide_ns_per_byte: Option<f64>) -> Option<Timing> {
        // Beyond a week nothing was measured.
        let sane = |value: f64| (0.0..1e15).contains(&value);
        let increasing = points.windows(2).all(|two| two[0].bytes < two[1].bytes && two[0].ns <= two[1].ns);
        let all_sane = points.iter().all(|point| sane(point.bytes) && sane(point.ns))
            && sane(per_message_ns)
            && wide_ns_per_byte.is_none_or(sane);
        (points.len() >= 2 && increasing && all_sane).then_some(Timing {
            points,
            per_message_ns,
            wide_ns_per_byte,
        })
    }

    /// Nanoseconds for work of this shape.
    pub fn ns(&self, shape: Shape) -> f64 {
        let more = shape.messages.saturating_sub(1) as f64 * self.per_message_ns;
        match self.wide_ns_per_byte {
            Some(ns_per_byte) if shape.messages > 1 => {
                // The longest message takes what it takes alone, however many others are worked on beside it.
                let all = self.fixed_ns() + shape.bytes as f64 * ns_per_byte;
                self.alone(shape.longest as f64).max(all) + more
            }
            _ => self.alone(shape.bytes as f64) + more,
        }
    }

    fn alone(&self, bytes: f64) -> f64 {
        let first = self.points[0];
        if bytes <= first.bytes {
            return first.ns;
        }
        match self.points[1..].iter().position(|point| bytes <= point.bytes) {
            Some(index) => {
                let (from, to) = (self.points[index], self.points[index + 1]);
                from.ns + (bytes - from.bytes) * (to.ns - from.ns) / (to.bytes - from.bytes)
            }
            None => self.last().ns + (bytes - self.last().bytes) * self.last_slope(),
        }
    }

    fn last(&self) -> Point {
        self.points[self.points.len() - 1]
    }

    /// Nanoseconds of each byte beyond the longest. Where more threads came in between the last two points the line between them
    /// may be flat; nothing is ten times as fast for more of the same.
    fn last_slope(&self) -> f64 {
        let [.., from, to] = &self.points[..] else { unreachable!("there are two points at least") };
        ((to.ns - from.ns) / (to.bytes - from.bytes)).max(0.1 * to.ns / to.bytes.max(1.0))
    }

    /// Nanoseconds of a call however small.
    pub fn fixed_ns(&self) -> f64 {
        self.points[0].ns
    }

    /// Bytes per second of one long message, at the margin.
    pub fn bytes_per_second(&self) -> f64 {
        1e9 / self.last_slope().max(LEAST_NS_PER_BYTE)
    }

    /// The straight line that long work follows: by many messages side by side, where that makes a difference.
    pub(crate) fn marginal(&self) -> Cost {
        if let Some(ns_per_byte) = self.wide_ns_per_byte {
            return Cost { fixed_ns: self.fixed_ns(), ns_per_byte: ns_per_byte.max(LEAST_NS_PER_BYTE) };
        }
        let (to, ns_per_byte) = (self.last(), self.last_slope().max(LEAST_NS_PER_BYTE));
        Cost { fixed_ns: (to.ns - to.bytes * ns_per_byte).max(0.0), ns_per_byte }
    }

    /// What each message takes beyond the first, beside its bytes, in nanoseconds.
    pub fn per_message_ns(&self) -> f64 {
        self.per_message_ns
    }

    /// For serial passes and whole fused AEADs, nanoseconds of each byte of many messages side by side.
    pub fn wide_ns_per_byte(&self) -> Option<f64> {
        self.wide_ns_per_byte
    }

    /// What it was measured at.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The mean of two: what lies between 128 and 256 bits.
    pub(crate) fn between(&self, other: &Timing) -> Option<Timing> {
        let lengths = self.points.iter().map(|point| point.bytes);
        let mean = |a: f64, b: f64| (a + b) / 2.0;
        let points = lengths.map(|bytes| Point { bytes, ns: mean(self.alone(bytes), other.alone(bytes)) });
        let wide = self.wide_ns_per_byte.zip(other.wide_ns_per_byte).map(|(a, b)| mean(a, b));
        Timing::new(points.collect(), mean(self.per_message_ns, other.per_message_ns), wide)
    }
}

impl From<Cost> for Timing {
    fn from(cost: Cost) -> Timing {
        let at = |bytes: f64| Point { bytes, ns: cost.fixed_ns + cost.ns_per_byte * bytes };
        Timing { points: vec![at(0.0), at(1e6)], per_message_ns: 0.0, wide_ns_per_byte: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(pairs: &[(f64, f64)]) -> Vec<Point> {
        pairs.iter().map(|&(bytes, ns)| Point { bytes, ns }).collect()
    }

    fn timing(pairs: &[(f64, f64)], per_message: f64, wide: Option<f64>) -> Timing {
        Timing::new(points(pairs), per_message, wide).unwrap()
    }

    #[test]
    fn stated_costs_are_lines() {
        let timing = Timing::from(Cost { fixed_ns: 100.0, ns_per_byte: 0.5 });
        for bytes in [0, 1, 1000, 1 << 30] {
            assert!((timing.ns(bytes.into()) - (100.0 + bytes as f64 / 2.0)).abs() < 1e-3);
        }
        assert!((timing.bytes_per_second() - 2e9).abs() < 1.0);
    }

    #[test]
    fn lines_go_from_point_to_point_and_on() {
        let timing = timing(&[(100.0, 10.0), (200.0, 20.0), (1000.0, 820.0)], 0.0, None);
        let at = |bytes: usize| timing.ns(bytes.into());
        assert_eq!([at(0), at(100), at(150), at(200), at(600)], [10.0, 10.0, 15.0, 20.0, 420.0]);
        assert_eq!(at(2000), 1820.0);
        // A flat end is not believed.
        let timing = self::timing(&[(1.0, 50.0), (1000.0, 100.0), (2000.0, 100.0)], 0.0, None);
        assert_eq!(timing.ns(12_000.into()), 150.0);
    }

    #[test]
    fn messages_cost_something_each() {
        let timing = timing(&[(0.0, 100.0), (1000.0, 1100.0)], 7.0, None);
        assert_eq!(timing.ns(Shape { messages: 11, bytes: 1000, longest: 500 }), 1170.0);
        assert_eq!(timing.ns(Shape { messages: 0, bytes: 0, longest: 0 }), 100.0);
    }

    #[test]
    fn serial_messages_run_side_by_side() {
        let timing = timing(&[(0.0, 100.0), (1000.0, 10_100.0)], 0.0, Some(0.1));
        assert_eq!(timing.ns(1000.into()), 10_100.0);
        // Many of one length: the chain of one, then the width of the device.
        assert_eq!(timing.ns(Shape { messages: 50, bytes: 50_000, longest: 1000 }), 10_100.0);
        assert_eq!(timing.ns(Shape { messages: 500, bytes: 500_000, longest: 1000 }), 50_100.0);
        assert_eq!(timing.ns(Shape { messages: 2, bytes: 1016, longest: 1000 }), 10_100.0);
    }

    #[test]
    fn nonsense_is_no_timing() {
        assert!(Timing::new(points(&[(1.0, 1.0)]), 0.0, None).is_none());
        assert!(Timing::new(points(&[(1.0, 1.0), (1.0, 2.0)]), 0.0, None).is_none());
        assert!(Timing::new(points(&[(1.0, 2.0), (2.0, 1.0)]), 0.0, None).is_none());
        assert!(Timing::new(points(&[(1.0, f64::NAN), (2.0, 1.0)]), 0.0, None).is_none());
        assert!(Timing::new(points(&[(-1.0, 1.0), (2.0, 1.0)]), 0.0, None).is_none());
        assert!(Timing::new(points(&[(1.0, 1.0), (2.0, f64::INFINITY)]), 0.0, None).is_none());
        assert!(Timing::new(points(&[(1.0, 1.0), (2.0, 1e308)]), 0.0, None).is_none());
        assert!(Timing::new(points(&[(1.0, 1.0), (2.0, 2.0)]), -1.0, None).is_none());
        assert!(Timing::new(points(&[(1.0, 1.0), (2.0, 2.0)]), 0.0, Some(f64::NAN)).is_none());
    }
}
