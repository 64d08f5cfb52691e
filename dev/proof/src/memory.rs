//! Memory as regions with gaps between them. An access must be inside one region. Any other access is out of bounds.

use std::rc::Rc;

use crate::value::Domain;

/// The purpose of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A segment of the image.
    Image,
    /// The stack.
    Stack,
    /// A block of the allocator.
    Heap,
    /// Memory of the caller: keys, data, results.
    Buffer,
}

/// The address of the instruction that wrote a byte, or 0 if no instruction has written it.
pub type Writer = u32;

/// A range of addresses.
pub struct Region<D: Domain> {
    /// The name in reports.
    pub name: Rc<str>,
    /// The purpose of the region.
    pub role: Role,
    /// The address of the first byte.
    pub base: u64,
    /// False if a write is a fault.
    pub is_writable: bool,
    bytes: Rc<Vec<D::Byte>>,
    writers: Rc<Vec<Writer>>,
}

impl<D: Domain> Clone for Region<D> {
    fn clone(&self) -> Self {
        let Region { name, role, base, is_writable, bytes, writers } = self;
        let (name, bytes, writers) = (Rc::clone(name), Rc::clone(bytes), Rc::clone(writers));
        Region { name, role: *role, base: *base, is_writable: *is_writable, bytes, writers }
    }
}

impl<D: Domain> Region<D> {
    /// Makes a region that starts at `base` and contains `bytes`.
    pub fn new(name: &str, role: Role, base: u64, is_writable: bool, bytes: Vec<D::Byte>) -> Self {
        let writers = Rc::new(vec![0; bytes.len()]);
        Region { name: name.into(), role, base, is_writable, bytes: Rc::new(bytes), writers }
    }

    /// The bytes of the region.
    pub fn bytes(&self) -> &[D::Byte] {
        &self.bytes
    }

    /// The instruction that wrote each byte.
    pub fn writers(&self) -> &[Writer] {
        &self.writers
    }

    /// The address after the last byte.
    pub fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }
}

/// The reason why an access is a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub len: usize,
    /// True if the access is a write.
    pub writes: bool,
    /// The region that contains the first byte or, if there is none, the nearest region below this byte.
    pub near: Option<(Rc<str>, u64)>,
}

/// The regions, in the order of addresses.
pub struct Memory<D: Domain> {
    regions: Vec<Region<D>>,
}

impl<D: Domain> Clone for Memory<D> {
    fn clone(&self) -> Self {
        Memory { regions: self.regions.clone() }
    }
}

impl<D: Domain> Memory<D> {
    /// Memory without regions.
    pub fn new() -> Self {
        Memory { regions: Vec::new() }
    }

    /// Adds a region. Regions must not overlap.
    pub fn add(&mut self, region: Region<D>) {
        let place = self.regions.partition_point(|other| other.base < region.base);
        self.regions.insert(place, region);
    }

    /// Removes the region that starts at an address, and returns it.
    pub fn remove(&mut self, base: u64) -> Option<Region<D>> {
        let place = self.regions.iter().position(|region| region.base == base)?;
        Some(self.regions.remove(place))
    }

    /// All regions.
    pub fn regions(&self) -> &[Region<D>] {
        &self.regions
    }

    /// The region that starts at an address.
    pub fn region(&self, base: u64) -> Option<&Region<D>> {
        self.regions.iter().find(|region| region.base == base)
    }

    /// The index of the region that has all bytes of an access, and the offset of the first.
    fn find(&self, address: u64, len: usize, writes: bool) -> Result<(usize, usize), Denied> {
        let after = self.regions.partition_point(|region| region.base <= address);
        let below = after.checked_sub(1).map(|index| (index, &self.regions[index]));
        if let Some((index, region)) = below
            && address.checked_add(len as u64).is_some_and(|end| end <= region.end())
            && (region.is_writable || !writes)
        {
            return Ok((index, (address - region.base) as usize));
        }
        let near = below.map(|(_, region)| (Rc::clone(&region.name), address - region.base));
        Err(Denied { address, len, writes, near })
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// If the bytes are not inside one region.
    pub fn read(&self, address: u64, into: &mut [D::Byte]) -> Result<(), Denied> {
        let (index, offset) = self.find(address, into.len(), false)?;
        into.copy_from_slice(&self.regions[index].bytes[offset..offset + into.len()]);
        Ok(())
    }

    /// Writes bytes, and stores `writer` as the instruction that wrote them.
    ///
    /// # Errors
    /// If the bytes are not inside one writable region.
    pub fn write(&mut self, address: u64, from: &[D::Byte], writer: Writer) -> Result<(), Denied> {
        let (index, offset) = self.find(address, from.len(), true)?;
        let region = &mut self.regions[index];
        let range = offset..offset + from.len();
        Rc::make_mut(&mut region.bytes)[range.clone()].copy_from_slice(from);
        Rc::make_mut(&mut region.writers)[range].fill(writer);
        Ok(())
    }

    /// Sets the bytes of the region that starts at `base`, from offset `from` on, to the values of a function of their offsets. Afterwards, no
    /// instruction counts as their writer.
    pub fn restore(&mut self, base: u64, from: usize, value: impl Fn(usize) -> D::Byte) {
        let region = self.regions.iter_mut().find(|region| region.base == base).expect("a region");
        if from < region.bytes.len() {
            let bytes = &mut Rc::make_mut(&mut region.bytes)[from..];
            bytes.iter_mut().zip(from..).for_each(|(byte, place)| *byte = value(place));
            Rc::make_mut(&mut region.writers)[from..].fill(0);
        }
    }

    /// Applies a function to the bytes of each region that differs in a copy of this memory.
    pub fn combine(&mut self, other: &Memory<D>, mut function: impl FnMut(&mut [D::Byte], &[D::Byte])) {
        for (region, other) in self.regions.iter_mut().zip(&other.regions) {
            if !Rc::ptr_eq(&region.bytes, &other.bytes) {
                let bytes: &mut Vec<D::Byte> = Rc::make_mut(&mut region.bytes);
                function(bytes, &other.bytes);
            }
        }
    }
}

impl<D: Domain> Default for Memory<D> {
    fn default() -> Self {
        Memory::new()
    }
}
