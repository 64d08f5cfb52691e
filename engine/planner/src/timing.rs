//! The model of an operation's time, which depends on the shape of the work. The times are stated by a device or measured on
//! it.

use lockstep_core::backend::Cost;

/// The amount of work in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of messages, or segments of messages.
    pub messages: usize,
    /// The bytes of all messages or segments.
    pub bytes: usize,
    /// The bytes of the longest message or segment.
    pub longest: usize,
}

impl Shape {
    /// The shape of messages of these lengths.
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
    /// One message of this number of bytes.
    fn from(bytes: usize) -> Shape {
        Shape { messages: 1, bytes, longest: bytes }
    }
}

/// The time of a single message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The length of the message in bytes.
    pub bytes: f64,
    /// Nanoseconds from the call to the result.
    pub ns: f64,
}

/// A lower limit for the time of a byte: 1000 GB/s. For comparison, the memory of an H100 reaches 3350 GB/s for reads and
/// writes together.
const MIN_NS_PER_BYTE: f64 = 1e-3;

/// Maximum time in nanoseconds: eleven days. A longer time in a file was not measured; the file is damaged.
const MAX_NS: f64 = 1e15;

/// A model of an operation's time.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// The times of one message, by increasing length; at least two points. Between the points, times are interpolated
    /// linearly. Beyond the last point, they follow the line through the last two points. Below the first point, they are
    /// constant.
    points: Vec<Point>,
    /// Nanoseconds of each message except the first, in addition to the time of its bytes.
    per_message_ns: f64,
    /// For serial passes and fused AEADs: nanoseconds of each byte when many messages are processed in parallel.
    wide_ns_per_byte: Option<f64>,
}

impl Timing {
    /// A model from points of increasing length and time. `None` if there are fewer than two points, or if a number is out
    /// of range.
    pub fn new(points: Vec<Point>, per_message_ns: f64, wide_ns_per_byte: Option<f64>) -> Option<Timing> {
        let sane = |value: f64| (0.0..MAX_NS).contains(&value);
        let increasing = points.windows(2).all(|two| two[0].bytes < two[1].bytes && two[0].ns <= two[1].ns);
        let all_sane = points.iter().all(|point| sane(point.bytes) && sane(point.ns))
            && sane(per_message_ns)
            && wide_ns_per_byte.is_none_or(sane);
        let is_valid = points.len() >= 2 && increasing && all_sane;
        is_valid.then_some(Timing { points, per_message_ns, wide_ns_per_byte })
    }

    /// Nanoseconds for work of this shape.
    pub fn ns(&self, shape: Shape) -> f64 {
        let more = shape.messages.saturating_sub(1) as f64 * self.per_message_ns;
        match self.wide_ns_per_byte {
            Some(ns_per_byte) if shape.messages > 1 => {
                // The time is at least the time of the longest message alone.
                let all = self.fixed_ns() + shape.bytes as f64 * ns_per_byte;
                self.single(shape.longest as f64).max(all) + more
            }
            _ => self.single(shape.bytes as f64) + more,
        }
    }

    /// True if this time is at most the other time for work of every shape. False if this is not certain.
    pub(crate) fn is_at_most(&self, other: &Timing) -> bool {
        let have_same_bytes =
            self.points.iter().map(|point| point.bytes).eq(other.points.iter().map(|point| point.bytes));
        have_same_bytes
            && self.points.iter().zip(&other.points).all(|(one, two)| one.ns <= two.ns)
            && self.last_slope() <= other.last_slope()
            && self.per_message_ns <= other.per_message_ns
            && self.wide_ns_per_byte.is_none()
            && other.wide_ns_per_byte.is_none()
    }

    fn single(&self, bytes: f64) -> f64 {
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

    /// Nanoseconds of each byte beyond the last point. The minimum is a tenth of the average up to the last point, because
    /// the line through the last two points may be flat: the operation may use more threads at the last point than at the
    /// point before.
    fn last_slope(&self) -> f64 {
        let [.., from, to] = &self.points[..] else { unreachable!("there are two points at least") };
        ((to.ns - from.ns) / (to.bytes - from.bytes)).max(0.1 * to.ns / to.bytes.max(1.0))
    }

    /// Nanoseconds of the shortest call.
    pub fn fixed_ns(&self) -> f64 {
        self.points[0].ns
    }

    /// Bytes per second of one long message, without the fixed time.
    pub fn bytes_per_second(&self) -> f64 {
        1e9 / self.last_slope().max(MIN_NS_PER_BYTE)
    }

    /// Nanoseconds of each message except the first, in addition to the time of its bytes.
    pub fn per_message_ns(&self) -> f64 {
        self.per_message_ns
    }

    /// For serial passes and fused AEADs: nanoseconds of each byte when many messages are processed in parallel.
    pub fn wide_ns_per_byte(&self) -> Option<f64> {
        self.wide_ns_per_byte
    }

    /// The points from which the model was made.
    pub fn points(&self) -> &[Point] {
        &self.points
    }
}

impl From<Cost> for Timing {
    fn from(cost: Cost) -> Timing {
        let at = |bytes: f64| Point { bytes, ns: cost.fixed_ns + cost.ns_per_byte * bytes };
        Timing { points: vec![at(0.0), at(1e6)], per_message_ns: 0.0, wide_ns_per_byte: None }
    }
}
