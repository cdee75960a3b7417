//! From the tables `[menu]` to a menu whose names are resolved against the detector description.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use trigger::{AlgorithmSpec, ChainSpec, Detector, MenuError};

use crate::partition::Partition;
use crate::tables::{Algorithm, Chain, Cuts, Menu};
use crate::units::Energy;

/// What is wrong with a menu: the key, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadMenu {
    /// The dotted key; chains count from 0.
    pub key: String,
    /// What was expected and what was found.
    pub message: String,
}

impl core::error::Error for BadMenu {}

impl core::fmt::Display for BadMenu {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl Partition {
    /// The selection, if there is one. Reads the file `input.detector`.
    ///
    /// # Errors
    /// A detector description that cannot be read, or a chain that names something it does not have.
    pub fn resolve_menu(&self) -> Result<Option<Arc<trigger::Menu>>, BadMenu> {
        let Some(menu) = &self.menu else { return Ok(None) };
        let detector = self.detector(&menu.layout)?;
        let chains: Vec<ChainSpec> =
            menu.chain.iter().enumerate().map(|(index, chain)| spec(index, chain)).collect::<Result<_, _>>()?;
        let resolved = trigger::Menu::new(Arc::new(detector), &chains, cuts(&menu.cuts));
        resolved.map(|menu| Some(Arc::new(menu))).map_err(|error| blame(&error))
    }

    /// The level-1 items of `[l2sv]`: those whose events are accepted by force, and those that are vetoed, one bit each.
    ///
    /// # Errors
    /// A detector description that cannot be read, or a name that it does not have.
    pub fn overridden_items(&self) -> Result<(u32, u32), BadMenu> {
        let Some(l2sv) = self.l2sv.as_ref().filter(|l2sv| !l2sv.force_accept.is_empty() || !l2sv.veto.is_empty())
        else {
            return Ok((0, 0));
        };
        let layout = self.menu.clone().unwrap_or_default().layout;
        let detector = self.detector(&layout)?;
        let bits = |key: &str, names: &[String]| {
            names.iter().try_fold(0, |bits, name| match detector.item(name) {
                Some(bit) => Ok(bits | 1 << bit),
                None => Err(BadMenu {
                    key: format!("l2sv.{key}"),
                    message: format!(
                        "unknown level-1 item {name:?}; known are {}",
                        detector.item_names().collect::<Vec<_>>().join(", ")
                    ),
                }),
            })
        };
        Ok((bits("force_accept", &l2sv.force_accept)?, bits("veto", &l2sv.veto)?))
    }

    fn detector(&self, layout: &str) -> Result<Detector, BadMenu> {
        detector(self.input.detector.as_deref(), layout)
    }
}

fn detector(path: Option<&str>, layout: &str) -> Result<Detector, BadMenu> {
    let bad = |message: String| BadMenu { key: "input.detector".to_owned(), message };
    let Some(path) = path else {
        return Err(bad(
            "missing; names of level-1 items need the description of the detector, such as \"data/detector.json\""
                .into(),
        ));
    };
    let text = read(Path::new(path)).map_err(|error| bad(format!("cannot read {path}: {error}")))?;
    Detector::from_json(&text, layout).map_err(|error| match error {
        trigger::DetectorError::Layout { .. } => BadMenu { key: "menu.layout".to_owned(), message: error.to_string() },
        _ => bad(format!("{path}: {error}")),
    })
}

/// A detector description, which is a short file; anything else is not read, or not to its end.
fn read(path: &Path) -> io::Result<String> {
    // Looked at before opening: to open a pipe waits for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(DETECTOR_SIZE_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > DETECTOR_SIZE_MAX {
        return Err(io::Error::other(format!("it is longer than {DETECTOR_SIZE_MAX} bytes")));
    }
    Ok(text)
}

