use super::*;
use lockstep_spu::kernels::KERNELS;

#[test]
fn the_models_are_those_of_the_kernels() {
    for row in TABLE_2 {
        let kernel = KERNELS.iter().find(|kernel| kernel.name == row.kernel).unwrap();
        assert_eq!(kernel.paper, Some((row.round, row.last)), "{}", row.name);
        assert!(kernel.loop_for(row.pass).is_some());
    }
}

#[test]
fn the_models_give_the_rates() {
    // The paper's Table 1 states the largest errors. If the computed errors equal these, each figure was copied correctly.
    let errors: Vec<_> = TABLE_1.iter().map(|row| (row.error() * 1e4).round() / 100.0).collect();
    assert_eq!(errors, [0.03, 0.18, 0.21, 0.05]);
    assert!(TABLE_2.iter().all(|row| row.error() < 0.001));
    // With another clock frequency, the model does not agree with Table 2.
    assert!(TABLE_2.iter().all(|row| row.error_at(3.2e9) > 0.002));
}
