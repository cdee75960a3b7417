//! The detector description: sub-detectors, read-out layout, units, level-1 thresholds and items.

use serde_json::Value;
use thiserror::Error;

use crate::geography::{Modules, SubSystem};

/// What the selection needs to know of the detector and of level 1.
///
/// The channel numbers of the calorimeters are part of the payload format; a description with another grid than that of
/// [`SubSystem::grid`] is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Detector {
    layout: String,
    modules: [Modules; 4],
    /// Source identifier of the level-1 calorimeter's regions of interest.
    pub(crate) calorimeter_rois: u32,
    /// Source identifier of the level-1 muon trigger's regions of interest.
    pub(crate) muon_rois: u32,
    /// Source identifier of the central trigger.
    pub(crate) central_trigger: u32,
    /// Transverse energy of one count in an electromagnetic cell, 1 to 1000 MeV.
    pub(crate) em_count_mev: i64,
    /// Transverse energy of one count in a hadronic tower, 1 to 1000 MeV.
    pub(crate) had_count_mev: i64,
    pub(crate) solenoid: Solenoid,
    pub(crate) units: TrackUnits,
    thresholds: Vec<Threshold>,
    items: Vec<Named>,
}

/// The field that bends tracks, and the surface of the calorimeter where it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Solenoid {
    pub(crate) field_t: f64,
    pub(crate) radius_m: f64,
    pub(crate) half_length_m: f64,
}

/// Units of track and stub records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrackUnits {
    pub(crate) eta: f64,
    /// Charge over transverse momentum, in 1/GeV.
    pub(crate) q_over_pt_per_gev: f64,
    /// How many of these units one over one GeV is: transverse momentum cuts are integer comparisons.
    pub(crate) counts_gev: i64,
    pub(crate) z0_mm: f64,
}

/// What a threshold of level 1 is applied to; the numbers are those of [`dataflow::message::Roi`]'s `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RoiKind {
    /// Electromagnetic cluster.
    Em = 0,
    /// Jet.
    Jet = 1,
    /// Muon.
    Muon = 2,
    /// Missing transverse energy.
    MissingEt = 3,
    /// Total transverse energy.
    TotalEt = 4,
}

/// Why a detector description cannot be used.
#[derive(Debug, Error)]
pub enum DetectorError {
    /// Not JSON.
    #[error("the detector description is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A value is absent or not what it must be.
    #[error("detector description, key `{key}`: expected {expected}, found {found}")]
    Value {
        /// Where: `em_calo.n_eta`.
        key: String,
        /// What is legal there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The read-out layout is not described.
    #[error("unknown read-out layout `{layout}`: the detector description has {known}")]
    Layout {
        /// The layout asked for.
        layout: String,
        /// Those there are.
        known: String,
    },
}

impl Detector {
    /// Reads a description (`detector.json` of the physics samples) for one of its read-out layouts, say `rob160`.
    ///
    /// # Errors
    /// The first value that is absent or illegal, with its key.
    pub fn from_json(text: &str, layout: &str) -> Result<Self, DetectorError> {
        let root: Value = serde_json::from_str(text)?;
        let root = Node { key: String::new(), value: Some(&root) };
        for sub in [SubSystem::EmCalo, SubSystem::HadCalo] {
            check_grid(&root, sub)?;
        }
        let level1 = root.child("level1");
        let source = |name| sub_detector(&root, name).map(|number| number << 16);
        Ok(Self {
            layout: layout.to_owned(),
            modules: modules(&root, layout)?,
            calorimeter_rois: source("L1CALO_ROI")?,
            muon_rois: source("L1MUON_ROI")?,
            central_trigger: source("CTP")?,
            em_count_mev: root.child("em_calo").child("mev_et_per_count").integer(1, COUNT_MEV_MAX)?,
            had_count_mev: root.child("had_calo").child("mev_et_per_count").integer(1, COUNT_MEV_MAX)?,
            solenoid: solenoid(&root.child("solenoid"))?,
            units: track_units(&root.child("tracker"))?,
            thresholds: thresholds(&level1)?,
            items: items(&level1)?,
        })
    }

    /// Name of the read-out layout.
    #[must_use]
    pub fn layout(&self) -> &str {
        &self.layout
    }

    /// How the read-out of a sub-detector is divided.
    #[must_use]
    pub fn modules(&self, sub: SubSystem) -> Modules {
        self.modules[sub as usize]
    }

    /// Source identifiers of all ROBs with detector data, rising.
    pub fn sources(&self) -> impl Iterator<Item = u32> + '_ {
        let mut modules = self.modules;
        modules.sort_by_key(|modules| modules.sub_detector);
        modules.into_iter().flat_map(Modules::sources)
    }

