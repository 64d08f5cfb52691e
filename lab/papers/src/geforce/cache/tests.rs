use super::*;

fn misses(geometry: Geometry, lines: &[u32]) -> Vec<bool> {
    let mut cache = Cache::new(geometry);
    lines.iter().map(|&line| cache.misses(line)).collect()
}

#[test]
fn the_least_recently_used_line_of_a_set_is_replaced() {
    // Two sets of two lines: even and odd lines.
    let geometry = Geometry { bytes: 256, line: 64, ways: 2 };
    let lines = [0, 2, 0, 4, 0, 2, 1, 4, 1];
    // In the sequence, 4 replaces 2, because 0 was used later than 2. Then 2 replaces 4. Line 1 is in the other set. Then 4 replaces 0.
    let expected = [true, true, false, true, false, true, true, true, false];
    assert_eq!(misses(geometry, &lines), expected);
}

#[test]
fn one_way_is_a_direct_mapped_cache() {
    let geometry = Geometry { bytes: 128, line: 32, ways: 1 };
    assert_eq!(misses(geometry, &[0, 4, 0, 1, 1, 5, 1]), [true, true, true, true, false, true, true]);
}

#[test]
fn all_lines_of_one_set() {
    let geometry = Geometry { bytes: 128, line: 32, ways: 4 };
    assert_eq!(
        misses(geometry, &[0, 1, 2, 3, 0, 4, 0, 1]),
        [true, true, true, true, false, true, false, true]
    );
}

#[test]
fn positions_of_texels() {
    assert_eq!(Order::Rows.position(3, 2), 515);
    assert_eq!(Order::Morton.position(3, 2), 0b1101);
    assert_eq!(Order::Morton.position(255, 255), 65535);
    let mut seen = vec![false; 65536];
    (0..=255u8).for_each(|y| (0..=255u8).for_each(|x| seen[Order::Morton.position(x, y) as usize] = true));
    assert!(seen.into_iter().all(|seen| seen));
}
