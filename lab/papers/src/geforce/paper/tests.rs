use super::*;

#[test]
fn the_means_are_those_that_the_thesis_prints() {
    let printed: [(&[Runs], &[f64]); 13] = [
        // For file 4, the thesis prints 42.966. The mean of its runs is 42.933.
        (&A1_CPU, &[45.900, 41.659, 42.309]),
        (&A2_CPU, &[43.065, 38.177, 40.379, 40.967]),
        (&A3_CPU, &[43.644, 41.379, 41.112, 43.397]),
        (&A4_CPU, &[43.160, 40.298, 41.904, 41.785]),
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

/// The ratios of Table 6.2.2 are those that the thesis prints.
#[test]
fn the_ratios_of_table_6_2_2() {
    let ratios = TABLE_6_2_2.map(|(cpu, on_8800)| (cpu / on_8800 * 1e4).round() / 1e4);
    assert_eq!(ratios, [1.03, 1.0043, 1.0134, 1.0365]);
}

#[test]
fn statistics_of_three_runs() {
    let runs = on(7, [6.022, 1.672, 1.499]);
    assert_eq!((runs.median(), runs.range()), (1.672, (1.499, 6.022)));
}
