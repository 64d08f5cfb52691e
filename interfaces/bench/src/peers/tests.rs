use lockstep::Engine;

use super::super::workload;
use super::*;

#[test]
fn peers_compute_what_we_do() {
    let engine = Engine::builder().device("cpu").threads(1).build().unwrap();
    let mut compared = 0;
    for work in workload::all() {
        for shape in [Shape::one(96), Shape { size: 48, messages: 3 }] {
            let inputs = work.inputs(shape, &engine).unwrap();
            let start = workload::random(shape.bytes());
            let mut expected = start.clone();
            let mut ours = work.ours(&engine, &inputs, shape).unwrap();
            let tags = [1, 2].map(|call| ours(&mut expected, call).unwrap());
            for (name, mut run) in contenders(&work, &inputs, shape) {
                let mut got = start.clone();
                assert_eq!([1, 2].map(|call| run(&mut got, call).unwrap()), tags, "{name} {}", work.name);
                assert!(got == expected, "{name} {}", work.name);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 58);
}

/// The versions of the peers in reports are the versions in the lock file.
#[test]
fn versions_are_those_of_the_lock_file() {
    let lock = include_str!("../../../../Cargo.lock");
    for peer in PEERS {
        let (name, number) = peer.version.split_once(' ').unwrap();
        assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{number}.")), "{}", peer.version);
    }
}
