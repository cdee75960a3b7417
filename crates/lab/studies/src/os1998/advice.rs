//! Which setting suits this machine.

use super::acquisition::{SETTING_EVENT_BYTES, Setting, Taken, idle_name};
use super::machine::Class;

/// A setting, and what speaks for it.
pub(super) struct Advice {
    setting: Setting,
    of_it: Taken,
    best_hz: f64,
    /// Of what a configuration gets that says nothing of it.
    by_default: Taken,
}

impl Advice {
    /// Of settings in the order of their simplicity: the first that is as good as the best, as far as one can tell.
    pub(super) fn new(settings: &[(Setting, Vec<Taken>)]) -> Self {
        let means: Vec<Taken> = settings.iter().map(|(_, taken)| mean(taken)).collect();
        let best_hz = means.iter().map(|taken| taken.recorded_hz).fold(0.0, f64::max);
        let first =
            means.iter().position(|taken| taken.recorded_hz >= AS_GOOD * best_hz).expect("the best is one of them");
        Self { setting: settings[first].0.clone(), of_it: means[first], best_hz, by_default: means[0] }
    }

    /// The part of a configuration that says so.
    pub(super) fn fragment(&self) -> String {
        format!("# By `weir study os1998`: weir run CONFIG --processes --set @FILE\n\n{}", self.setting.fragment())
    }

    /// In one paragraph.
    pub(super) fn paragraph(&self) -> String {
        let Self { setting, of_it, best_hz, by_default } = self;
        let cores = if setting.layout.cores.is_empty() {
            "leave the cores to the kernel".to_owned()
        } else {
            format!("bind the processes: {}", setting.layout.name)
        };
        let class = match setting.class {
            Class::Normal => "normal",
            Class::RealTime => "real-time",
        };
        format!(
            "On this machine let Weir wait by `{}`, schedule it in the {class} class, and {cores}. So it records {:.0} events of \
             {SETTING_EVENT_BYTES} bytes in a second, for {:.1} µs of processor time each; the best of all settings has {:.0}, and \
             a configuration that says nothing of it {:.0} for {:.1} µs. Of settings that differ by less than {:.0} % this is the \
             simplest: what sleeps while it waits before what does not, normal before real time, unbound before bound.",
            idle_name(setting.idle),
            of_it.recorded_hz,
            of_it.cpu_us_per_event,
            best_hz,
            by_default.recorded_hz,
            by_default.cpu_us_per_event,
            100.0 * (1.0 - AS_GOOD),
        )
    }
}

/// Of the runs of a setting.
pub(super) fn mean(taken: &[Taken]) -> Taken {
    let of = |value: fn(&Taken) -> f64| taken.iter().map(value).sum::<f64>() / taken.len().max(1) as f64;
    Taken {
        level1_hz: of(|taken| taken.level1_hz),
        recorded_hz: of(|taken| taken.recorded_hz),
        cpu_us_per_event: of(|taken| taken.cpu_us_per_event),
    }
}

/// Of the best rate: runs of the same setting differ by about as much.
const AS_GOOD: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::super::machine::Machine;
    use super::*;

    #[test]
    fn the_simplest_of_the_good_settings_is_advised() {
        let machine = Machine { here: 0, there: 1, cores: vec![0, 1], no_real_time: None };
        let rates = |of: &dyn Fn(usize) -> f64| -> Vec<(Setting, Vec<Taken>)> {
            let taken = |place| Taken { level1_hz: 0.0, recorded_hz: of(place), cpu_us_per_event: 1.0 };
            Setting::all(&machine).into_iter().enumerate().map(|(place, it)| (it, vec![taken(place); 2])).collect()
        };
        let all_alike = Advice::new(&rates(&|place| 1000.0 + place as f64));
        assert_eq!(all_alike.fragment().lines().last(), Some("cores = {}"));
        assert!(all_alike.paragraph().contains("by `park`, schedule it in the normal class, and leave the cores"));
        let one_better = Advice::new(&rates(&|place| if place == 11 { 2000.0 } else { 1000.0 }));
        assert!(
            one_better
                .fragment()
                .contains("idle = \"spin\"\n\n[processes]\nscheduling = \"real-time\"\ncores = { dfm = [1]")
        );
    }
}