fn spec(index: usize, chain: &Chain) -> Result<ChainSpec, BadMenu> {
    let missing = |key: &str, what: &str| BadMenu {
        key: format!("menu.chain.{index}.{key}"),
        message: format!("missing; chain {:?} needs {what}", chain.name),
    };
    let threshold =
        || chain.threshold.clone().ok_or_else(|| missing("threshold", "a level-1 threshold such as \"EM20I\""));
    let et_mev = || chain.et.map(mev).ok_or_else(|| missing("et", "a cut such as \"25 GeV\""));
    let count = chain.count;
    let algorithm = match chain.algorithm {
        Algorithm::Electron => AlgorithmSpec::Electron { threshold: threshold()?, et_mev: et_mev()?, count },
        Algorithm::Photon => AlgorithmSpec::Photon { threshold: threshold()?, et_mev: et_mev()?, count },
        Algorithm::Muon => AlgorithmSpec::Muon { threshold: threshold()?, et_mev: et_mev()?, count },
        Algorithm::Jet => AlgorithmSpec::Jet { threshold: threshold()?, et_mev: et_mev()?, count },
        Algorithm::MissingEt => AlgorithmSpec::MissingEt { et_mev: et_mev()? },
        Algorithm::Pass => AlgorithmSpec::Pass,
    };
    Ok(ChainSpec {
        name: chain.name.clone(),
        item: chain.item.clone(),
        algorithm,
        prescale: chain.prescale,
        pass_through: chain.pass_through,
        filter_et_mev: chain.filter_et.map(mev),
    })
}

fn mev(energy: Energy) -> i32 {
    i32::try_from(energy.mev()).unwrap_or(i32::MAX)
}

fn cuts(cuts: &Cuts) -> trigger::Cuts {
    trigger::Cuts {
        em_calibration_permil: cuts.em_calibration_permil,
        jet_calibration_permil: cuts.jet_calibration_permil,
        r_eta_min_permil: cuts.r_eta_min_permil,
        hadronic_max_permil: cuts.hadronic_max_permil,
        hadronic_max_mev: mev(cuts.hadronic_max),
        ring_max_permil: cuts.ring_max_permil,
        ring_max_mev: mev(cuts.ring_max),
        track_pt_min_gev: cuts.track_pt_min.mev() as f64 / 1000.0,
        track_delta_eta_max: cuts.track_delta_eta.as_f64(),
        track_delta_phi_max: cuts.track_delta_phi.as_f64(),
        stub_delta_eta_q_max: cuts.stub_delta_eta_q,
        stub_delta_phi_q_max: cuts.stub_delta_phi_q,
        stub_pt_factor: f64::from(cuts.stub_pt_permil) / 1000.0,
        stub_track_delta_eta_q_max: cuts.stub_track_delta_eta_q,
        stub_track_delta_phi_max: cuts.stub_track_delta_phi.as_f64(),
    }
}

/// The key that an error of the menu is about.
fn blame(error: &MenuError) -> BadMenu {
    let chain = |index: usize, key: &str| format!("menu.chain.{index}.{key}");
    let key = match error {
        MenuError::TooManyChains { .. } => "menu.chain".to_owned(),
        MenuError::DuplicateName { index, .. } => chain(*index, "name"),
        MenuError::UnknownItem { index, .. } => chain(*index, "item"),
        MenuError::UnknownThreshold { index, .. } => chain(*index, "threshold"),
        MenuError::Value { index, key, .. } => chain(*index, toml_key(key)),
        MenuError::Cut(cut) => format!("menu.cuts.{}", toml_key(cut.key)),
    };
    let message = match error {
        // The key and the unit as they are in the file.
        MenuError::Value { chain, key, expected, found, .. } => {
            let is_number = |text: &str| key.ends_with("_mev") && text.ends_with(|last: char| last.is_ascii_digit());
            let unit = |text: &str| if is_number(text) { " MeV" } else { "" };
            format!("expected {expected}{}, found {found}{}; chain {chain:?}", unit(expected), unit(found))
        }
        _ => error.to_string(),
    };
    BadMenu { key, message }
}

/// The keys of the file carry their unit in the value.
fn toml_key(field: &str) -> &str {
    match field {
        "stub_pt_factor" => "stub_pt_permil",
        "track_pt_min_gev" => "track_pt_min",
        "hadronic_max_permil" | "ring_max_permil" | "r_eta_min_permil" => field,
        _ if field.ends_with("_mev") => field.trim_end_matches("_mev"),
        _ => field.trim_end_matches("_max"),
    }
}

/// Bounds what is read when somebody names a data file by mistake.
const DETECTOR_SIZE_MAX: u64 = 1 << 20;

/// Chains of `[menu]` by name, in the order of their bits.
pub(crate) fn chain_names(menu: Option<&Menu>) -> Vec<&str> {
    menu.map_or_else(Vec::new, |menu| menu.chain.iter().map(|chain| chain.name.as_str()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_cuts_are_those_of_the_reference_selection() {
        assert_eq!(cuts(&Cuts::default()), trigger::Cuts::default());
    }
}