    /// Source identifiers of level 1's own fragments: calorimeter and muon regions of interest, central trigger.
    #[must_use]
    pub fn level1_sources(&self) -> [u32; 3] {
        [self.calorimeter_rois, self.muon_rois, self.central_trigger]
    }

    /// The sub-detector of a source identifier, if it is one of its ROBs.
    #[must_use]
    pub fn sub_system(&self, source_id: u32) -> Option<SubSystem> {
        let is_in = |sub: &SubSystem| {
            let modules = self.modules(*sub);
            source_id >> 16 == modules.sub_detector && source_id & 0xffff < modules.count()
        };
        SubSystem::ALL.into_iter().find(is_in)
    }

    /// How many fragments a complete event has, those of level 1 included.
    #[must_use]
    pub fn source_count(&self) -> u32 {
        self.modules.iter().map(|modules| modules.count()).sum::<u32>() + self.level1_sources().len() as u32
    }

    /// Bit of a level-1 threshold in a region of interest of this kind.
    #[must_use]
    pub fn threshold(&self, kind: RoiKind, name: &str) -> Option<u8> {
        self.thresholds.iter().find(|known| known.kind == kind && known.named.name == name).map(|known| known.named.bit)
    }

    /// Names of the thresholds of a kind.
    pub fn threshold_names(&self, kind: RoiKind) -> impl Iterator<Item = &str> {
        self.thresholds.iter().filter(move |known| known.kind == kind).map(|known| known.named.name.as_str())
    }

    /// Bit of a level-1 item.
    #[must_use]
    pub fn item(&self, name: &str) -> Option<u8> {
        self.items.iter().find(|known| known.name == name).map(|known| known.bit)
    }

    /// Names of the level-1 items.
    pub fn item_names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|known| known.name.as_str())
    }
}

impl RoiKind {
    const ALL: [(Self, &str); 5] = [
        (Self::Em, "em_thresholds"),
        (Self::Jet, "jet_thresholds"),
        (Self::Muon, "muon_thresholds"),
        (Self::MissingEt, "xe_thresholds"),
        (Self::TotalEt, "te_thresholds"),
    ];
}

#[derive(Clone, Debug, PartialEq)]
struct Threshold {
    kind: RoiKind,
    named: Named,
}

#[derive(Clone, Debug, PartialEq)]
struct Named {
    name: String,
    bit: u8,
}

fn check_grid(root: &Node<'_>, sub: SubSystem) -> Result<(), DetectorError> {
    let (name, grid) = (if sub == SubSystem::EmCalo { "em_calo" } else { "had_calo" }, sub.grid());
    let node = root.child(name);
    node.child("n_eta").exactly(f64::from(grid.eta))?;
    node.child("n_phi").exactly(f64::from(grid.phi))?;
    node.child("eta_min").exactly(-2.5)?;
    node.child("eta_max").exactly(2.5)
}

fn modules(root: &Node<'_>, layout: &str) -> Result<[Modules; 4], DetectorError> {
    let layouts = root.child("layouts");
    let names = layouts.object()?;
    if !names.contains_key(layout) {
        let known = names.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(DetectorError::Layout { layout: layout.to_owned(), known });
    }
    let node = layouts.child(layout);
    let mut all = [Modules::default(); 4];
    for sub in SubSystem::ALL {
        let (node, grid) = (node.child(sub.name()), sub.grid());
        all[sub as usize] = Modules {
            sub_detector: sub_detector(root, sub.name())?,
            eta: node.child("eta_modules").integer(1, i64::from(grid.eta))? as u32,
            phi: node.child("phi_modules").integer(1, i64::from(grid.phi))? as u32,
        };
        let modules = u64::from(all[sub as usize].eta) * u64::from(all[sub as usize].phi);
        if modules > MODULES_MAX {
            return Err(node.error(&format!("at most {MODULES_MAX} modules"), &format!("{modules}")));
        }
    }
    Ok(all)
}

/// The number of a sub-detector; the description maps `"0x21"` to `"TRACKER"`.
fn sub_detector(root: &Node<'_>, name: &str) -> Result<u32, DetectorError> {
    let node = root.child("sub_detectors");
    let entry = node.object()?.iter().find(|(_, value)| value.as_str() == Some(name));
    let Some((text, _)) = entry else {
        return Err(node.error(&format!("an entry for {name}"), "none"));
    };
    let number = text.strip_prefix("0x").and_then(|digits| u8::from_str_radix(digits, 16).ok());
    number.map(u32::from).ok_or_else(|| node.error("keys from 0x00 to 0xff", text))
}

