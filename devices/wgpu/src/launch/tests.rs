
use super::*;

#[test]
fn layouts_are_those_of_the_shaders() {
    let mut bytes = [0; Tile::SIZE];
    Tile { at: 1, blocks: 2, key: 3, extra: 4, state: [7; 16] }.write_to(&mut bytes);
    assert_eq!(bytes[..16], [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(bytes[16..], [7; 16]);
    let program = Program::GhashRuns;
    let (first, tiles, rounds, option) = (1, 2, 3, 4);
    let (to, scratch, step, steps) = (5, 6, 7, 8);
    let (invocations, bytes) = (65, 0);
    let launch =
        Launch { program, first, tiles, rounds, option, to, scratch, step, steps, invocations, bytes };
    assert_eq!(launch.bytes()[20..], [6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0]);
    assert_eq!(launch.workgroups(), 2);
}

#[test]
fn a_list_of_tiles_keeps_them_as_it_grows() {
    let tile = |at| Tile { at, ..Tile::default() };
    let mut tiles = Tiles::default();
    tiles.push(tile(0));
    tiles.extend((1..100).map(tile));
    tiles.repeat(10..20);
    assert!(tiles.iter().map(|tile| tile.at).eq((0..100).chain(10..20)));
}
