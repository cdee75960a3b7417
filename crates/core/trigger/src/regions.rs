//! The ROBs of a region of the detector.

use crate::detector::Detector;
use crate::geography::Window;

impl Detector {
    /// Source identifiers, rising, of the ROBs whose channels overlap the window.
    pub fn robs(&self, window: &Window) -> impl Iterator<Item = u32> + use<> {
        let modules = self.modules(window.sub);
        let grid = window.sub.grid();
        let phi = modules.phi_modules(&window.phi, grid.phi);
        let eta = modules.eta_modules(&window.eta, grid.eta);
        eta.flat_map(move |eta| phi.clone().into_iter().flatten().map(move |phi| modules.source(eta, phi)))
    }
}
