
use super::*;

#[test]
fn rows_are_filled_up() {
    assert_eq!(whole_rows(Zeroizing::new(vec![1; 32])).len(), 16 * WIDTH);
    assert_eq!(whole_rows(Zeroizing::new(Vec::new())).len(), 0);
}
