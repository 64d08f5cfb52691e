
use super::*;

#[test]
fn layouts_are_those_of_the_kernels() {
    let launch = Launch { count: 5, option: 6, tiles: 4, ..Launch::default() };
    assert_eq!(launch.parameters().bytes().len(), 48);
    assert_eq!(launch.parameters().bytes()[40..44], 5u32.to_ne_bytes());
    let mut bytes = [0xff; Segment::SIZE];
    let segment = Segment { from: 1, to: 2, bytes: 3, position: 4, key: 5, tweak_key: 6, state: [7; 16] };
    segment.write(&mut bytes);
    assert_eq!(bytes[36], 6);
    assert_eq!(bytes[48..64], [7; 16]);
    assert_eq!(Segment::next(&bytes), [0; 16]);
    assert_eq!(Parameters::default().word(1).long(2).word(3).bytes().len(), 20);
}
