use super::*;

#[test]
fn the_means_are_those_that_the_thesis_prints() {
    let printed: [(&[Runs], &[f64]); 9] = [
        (&A1_8800, &[42.996, 41.211, 40.364, 43.225]),
        (&A2_8800, &[42.980, 39.455, 38.485, 40.965]),
        (&A3_8800, &[42.711, 40.901, 41.605, 42.079]),
        (&A5_6800, &[87.548, 81.952, 201.456, 202.449, 101.649]),
        (&A5_CPU, &[46.609, 44.804, 44.183, 45.452]),
        (&A4_8800, &[41.839, 39.666, 39.235, 40.518]),
        (&A7_NULL, &[34.939]),
        (&A7_COPIES_6800, &[41.155]),
        (&A7_COPIES_8800, &[35.444]),
    ];
    for (table, means) in printed {
        for (runs, mean) in table.iter().zip(means) {
            // The thesis rounds or truncates the means.
            assert!((runs.mean() - mean).abs() < 0.0011, "file {}: {} and {mean}", runs.file, runs.mean());
        }
    }
    // Section 6.2.1 prints the pure computing times of files 1 to 3.
    let copies = runs(&A7_COPIES_6800, 1).mean();
    for (file, pure) in [(1, 46.393), (2, 40.797), (3, 160.301)] {
        assert!((runs(&A5_6800, file).mean() - copies - pure).abs() < 0.0015);
    }
}

#[test]
fn statistics_of_three_runs() {
    let runs = on(7, [6.022, 1.672, 1.499]);
    assert_eq!((runs.median(), runs.range()), (1.672, (1.499, 6.022)));
}
