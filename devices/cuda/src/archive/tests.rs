use super::*;

const fn architecture(major: u32, minor: u32) -> Architecture {
    Architecture { major, minor }
}

/// An archive whose units are not compressed. The code of each module is the name of its target and a zero byte.
fn stored(modules: &[(&str, &str)]) -> Archive {
    let (mut index, mut data) = (HEAD.to_owned(), String::new());
    for (module, target) in modules {
        let len = target.len() + 1;
        index += &format!("\nunit {} {len} {len}\n{module} {target} 0 {len}", data.len());
        data += target;
        data += "\0";
    }
    Archive::parse(format!("{index}\n\n{data}").into_bytes().leak()).unwrap()
}

#[test]
fn the_closest_code_is_chosen() {
    let modules =
        [("a", "sm_80"), ("a", "sm_86"), ("a", "sm_90"), ("a", "sm_100"), ("a", "ptx"), ("b", "sm_80")];
    let archive = stored(&modules);
    let taken = |module: &str, architecture| {
        let module = archive.find(module, architecture)?;
        Some(String::from_utf8(archive.unpack(module).unwrap()).unwrap().replace('\0', ""))
    };
    let of_a = |major, minor| taken("a", architecture(major, minor));
    assert_eq!(of_a(9, 0).as_deref(), Some("sm_90"));
    assert_eq!(of_a(8, 0).as_deref(), Some("sm_80"));
    assert_eq!(of_a(8, 9).as_deref(), Some("sm_86"));
    assert_eq!(of_a(10, 3).as_deref(), Some("sm_100"));
    assert_eq!(of_a(12, 0).as_deref(), Some("ptx"));
    assert_eq!(of_a(6, 0).as_deref(), Some("ptx"));
    assert_eq!(of_a(5, 2), None, "PTX is for compute capability 6.0 and later");
    assert_eq!(taken("b", architecture(9, 0)), None);
    assert_eq!(taken("c", architecture(9, 0)), None);
}

/// Tests a unit with two modules that Python's lzma compressed: 39 times `A`, then 59 times `B`, with a zero byte after each module.
#[test]
fn units_are_unpacked() {
    const PACKED: &[u8] = &[
        180, 0, 0, 32, 0, 255, 255, 255, 255, 255, 255, 255, 255, 0, 32, 238, 36, 0, 33, 181, 247, 181, 104,
        255, 207, 255, 255, 151, 130, 0, 0,
    ];
    let modules = "a sm_80 0 40\nb sm_80 40 100\nc sm_80 0 39";
    let head = format!("{HEAD}\nunit 0 {} 100\n{modules}\n\n", PACKED.len());
    let bytes: &'static mut [u8] = [head.as_bytes(), PACKED].concat().leak();
    let archive = Archive::parse(bytes).unwrap();
    let code = |name| archive.unpack(archive.find(name, architecture(8, 0)).unwrap()).unwrap();
    let expected = |letter: &[u8], len| [letter.repeat(len), vec![0]].concat();
    assert_eq!((code("a"), code("b")), (expected(b"A", 39), expected(b"B", 59)));
    assert_eq!(archive.unpacked(), 100, "`b` is after `a`");
    assert_eq!((code("b"), archive.unpacked()), (expected(b"B", 59), 200));
    let no_code = archive.unpack(archive.find("c", architecture(8, 0)).unwrap()).unwrap_err();
    assert!(no_code.contains("neither a cubin nor PTX"), "{no_code}");
    let damaged = [head.as_bytes(), &PACKED[..13], &[0xff; 8], &PACKED[21..]].concat().leak();
    let archive = Archive::parse(damaged).unwrap();
    let error = archive.unpack(archive.find("a", architecture(8, 0)).unwrap()).unwrap_err();
    assert!(error.contains("the machine code of a in this program is damaged"), "{error}");
}

#[test]
fn only_archives_are_parsed() {
    for wrong in [
        "",
        "lockstep-kernels 1",
        "something else\n\n",
        "lockstep-kernels 1\nunit 0 5 5\n\nfour",
        "lockstep-kernels 1\nunit 0 5 5\na sm_80 0 6\n\n12345",
        "lockstep-kernels 12\nunit 0 5 5\na sm_80 0 5\n\n12345",
        "lockstep-kernels 1\nunit 0 5 5\na sm_80 0 5 6\n\n12345",
        "lockstep-kernels 1\nunit 0 5 999999999999\na sm_80 0 5\n\n12345",
    ] {
        assert!(Archive::parse(wrong.as_bytes()).is_none(), "{wrong}");
    }
    assert!(Archive::parse(b"lockstep-kernels 1\n\n").unwrap().modules.is_empty());
}

/// Prints the time to unpack each module of an archive, including the modules before it in its unit. docs/cuda.md has the command.
#[test]
#[ignore = "a measurement"]
fn unpacking_is_measured() {
    let path =
        std::env::var_os("LOCKSTEP_TEST_ARCHIVE").expect("LOCKSTEP_TEST_ARCHIVE is the path of an archive");
    let archive = Archive::parse(std::fs::read(path).unwrap().leak()).unwrap();
    for module in &archive.modules {
        let mut fastest = std::time::Duration::MAX;
        for _ in 0..5 {
            *archive.units[module.unit].begun.lock().unwrap() = None;
            let start = std::time::Instant::now();
            archive.unpack(module).unwrap();
            fastest = fastest.min(start.elapsed());
        }
        println!("{} {}: {} bytes in {fastest:?}", module.name, module.target, module.bytes.end);
    }
}
