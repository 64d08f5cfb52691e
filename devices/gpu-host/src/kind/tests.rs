
use super::*;

#[test]
fn kinds_agree_with_passes() {
    for pass in Pass::ALL {
        let kind = Kind::of_pass(pass);
        assert_eq!(matches!(kind, Kind::Tiles(_)), lockstep_core::share::can_cut(pass), "{pass:?}");
        assert_eq!(matches!(kind, Kind::Chain(_)), pass.is_serial(), "{pass:?}");
    }
}
