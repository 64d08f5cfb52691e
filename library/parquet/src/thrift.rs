//! Thrift's compact protocol (Apache Thrift, `doc/specs/thrift-compact-protocol.md`), one structure at a time.
//!
//! The crate `thrift` is not used, because its generated structures drop unknown fields. A rewritten footer must keep these
//! fields.
//!
//! The integers of a structure are decoded. Its other values stay encoded, byte for byte as they were read, until they are
//! requested. Lists of structures are read and changed element by element. So a structure takes as much memory as its bytes plus
//! the memory for at most [`MAX_FIELDS`] fields. All bytes are scanned when a structure is read; this takes no memory, and a stack
//! for [`MAX_DEPTH`] levels.

use crate::error::{Error, Result, cut_off, ensure, malformed, missing};

/// Maximum depth of nested values.
const MAX_DEPTH: usize = 48;
/// Maximum number of fields of a structure. A field takes 40 bytes in addition to its value. The structures of Parquet have
/// fewer than 20 fields.
const MAX_FIELDS: usize = 256;

/// The types of the protocol.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const I8: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
    pub(super) const UUID: u8 = 13;
}

/// A value of a field, with its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// An integer of 16, 32 or 64 bits.
    Int(u8, i64),
    /// The encoding of a value of another type. The encoding of a Boolean is empty, since its type states its value.
    Encoded(u8, Vec<u8>),
}

impl Value {
    pub(crate) const TRUE: Value = Value::Encoded(kind::TRUE, Vec::new());

    pub(crate) fn i16(value: i16) -> Value {
        Value::Int(kind::I16, value.into())
    }

    pub(crate) fn i32(value: i32) -> Value {
        Value::Int(kind::I32, value.into())
    }

    pub(crate) fn i64(value: i64) -> Value {
        Value::Int(kind::I64, value)
    }

    pub(crate) fn binary(bytes: &[u8]) -> Value {
        let mut out = Vec::with_capacity(bytes.len() + varint_len(bytes.len() as u64));
        write_binary(&mut out, bytes);
        Value::Encoded(kind::BINARY, out)
    }
}

/// A structure: its fields in the order of their numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Struct {
    fields: Vec<(i16, Value)>,
}

