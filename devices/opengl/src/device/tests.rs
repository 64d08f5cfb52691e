use std::io::Write;

use lockstep_core::Key;
use lockstep_core::backend::kernel_by_name;
use lockstep_core::data::Data;
use lockstep_core::launch::{self, parse};
use lockstep_core::work::{Pass, Segment};

use super::*;
use crate::{OpenGlBackend, SOFTWARE};

fn ecb(device: &OpenGlDevice, kernel: &str, data: &mut [u8]) -> Result<()> {
    let (key, mut state) = (Key::new(&[1; 16])?, [0; 16]);
    let mut segments = [Segment { key: &key, tweak: None, state: &mut state, data: Data::in_place(data) }];
    let task = CoreTask::Pass(Pass::EcbEncrypt, &mut segments);
    device.submit(kernel_by_name(device, kernel)?, task.into())?.wait()
}

/// `edge` sets how many blocks a draw processes, and changes no result.
#[test]
fn the_edge_of_textures_is_a_launch_option() {
    let edge = |text: &str, kernel| parse(text, LAUNCH_OPTIONS, "opengl", kernel);
    let only = "kernels with this option are opengl/6800, opengl/6800-mix2, opengl/6800-xor2";
    for (text, kernel, expected) in [
        (
            "edge=0",
            Some("opengl/6800"),
            "give the width and height of the textures in texels, from 1 to 1024",
        ),
        ("edge=1025", Some("opengl/6800-mix2"), "from 1 to 1024"),
        ("edge=4", Some("opengl/fixslice"), only),
        ("edge=4", None, only),
        ("threads=4", Some("opengl/6800"), "options of opengl/6800: edge"),
    ] {
        let error = edge(text, kernel).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let Some(device) = OpenGlBackend.find().0.into_iter().find(|device| device.id() == SOFTWARE) else {
        assert!(std::env::var_os("CI").is_none(), "no {SOFTWARE}: tools/setup.sh");
        let _ = writeln!(
            std::io::stderr(),
            "NOT TESTED: there is no {SOFTWARE}: install Mesa's software drivers"
        );
        return;
    };
    let blocks = [7; 16 * 100];
    let expected = lockstep_reference::ecb::encrypt(&lockstep_reference::Aes::new(&[1; 16]), &blocks);
    for kernel in ["opengl/6800", "opengl/6800-mix2", "opengl/6800-xor2"] {
        // With `edge=1`, the 100 blocks are 100 textures of one block each. With `edge=16`, they are one texture. Each texture needs
        // several draws, so 99 draws are enough for one texture only.
        for (text, is_enough) in [("edge=1", false), ("edge=16", true)] {
            let launch: launch::Launch = edge(text, Some(kernel)).unwrap();
            let mut data = blocks;
            ecb(&device.launched(&launch), kernel, &mut data).unwrap();
            assert!(data[..] == expected, "{kernel} {text}");
            let limited = device.launched(&launch);
            limited.lose_after(99).unwrap();
            assert_eq!(ecb(&limited, kernel, &mut data).is_ok(), is_enough, "{kernel} {text}");
        }
    }
}