fn solenoid(node: &Node<'_>) -> Result<Solenoid, DetectorError> {
    Ok(Solenoid {
        field_t: node.child("b_tesla").positive()?,
        radius_m: node.child("calo_radius_m").positive()?,
        half_length_m: node.child("calo_half_length_m").positive()?,
    })
}

fn track_units(node: &Node<'_>) -> Result<TrackUnits, DetectorError> {
    let q_over_pt = node.child("q_over_pt_unit_per_gev");
    let q_over_pt_per_gev = q_over_pt.positive()?;
    let counts = 1.0 / q_over_pt_per_gev;
    let counts_gev = counts.round();
    if !(1.0..=COUNTS_GEV_MAX).contains(&counts_gev) || (counts - counts_gev).abs() > 1e-6 * counts {
        let expected = format!("one over a whole number from 1 to {COUNTS_GEV_MAX}");
        return Err(q_over_pt.error(&expected, &q_over_pt_per_gev.to_string()));
    }
    Ok(TrackUnits {
        eta: node.child("eta_unit").positive()?,
        q_over_pt_per_gev,
        counts_gev: counts_gev as i64,
        z0_mm: node.child("z0_unit_mm").positive()?,
    })
}

fn thresholds(level1: &Node<'_>) -> Result<Vec<Threshold>, DetectorError> {
    let mut all = Vec::new();
    for (kind, key) in RoiKind::ALL {
        all.extend(named_bits(&level1.child(key))?.into_iter().map(|named| Threshold { kind, named }));
    }
    Ok(all)
}

fn items(level1: &Node<'_>) -> Result<Vec<Named>, DetectorError> {
    named_bits(&level1.child("items"))
}

fn named_bits(list: &Node<'_>) -> Result<Vec<Named>, DetectorError> {
    let named = |node: Node<'_>| {
        let bit = node.child("bit").integer(0, 31)? as u8;
        Ok(Named { name: node.child("name").text()?.to_owned(), bit })
    };
    list.elements()?.map(named).collect()
}

/// A value of the description with the key that leads to it.
struct Node<'a> {
    key: String,
    value: Option<&'a Value>,
}

impl<'a> Node<'a> {
    fn child(&self, name: &str) -> Node<'a> {
        let key = if self.key.is_empty() { name.to_owned() } else { format!("{}.{name}", self.key) };
        Node { key, value: self.value.and_then(|value| value.get(name)) }
    }

    fn object(&self) -> Result<&'a serde_json::Map<String, Value>, DetectorError> {
        self.value.and_then(Value::as_object).ok_or_else(|| self.illegal("an object"))
    }

    fn elements(&self) -> Result<impl Iterator<Item = Node<'a>>, DetectorError> {
        let list = self.value.and_then(Value::as_array).ok_or_else(|| self.illegal("a list"))?;
        let key = self.key.clone();
        Ok(list
            .iter()
            .enumerate()
            .map(move |(index, value)| Node { key: format!("{key}[{index}]"), value: Some(value) }))
    }

    fn text(&self) -> Result<&'a str, DetectorError> {
        self.value.and_then(Value::as_str).ok_or_else(|| self.illegal("a string"))
    }

    fn integer(&self, min: i64, max: i64) -> Result<i64, DetectorError> {
        let number = self.value.and_then(Value::as_i64).filter(|number| (min..=max).contains(number));
        number.ok_or_else(|| self.illegal(&format!("an integer from {min} to {max}")))
    }

    fn positive(&self) -> Result<f64, DetectorError> {
        let number = self.value.and_then(Value::as_f64).filter(|number| *number > 0.0 && number.is_finite());
        number.ok_or_else(|| self.illegal("a number above 0"))
    }

    fn exactly(&self, expected: f64) -> Result<(), DetectorError> {
        let is_same = self.value.and_then(Value::as_f64) == Some(expected);
        if is_same { Ok(()) } else { Err(self.illegal(&format!("{expected}, which the channel numbers follow"))) }
    }

    fn illegal(&self, expected: &str) -> DetectorError {
        let found = match self.value {
            None => "nothing".to_owned(),
            Some(Value::Object(_)) => "an object".to_owned(),
            Some(Value::Array(_)) => "a list".to_owned(),
            Some(value) => value.to_string(),
        };
        self.error(expected, &found)
    }

    fn error(&self, expected: &str, found: &str) -> DetectorError {
        DetectorError::Value { key: self.key.clone(), expected: expected.to_owned(), found: found.to_owned() }
    }
}

/// The module is the lower half of a source identifier.
const MODULES_MAX: u64 = 1 << 16;

/// With it, sums over a whole event of the largest fragments stay within 64 bits.
const COUNT_MEV_MAX: i64 = 1000;

const COUNTS_GEV_MAX: f64 = 1e9;
