use super::*;

/// Divides segments of these lengths among shares with these target sizes. Returns, for each share, the number of bytes of each
/// segment in the share.
fn cut(pass: Pass, lengths: &[usize], targets: &[usize]) -> Vec<Vec<usize>> {
    let key = Key::new(&[0; 16]).unwrap();
    let mut data: Vec<Vec<u8>> = lengths.iter().map(|&len| vec![0; len]).collect();
    let mut states = vec![[0; 16]; lengths.len()];
    let mut all: Vec<_> = (data.iter_mut().zip(&mut states))
        .map(|(data, state)| Segment { key: &key, tweak: None, state, data: Data::in_place(data) })
        .collect();
    let mut found = Vec::new();
    segments(pass, &mut all, targets, |lists| {
        let lengths = |list: &[Segment<'_>]| list.iter().map(|segment| segment.data.len()).collect();
        found = lists.iter().map(|list| lengths(list)).collect();
        Ok(())
    })
    .unwrap();
    found
}

#[test]
fn segments_are_cut_where_shares_end() {
    let (ctr, none) = (Pass::Ctr, Vec::new());
    assert_eq!(cut(ctr, &[10_000], &[4096, 4096]), [vec![4096], vec![5904]]);
    assert_eq!(cut(ctr, &[10_000], &[5000, 5000]), [vec![4096], vec![5904]]);
    assert_eq!(cut(ctr, &[100, 0, 9000], &[4200, 5000]), [vec![100, 0, 4096], vec![4904]]);
    // The share has room for less than a page, so the whole segment goes to the next share.
    assert_eq!(cut(ctr, &[5000, 9000], &[7000, 7000]), [vec![5000], vec![9000]]);
    assert_eq!(cut(ctr, &[100], &[4096, 4096]), [vec![100], none.clone()]);
    assert_eq!(cut(ctr, &[], &[4096, 4096]), [none.clone(), none.clone()]);
    assert_eq!(cut(ctr, &[20_000], &[0, 4096, 0, 1]), [none.clone(), vec![4096], none, vec![15_904]]);
}

#[test]
fn serial_segments_stay_whole() {
    let none = Vec::new();
    for pass in [Pass::CbcEncrypt, Pass::Ghash] {
        assert_eq!(cut(pass, &[16_000], &[4096, 4096]), [vec![16_000], none.clone()]);
        assert_eq!(cut(pass, &[8000, 8000, 16], &[4096, 4096]), [vec![8000], vec![8000, 16]]);
    }
}

#[test]
fn items_go_on_until_a_share_is_full() {
    let mut values = [5, 5, 5, 5, 5];
    let lists = items(&mut values, &[10, 1, 0], |&value| value);
    assert_eq!(lists.iter().map(|list| list.len()).collect::<Vec<_>>(), [2, 1, 2]);
}

#[test]
fn states_stay_if_the_work_fails() {
    let key = Key::new(&[0; 16]).unwrap();
    let (mut state, mut data) = ([7; 16], vec![0; 9000]);
    let mut all = [Segment { key: &key, tweak: None, state: &mut state, data: Data::in_place(&mut data) }];
    segments(Pass::Ctr, &mut all, &[4096, 4096], |_| Err(crate::Error::NotSealed)).unwrap_err();
    assert_eq!(state, [7; 16]);
}

#[test]
fn results_are_in_the_order_of_the_work() {
    let work: Vec<usize> = (0..50).collect();
    let expected: Vec<usize> = work.iter().map(|number| number * number).collect();
    for threads in [0, 1, 3, 100] {
        assert_eq!(
            in_parallel(threads, work.clone(), |number| number * number),
            expected,
            "{threads} threads"
        );
    }
    assert_eq!(at_once(work, |number| number * number), expected);
    assert!(at_once(Vec::<usize>::new(), |number| number).is_empty());
}

/// Tests all pairs of lengths and of targets around the borders of blocks and pages. The shares contain each byte once and in
/// order. A segment is cut only at whole pages, and only if its pass allows cuts.
#[test]
fn shares_contain_each_byte_once() {
    const EDGES: [usize; 9] = [0, 1, 16, 4095, 4096, 4097, 8191, 8192, 12_289];
    for pass in [Pass::Ctr, Pass::CbcEncrypt] {
        for first in EDGES {
            for second in EDGES {
                for target in EDGES {
                    let lengths = [first, second];
                    let shares = cut(pass, &lengths, &[target, 4096, 1]);
                    let context = format!("{pass:?} {lengths:?} {target} {shares:?}");
                    let mut pieces = shares.into_iter().flatten().peekable();
                    for len in lengths {
                        let mut rest = len;
                        loop {
                            let piece = pieces.next().expect(&context);
                            rest = rest.checked_sub(piece).expect(&context);
                            if rest == 0 {
                                break;
                            }
                            assert!(
                                pass == Pass::Ctr && piece.is_multiple_of(4096) && piece > 0,
                                "{context}"
                            );
                        }
                    }
                    assert!(pieces.all(|piece| piece == 0), "{context}");
                }
            }
        }
    }
}
