//! Reading of an ELF file: the segments as a loader lays them out, with the addresses of symbols and imports.

use std::collections::BTreeMap;
use std::path::Path;

use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, RelocationTarget, SymbolKind};

use crate::convention::{self, Convention};

/// The address at which images are laid out.
const BASE: u64 = 0x1000_0000;
/// The address of the first imported symbol. The symbols are 16 bytes apart. There is no memory at these addresses. If the program
/// calls such an address, the machine applies the contract of the imported function.
pub const IMPORTS: u64 = 0x7f00_0000_0000;

/// A range of memory that the file fills, with its permissions.
#[derive(Clone)]
pub struct Segment {
    /// The address of the first byte.
    pub address: u64,
    /// The content after relocation.
    pub bytes: Vec<u8>,
    /// True if the program may write to it.
    pub is_writable: bool,
    /// True if it holds code.
    pub is_code: bool,
}

/// A named function or object.
#[derive(Clone)]
pub struct Symbol {
    /// The address in memory.
    pub address: u64,
    /// Number of bytes; 0 if the file does not state it.
    pub size: u64,
    /// The name, without mangling.
    pub name: String,
    /// True if the symbol is a function.
    pub is_function: bool,
}

/// A program in memory.
#[derive(Clone)]
pub struct Image {
    /// The segments, in the order of addresses.
    pub segments: Vec<Segment>,
    /// The symbols, in the order of addresses: one for each address.
    pub symbols: Vec<Symbol>,
    /// The addresses of all functions by name. Functions with equal code may have one address.
    pub functions: BTreeMap<String, u64>,
    /// The names of imported symbols, by the address that stands for each.
    pub imports: BTreeMap<u64, String>,
    /// True if the code is for 64-bit Arm, false if it is for x86-64.
    pub is_arm: bool,
    /// The range of addresses of `subtle::black_box`, through which the results of comparisons pass.
    pub verdict: Option<(u64, u64)>,
}

/// A relocation: an address, and the value of 8 bytes that is stored at this address.
struct Relocation {
    place: u64,
    value: u64,
}

impl Image {
    /// Reads a shared library or an executable program for x86-64 or 64-bit Arm.
    ///
    /// # Errors
    /// A message if the file cannot be read, or has a relocation that is not supported.
    pub fn read(path: &Path) -> Result<Image, String> {
        let data = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Image::parse(&data).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// A program that consists of one function with the name `f`.
    pub fn of_function(address: u64, code: &[u8]) -> Image {
        let segment = Segment { address, bytes: code.to_vec(), is_writable: false, is_code: true };
        let symbol = Symbol { address, size: code.len() as u64, name: "f".into(), is_function: true };
        Image {
            segments: vec![segment],
            symbols: vec![symbol],
            functions: BTreeMap::from([("f".into(), address)]),
            imports: BTreeMap::new(),
            is_arm: false,
            verdict: None,
        }
    }

    fn parse(data: &[u8]) -> Result<Image, String> {
        let file = elf_file(data)?;
        let is_arm = match file.architecture() {
            object::Architecture::X86_64 => false,
            object::Architecture::Aarch64 => true,
            other => {
                return Err(format!("the machine code is for {other:?}, not for x86-64 or 64-bit Arm"));
            }
        };
        let mut segments = segments(&file)?;
        let mut imports = BTreeMap::new();
        for Relocation { place, value } in relocations(&file, &mut imports)? {
            let segment = segments.iter_mut().rfind(|segment| segment.address <= place);
            let bytes = segment.and_then(|segment| {
                let offset = (place - segment.address) as usize;
                segment.bytes.get_mut(offset..offset + 8)
            });
            let bytes = bytes.ok_or_else(|| format!("a relocation of {place:#x}, which is in no segment"))?;
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        let mut symbols = symbols(&file);
        let functions = symbols.iter().filter(|symbol| symbol.is_function);
        let functions = functions.map(|symbol| (symbol.name.clone(), symbol.address)).collect();
        symbols.dedup_by_key(|symbol| symbol.address);
        let verdict = symbols.iter().find(|symbol| symbol.name == "subtle::black_box");
        let verdict = verdict.map(|symbol| (symbol.address, symbol.address + symbol.size));
        Ok(Image { segments, symbols, functions, imports, is_arm, verdict })
    }

    /// The calling convention of the program.
    pub fn convention(&self) -> &'static Convention {
        if self.is_arm { &convention::ARM_64 } else { &convention::X86_64 }
    }

    /// The code from an address to the end of its segment.
    pub fn code_at(&self, address: u64) -> Option<&[u8]> {
        let segment = self.segments.iter().rfind(|segment| segment.address <= address)?;
        let start = (address - segment.address) as usize;
        segment.bytes.get(start..).filter(|_| segment.is_code)
    }

    /// A copy of the program with other code at an address.
    ///
    /// # Panics
    /// If the place is in no segment of code.
    pub fn with_code(&self, address: u64, code: &[u8]) -> Image {
        let mut image = self.clone();
        let segment = image.segments.iter_mut().rfind(|segment| segment.address <= address);
        let segment = segment.filter(|segment| segment.is_code).expect("a segment of code");
        let start = (address - segment.address) as usize;
        segment.bytes[start..start + code.len()].copy_from_slice(code);
        image
    }

    /// The address of an exported function.
    pub fn function(&self, name: &str) -> Option<u64> {
        self.functions.get(name).copied()
    }

    /// The symbol that contains an address.
    pub fn symbol_at(&self, address: u64) -> Option<&Symbol> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols[..after].last()?;
        (symbol.size == 0 || address < symbol.address + symbol.size).then_some(symbol)
    }

