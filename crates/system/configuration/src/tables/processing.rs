//! `[pt]`: the processing tasks of the event filter.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::units::{Interval, Size};

/// `[pt]`: processing tasks, which decide on built events in processes of their own. Without this table `ef.policy` decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Pt {
    /// Number of tasks of each EFD.
    pub count: u32,
    /// What decides: `menu` runs `[menu]` again on the whole event; a Python class is named as `path/to/file.py:Class` or
    /// `package.module:Class`.
    pub algorithm: String,
    /// Program and arguments of a task of your own, made with the crate `processing`; instead of `algorithm`.
    pub command: Vec<String>,
    /// Handed to the constructor of a Python class, as a dictionary.
    pub parameters: BTreeMap<String, Value>,
    /// An event without a decision after this time goes to the debug stream, and its task is started anew.
    pub timeout: Interval,
    /// Most memory of a task; the event that needs more goes to the debug stream. `"0 B"` is no limit.
    pub memory_limit: Size,
    /// The Python interpreter, with numpy.
    pub python: String,
}

impl Default for Pt {
    fn default() -> Self {
        Self {
            count: 1,
            algorithm: MENU.to_owned(),
            command: Vec::new(),
            parameters: BTreeMap::new(),
            timeout: Interval::from_ms(5000),
            memory_limit: Size::from_bytes(2_000_000_000),
            python: "python3".to_owned(),
        }
    }
}

impl Pt {
    /// The name of the Python class; `None` if the menu or a program decides.
    pub fn python_class(&self) -> Option<&str> {
        (self.algorithm != MENU && self.command.is_empty()).then_some(self.algorithm.as_str())
    }

    /// Whether the menu decides.
    pub fn is_menu(&self) -> bool {
        self.algorithm == MENU && self.command.is_empty()
    }
}

const MENU: &str = "menu";