impl Struct {
    /// Reads a structure at the start of the bytes; returns it and its length. None if the bytes end before the end of the
    /// structure.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Struct, usize)>> {
        Struct::read_only(bytes, |_| true)
    }

    /// Reads only the fields for whose numbers `keeps` is true, and skips all others.
    pub(crate) fn read_only(bytes: &[u8], keeps: impl Fn(i16) -> bool) -> Result<Option<(Struct, usize)>> {
        let mut reader = Reader(bytes);
        match reader.structure(keeps) {
            Ok(value) => Ok(Some((value, bytes.len() - reader.0.len()))),
            Err(Stop::End) => Ok(None),
            Err(Stop::Bad(what)) => Err(invalid(what)),
        }
    }

    /// Reads the structure of a decrypted module. parquet-java encrypts the whole buffer into which it has written a
    /// structure, so that bytes may follow the structure. These bytes are authentic, and have no meaning.
    pub(crate) fn read_module(bytes: &[u8], what: &str) -> Result<Struct> {
        Ok(Struct::read(bytes)?.ok_or_else(|| cut_off(what))?.0)
    }

    /// Reads a structure that ends at the end of the bytes.
    pub(crate) fn read_whole(bytes: &[u8], what: &str) -> Result<Struct> {
        let (value, len) = Struct::read(bytes)?.ok_or_else(|| cut_off(what))?;
        ensure(len == bytes.len(), || malformed(format!("there are bytes after the {what}")))?;
        Ok(value)
    }

    pub(crate) fn get(&self, id: i16) -> Option<&Value> {
        self.fields.iter().find(|(number, _)| *number == id).map(|(_, value)| value)
    }

    pub(crate) fn has(&self, id: i16) -> bool {
        self.get(id).is_some()
    }

    pub(crate) fn set(&mut self, id: i16, value: Value) {
        match self.fields.binary_search_by_key(&id, |(number, _)| *number) {
            Ok(at) => self.fields[at].1 = value,
            Err(at) => self.fields.insert(at, (id, value)),
        }
    }

    /// Sets a field to a structure.
    pub(crate) fn set_structure(&mut self, id: i16, value: &Struct) -> Result<()> {
        value.check()?;
        self.set(id, structure(value));
        Ok(())
    }

    /// Sets a field to `bytes`; does nothing if they are None.
    pub(crate) fn set_binary(&mut self, id: i16, bytes: Option<&[u8]>) {
        if let Some(bytes) = bytes {
            self.set(id, Value::binary(bytes));
        }
    }

    /// Fails if fields were added to the structure, and readers would therefore refuse it.
    pub(crate) fn check(&self) -> Result<()> {
        ensure(self.fields.len() <= MAX_FIELDS, || invalid("too many fields"))
    }

    /// True if a reader accepts the structure with another field, whose number is higher than all others.
    pub(crate) fn has_room(&self) -> bool {
        self.fields.len() < MAX_FIELDS && self.fields.last().is_none_or(|(last, _)| *last < i16::MAX)
    }

    /// Removes a field.
    pub(crate) fn remove(&mut self, id: i16) {
        self.keep_only(|number| number != id);
    }

    /// Removes all fields except those for whose numbers `keeps` is true.
    pub(crate) fn keep_only(&mut self, keeps: impl Fn(i16) -> bool) {
        self.fields.retain(|(id, _)| keeps(*id));
    }

    /// An integer of 16, 32 or 64 bits.
    pub(crate) fn int(&self, id: i16) -> Option<i64> {
        if let Value::Int(_, value) = self.get(id)? { Some(*value) } else { None }
    }

    /// The encoding of a field of this type.
    fn encoded(&self, id: i16, kind: u8) -> Option<&[u8]> {
        match self.get(id)? {
            Value::Encoded(found, bytes) if *found == kind => Some(bytes),
            _ => None,
        }
    }

    pub(crate) fn binary(&self, id: i16) -> Option<&[u8]> {
        Reader(self.encoded(id, kind::BINARY)?).binary().ok()
    }

    /// Returns the structure in a field. None if the field does not exist or has another type.
    pub(crate) fn structure(&self, id: i16) -> Result<Option<Struct>> {
        let bytes = self.encoded(id, kind::STRUCT);
        bytes.map(|bytes| Struct::read_whole(bytes, "structure")).transpose()
    }

    /// Returns the elements of a list of structures; None if the field is not a list of structures. For an empty list, the type of
    /// the elements is not checked.
    pub(crate) fn structs(&self, id: i16) -> Option<Structs<'_>> {
        let mut reader = Reader(self.encoded(id, kind::LIST)?);
        let (element, left) = reader.list_header().ok()?;
        (element == kind::STRUCT || left == 0).then_some(Structs { reader, left })
    }

    /// Changes the elements of a list of structures, one after the other. `change` gets the index of the element and the element.
    /// Fails if the field is not a list of structures; `what` is its name for the error.
    pub(crate) fn rewrite(
        &mut self,
        id: i16,
        what: &str,
        mut change: impl FnMut(usize, &mut Struct) -> Result<()>,
    ) -> Result<()> {
        let structs = self.structs(id).ok_or_else(|| missing(what))?;
        if structs.len() == 0 {
            return Ok(());
        }
        // The header of a list has at most 6 bytes.
        let mut out = Vec::with_capacity(structs.bytes() + 6);
        write_list_header(&mut out, kind::STRUCT, structs.len());
        for (index, element) in structs.enumerate() {
            let mut element = element?;
            change(index, &mut element)?;
            element.check()?;
            write_struct(&mut out, &element);
        }
        self.set(id, Value::Encoded(kind::LIST, out));
        Ok(())
    }

    /// True if a field is a list of these strings.
    pub(crate) fn has_strings(&self, id: i16, strings: &[String]) -> bool {
        let Some(bytes) = self.encoded(id, kind::LIST) else { return false };
        let mut reader = Reader(bytes);
        matches!(reader.list_header(), Ok((kind::BINARY, count)) if count == strings.len())
            && strings.iter().all(|string| matches!(reader.binary(), Ok(bytes) if bytes == string.as_bytes()))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_struct(&mut out, self);
        out
    }

    /// Returns an encoding of exactly `len` bytes. After the fields of the structure, a padding field, whose number no structure of
    /// Parquet uses, fills the remaining bytes. None if the fields need more than `len` bytes, or if padding is needed and the
    /// highest field number is negative.
    pub(crate) fn encode_padded(&self, len: usize) -> Option<Vec<u8>> {
        /// The least number of the padding field. It is higher than the numbers of all other fields.
        const PADDING: i16 = 15;
        let mut out = Vec::with_capacity(len);
        let last = write_fields(&mut out, self);
        // One byte is for the end of the structure.
        let missing = len.checked_sub(out.len() + 1)?;
        if missing > 0 {
            if last < 0 {
                return None;
            }
            // The field's header is a byte, since the difference of the numbers is from 1 to 15.
            let (id, rest) = (last.checked_add(1)?.max(PADDING), missing - 1);
            let count =
                (1..=5).find_map(|size| rest.checked_sub(size).filter(|n| varint_len(*n as u64) == size))?;
            write_field_header(&mut out, kind::BINARY, id, last);
            write_varint(&mut out, count as u64);
            out.resize(len - 1, 0);
        }
        out.push(0);
        (out.len() == len).then_some(out)
    }
}