    /// An address as text: the name of the function that contains it and the offset in the function or, if no function
    /// contains the address, the address in the file.
    pub fn place(&self, address: u64) -> String {
        match self.symbol_at(address) {
            Some(symbol) => format!("{}+{:#x}", symbol.name, address - symbol.address),
            None => format!("file address {:#x}", address.wrapping_sub(BASE)),
        }
    }

    /// The name of the function that contains an address.
    pub fn function_at(&self, address: u64) -> String {
        self.symbol_at(address).map_or_else(|| self.place(address), |symbol| symbol.name.clone())
    }
}

/// Changes the code at an address in the content of an ELF file.
///
/// # Errors
/// A message if the content is no ELF file, or if no segment has the address.
pub fn change_file(data: &mut [u8], address: u64, code: &[u8]) -> Result<(), String> {
    let file = elf_file(data)?;
    let (endian, address) = (file.endian(), address - BASE);
    let offset = file.elf_program_headers().iter().find_map(|header| {
        let (start, (offset, size)) = (header.p_vaddr(endian), header.file_range(endian));
        let is_inside = header.p_type(endian) == elf::PT_LOAD && (start..start + size).contains(&address);
        is_inside.then(|| (offset + (address - start)) as usize)
    });
    let offset = offset.ok_or("no segment has the address")?;
    data.get_mut(offset..offset + code.len()).ok_or("the file is too short")?.copy_from_slice(code);
    Ok(())
}

fn elf_file(data: &[u8]) -> Result<ElfFile64<'_>, String> {
    ElfFile64::<Endianness>::parse(data).map_err(|error| format!("not an ELF file: {error}"))
}

fn segments(file: &ElfFile64<'_>) -> Result<Vec<Segment>, String> {
    let (endian, data) = (file.endian(), file.data());
    let mut segments = Vec::new();
    for header in file.elf_program_headers() {
        if header.p_type(endian) != elf::PT_LOAD {
            continue;
        }
        let content = header.data(endian, data).map_err(|()| "a segment exceeds the file")?;
        let mut bytes = content.to_vec();
        bytes.resize(header.p_memsz(endian) as usize, 0);
        let flags = header.p_flags(endian);
        segments.push(Segment {
            address: BASE + header.p_vaddr(endian),
            bytes,
            is_writable: flags.0 & elf::PF_W.0 != 0,
            is_code: flags.0 & elf::PF_X.0 != 0,
        });
    }
    segments.sort_by_key(|segment| segment.address);
    Ok(segments)
}

fn relocations(file: &ElfFile64<'_>, imports: &mut BTreeMap<u64, String>) -> Result<Vec<Relocation>, String> {
    let mut found = Vec::new();
    let Some(table) = file.dynamic_relocations() else { return Ok(found) };
    for (place, relocation) in table {
        let object::RelocationFlags::Elf { r_type } = relocation.flags() else {
            return Err("a relocation that is not one of ELF".into());
        };
        let addend = relocation.addend() as u64;
        let symbol = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let table = file.dynamic_symbol_table().ok_or("no table of symbols")?;
                Some(
                    object::ObjectSymbolTable::symbol_by_index(&table, index)
                        .map_err(|error| error.to_string())?,
                )
            }
            _ => None,
        };
        let value = match (r_type, symbol) {
            (elf::R_X86_64_RELATIVE | elf::R_AARCH64_RELATIVE, _) => BASE + addend,
            (
                elf::R_X86_64_64
                | elf::R_X86_64_GLOB_DAT
                | elf::R_X86_64_JUMP_SLOT
                | elf::R_AARCH64_ABS64
                | elf::R_AARCH64_GLOB_DAT
                | elf::R_AARCH64_JUMP_SLOT,
                Some(symbol),
            ) => {
                if symbol.is_undefined() {
                    let address = IMPORTS + 16 * imports.len() as u64;
                    imports.insert(address, symbol.name().unwrap_or("?").into());
                    address
                } else {
                    BASE + symbol.address() + addend
                }
            }
            // Relocations of thread-local data, which no kernel uses, get the value 0. An access to address 0 would be
            // reported.
            (elf::R_X86_64_DTPMOD64 | elf::R_X86_64_DTPOFF64 | elf::R_X86_64_TPOFF64, _) => 0,
            (elf::R_AARCH64_TLSDESC | elf::R_AARCH64_TLS_TPREL, _) => 0,
            (other, _) => return Err(format!("a relocation of type {other:?}, which is not supported")),
        };
        found.push(Relocation { place: BASE + place, value });
    }
    Ok(found)
}

fn symbols(file: &ElfFile64<'_>) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.is_definition() && symbol.address() != 0)
        .filter(|symbol| matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data))
        .filter_map(|symbol| {
            Some(Symbol {
                address: BASE + symbol.address(),
                size: symbol.size(),
                name: format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?)),
                is_function: symbol.kind() == SymbolKind::Text,
            })
        })
        .collect();
    symbols.sort_by(|x, y| (x.address, &x.name).cmp(&(y.address, &y.name)));
    symbols
}
