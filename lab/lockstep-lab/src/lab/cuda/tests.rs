
use super::*;

#[test]
fn numbers() {
    assert_eq!(positive("1.5"), Ok(1.5));
    for wrong in ["0", "-1", "inf", "NaN", "x", ""] {
        positive(wrong).unwrap_err();
    }
}