/// The elements of a list of structures, which are decoded one after the other.
pub(crate) struct Structs<'a> {
    reader: Reader<'a>,
    /// The number of elements that are still to come.
    left: usize,
}

impl Structs<'_> {
    pub(crate) fn len(&self) -> usize {
        self.left
    }

    /// The length of the elements that are still to come, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.reader.0.len()
    }
}

impl Iterator for Structs<'_> {
    type Item = Result<Struct>;

    fn next(&mut self) -> Option<Result<Struct>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.reader.structure(|_| true).map_err(|stop| match stop {
            Stop::End => malformed("a list is cut off"),
            Stop::Bad(what) => invalid(what),
        }))
    }
}

fn invalid(what: &str) -> Error {
    malformed(format!("a structure is invalid ({what})"))
}

/// A structure in a field.
pub(crate) fn structure(value: &Struct) -> Value {
    Value::Encoded(kind::STRUCT, value.encode())
}

/// A list of strings.
pub(crate) fn strings(strings: &[impl AsRef<str>]) -> Value {
    let mut out = Vec::new();
    write_list_header(&mut out, kind::BINARY, strings.len());
    strings.iter().for_each(|string| write_binary(&mut out, string.as_ref().as_bytes()));
    Value::Encoded(kind::LIST, out)
}

/// A list of integers of 32 bits.
pub(crate) fn ints(values: &[i32]) -> Value {
    let mut out = Vec::new();
    write_list_header(&mut out, kind::I32, values.len());
    values.iter().for_each(|value| write_zigzag(&mut out, i64::from(*value)));
    Value::Encoded(kind::LIST, out)
}

