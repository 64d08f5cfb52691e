use super::*;

#[test]
fn a_shorter_key_leaves_nothing_of_a_longer_one() {
    for kernel in InlineKernel::all() {
        let mut key = InlineKey::new(kernel, &[7; 32]).unwrap();
        for (len, byte) in [(24, 8), (16, 9), (32, 10), (16, 11)] {
            let mut expected = [0; 32];
            expected[..len].fill(byte);
            assert!(key.set(&expected[..len], true));
            assert_eq!(key.bytes(), &expected[..len]);
            assert_eq!(key.0.bytes.as_flattened(), expected, "{}", kernel.name());
        }
    }
}

/// Reads memory through the system, since Rust does not permit reads of memory that has been freed. QEMU's user-mode emulation of other
/// processors may place memory at other addresses.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_last_clone_wipes_the_old_key() {
    use std::os::unix::fs::FileExt;

    let memory = std::fs::File::open("/proc/self/mem").unwrap();
    let old: [u8; 32] = std::array::from_fn(|i| (i as u8 + 1).wrapping_mul(73));
    for kernel in InlineKernel::all() {
        let mut key = InlineKey::new(kernel, &old).unwrap();
        let (first, last) = (key.clone(), key.clone());
        let address = key.bytes().as_ptr() as u64;
        let halves = || {
            let mut bytes = [0; 32];
            memory.read_exact_at(&mut bytes, address).unwrap();
            [bytes[..16] == old[..16], bytes[16..] == old[16..]]
        };
        assert!(key.set(&[7; 32], true));
        let mut block = [3; 16];
        first.encrypt_block(&mut block);
        assert_eq!(block, lockstep_reference::Aes::new(&old).encrypt([3; 16]), "{}", kernel.name());
        drop(first);
        assert_eq!((halves(), last.bytes()), ([true; 2], &old[..]), "{}", kernel.name());
        drop(last);
        assert_eq!(halves(), [false; 2], "{}", kernel.name());
    }
}
