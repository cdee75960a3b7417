//! The menu of the reference selection.

use trigger::{AlgorithmSpec, ChainSpec};

pub fn reference_chains() -> Vec<ChainSpec> {
    let threshold = str::to_owned;
    vec![
        chain("e25i", "L1_EM20I", AlgorithmSpec::Electron { threshold: threshold("EM20I"), et_mev: 25_000, count: 1 }),
        chain(
            "2e15i",
            "L1_2EM10I",
            AlgorithmSpec::Electron { threshold: threshold("EM10I"), et_mev: 15_000, count: 2 },
        ),
        chain("g40", "L1_EM20I", AlgorithmSpec::Photon { threshold: threshold("EM20I"), et_mev: 40_000, count: 1 }),
        chain("mu20", "L1_MU20", AlgorithmSpec::Muon { threshold: threshold("MU20"), et_mev: 19_500, count: 1 }),
        chain("2mu6", "L1_2MU6", AlgorithmSpec::Muon { threshold: threshold("MU6"), et_mev: 6_000, count: 2 }),
        chain("j100", "L1_J75", AlgorithmSpec::Jet { threshold: threshold("J75"), et_mev: 100_000, count: 1 }),
        chain("4j30", "L1_4J20", AlgorithmSpec::Jet { threshold: threshold("J20"), et_mev: 30_000, count: 4 }),
        chain("xe60", "L1_XE50", AlgorithmSpec::MissingEt { et_mev: 60_000 }),
        chain("rnd", "L1_RD0", AlgorithmSpec::Pass),
    ]
}

pub fn chain(name: &str, item: &str, algorithm: AlgorithmSpec) -> ChainSpec {
    let (name, item) = (name.to_owned(), item.to_owned());
    ChainSpec { name, item, algorithm, prescale: 1, pass_through: 0, filter_et_mev: None }
}