/// Why reading stopped.
enum Stop {
    /// The bytes have ended.
    End,
    Bad(&'static str),
}

type Step<T> = std::result::Result<T, Stop>;

/// The bytes that have not been read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Step<&'a [u8]> {
        self.0.split_off(..count).ok_or(Stop::End)
    }

    fn byte(&mut self) -> Step<u8> {
        self.0.split_off_first().copied().ok_or(Stop::End)
    }

    fn varint(&mut self) -> Step<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Stop::Bad("an integer is too long"))
    }

    fn zigzag(&mut self) -> Step<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn len(&mut self) -> Step<usize> {
        let len = self.varint()?;
        if len > i32::MAX as u64 { Err(Stop::Bad("a length is out of range")) } else { Ok(len as usize) }
    }

    fn binary(&mut self) -> Step<&'a [u8]> {
        let len = self.len()?;
        self.take(len)
    }

    /// The type of the elements of a list, and their number.
    fn list_header(&mut self) -> Step<(u8, usize)> {
        let first = self.byte()?;
        let count = if first >> 4 == 15 { self.len()? } else { usize::from(first >> 4) };
        Ok((first & 15, count))
    }

    /// The number and the type of the next field of a structure, after the field `last`. None at the end of the structure.
    fn field(&mut self, last: i16) -> Step<Option<(i16, u8)>> {
        let first = self.byte()?;
        let id = match first >> 4 {
            _ if first == 0 => return Ok(None),
            0 => i16::try_from(self.zigzag()?).map_err(|_| Stop::Bad("an integer is out of range"))?,
            delta => last.checked_add(delta.into()).ok_or(Stop::Bad("a field number is out of range"))?,
        };
        Ok(Some((id, first & 15)))
    }

    /// Reads a structure. Fields for whose numbers `keeps` is false are skipped.
    fn structure(&mut self, keeps: impl Fn(i16) -> bool) -> Step<Struct> {
        let (mut fields, mut last) = (Vec::with_capacity(8), 0);
        while let Some((id, kind)) = self.field(last)? {
            last = id;
            if !keeps(id) {
                self.skip(kind, 0, false)?;
            } else if fields.len() == MAX_FIELDS {
                return Err(Stop::Bad("too many fields"));
            } else {
                fields.push((id, self.value(kind)?));
            }
        }
        fields.sort_by_key(|(id, _)| *id);
        // Some readers would use the first of the two fields, and other readers the second.
        if fields.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Stop::Bad("a field occurs twice"));
        }
        Ok(Struct { fields })
    }

    fn value(&mut self, kind: u8) -> Step<Value> {
        if let kind::I16 | kind::I32 | kind::I64 = kind {
            let number = self.zigzag()?;
            let fits = match kind {
                kind::I16 => i16::try_from(number).is_ok(),
                kind::I32 => i32::try_from(number).is_ok(),
                _ => true,
            };
            return fits.then_some(Value::Int(kind, number)).ok_or(Stop::Bad("an integer is out of range"));
        }
        let start = self.0;
        self.skip(kind, 0, false)?;
        Ok(Value::Encoded(kind, start[..start.len() - self.0.len()].to_vec()))
    }

    /// Skips a value. A Boolean takes one byte if it is an element of a collection, and no byte if it is a field.
    fn skip(&mut self, kind: u8, depth: usize, is_element: bool) -> Step<()> {
        if depth > MAX_DEPTH {
            return Err(Stop::Bad("too deep"));
        }
        match kind {
            kind::TRUE | kind::FALSE if !is_element => {}
            kind::TRUE | kind::FALSE | kind::I8 => drop(self.byte()?),
            kind::I16 | kind::I32 | kind::I64 => drop(self.varint()?),
            kind::DOUBLE => drop(self.take(8)?),
            kind::UUID => drop(self.take(16)?),
            kind::BINARY => drop(self.binary()?),
            kind::LIST | kind::SET => {
                let (element, count) = self.list_header()?;
                for _ in 0..count {
                    self.skip(element, depth + 1, true)?;
                }
            }
            kind::MAP => {
                let count = self.len()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                for _ in 0..count {
                    self.skip(kinds >> 4, depth + 1, true)?;
                    self.skip(kinds & 15, depth + 1, true)?;
                }
            }
            kind::STRUCT => {
                let mut last = 0;
                while let Some((id, kind)) = self.field(last)? {
                    last = id;
                    self.skip(kind, depth + 1, false)?;
                }
            }
            _ => return Err(Stop::Bad("an unknown type")),
        }
        Ok(())
    }
}

fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write_zigzag(out: &mut Vec<u8>, value: i64) {
    write_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

fn write_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn write_list_header(out: &mut Vec<u8>, element: u8, count: usize) {
    if count < 15 {
        out.push((count as u8) << 4 | element);
    } else {
        out.push(0xf0 | element);
        write_varint(out, count as u64);
    }
}

fn write_field_header(out: &mut Vec<u8>, kind: u8, id: i16, last: i16) {
    match i32::from(id) - i32::from(last) {
        delta @ 1..=15 => out.push((delta as u8) << 4 | kind),
        _ => {
            out.push(kind);
            write_zigzag(out, id.into());
        }
    }
}

fn write_struct(out: &mut Vec<u8>, value: &Struct) {
    write_fields(out, value);
    out.push(0);
}

/// Writes the fields of a structure, without its end; returns the number of the last field.
fn write_fields(out: &mut Vec<u8>, value: &Struct) -> i16 {
    let mut last = 0;
    for (id, value) in &value.fields {
        let (Value::Int(kind, _) | Value::Encoded(kind, _)) = value;
        write_field_header(out, *kind, *id, last);
        last = *id;
        match value {
            Value::Int(_, number) => write_zigzag(out, *number),
            Value::Encoded(_, bytes) => out.extend_from_slice(bytes),
        }
    }
    last
}
