//! What scenario files may hold.

/// Each constant says where it comes from, at most one of a figure is inferred, and none is what the figure shows.
#[test]
fn constants_of_atm1997_have_a_source() {
    let scenario = include_str!("../../../../scenarios/atm1997.toml");
    let mut inferred = 0;
    for line in scenario.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if line.starts_with('[') {
            inferred = 0;
            continue;
        }
        let (constant, source) = line.split_once('#').unwrap_or((line, ""));
        let (key, value) = constant.split_once('=').unwrap();
        // What is varied, how long to look, and what a curve is called.
        let free =
            value.contains('[') || ["slots", "duration_ms", "name", "synchronised", "allotted"].contains(&key.trim());
        assert!(free || source.starts_with(" cited: ") || source.starts_with(" inferred: "), "{line}");
        inferred += u32::from(source.contains("inferred"));
        assert!(inferred <= 1, "{line}");
        for number in value.split(|letter: char| !(letter.is_ascii_alphanumeric() || ".-_".contains(letter))) {
            let number = number.replace('_', "").parse().unwrap_or(0.0);
            assert!(!RESULTS.contains(&number), "{line}");
        }
    }
}

/// Throughput, its unit or part of the links; saturation; rates [ATM1997 §IV].
const RESULTS: [f64; 9] = [120.0, 120e6, 135.0, 135e6, 700.0, 30.0, 30e3, 40.0, 40e3];
