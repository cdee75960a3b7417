//! Names of RAW files (format note §11.9).

use std::fmt;
use std::str::FromStr;

/// Name of a RAW file without its extension:
/// `project.RRRRRRRR.streamtype_streamname.daq.RAW._lbLLLL._application._NNNN`.
///
/// ```
/// use eformat::FileName;
/// let name: FileName = "data22_13p6TeV.00431493.physics_Main.daq.RAW._lb0525._SFO-16._0001.data".parse()?;
/// assert_eq!((name.run_number(), name.stream_name(), name.lumi_block()), (431_493, "Main", 525));
/// assert_eq!(name.with_sequence(2).writing(),
///     "data22_13p6TeV.00431493.physics_Main.daq.RAW._lb0525._SFO-16._0002.writing");
/// # Ok::<(), eformat::BadFileName>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileName {
    project: String,
    run_number: u32,
    stream_type: String,
    stream_name: String,
    step: String,
    lumi_block: u32,
    application: String,
    sequence: u32,
}

impl FileName {
    /// The first name (sequence number 1) of a stream. An empty project becomes `data_test`.
    ///
    /// # Errors
    ///
    /// Says which part cannot be in a name. Parts must not be empty and may hold ASCII letters, digits, `-`, `+` and
    /// `_` only. A stream type holds no `_`, since the first one ends it.
    pub fn new(
        project: &str,
        run_number: u32,
        stream_type: &str,
        stream_name: &str,
        lumi_block: u32,
        application: &str,
    ) -> Result<Self, BadFileName> {
        let project = if project.is_empty() { "data_test" } else { project };
        let part = |field, text: &str| {
            if plain(text) { Ok(text.to_owned()) } else { Err(BadFileName(field)) }
        };
        if stream_type.contains('_') {
            return Err(BadFileName("stream type"));
        }
        Ok(Self {
            project: part("project", project)?,
            run_number,
            stream_type: part("stream type", stream_type)?,
            stream_name: part("stream name", stream_name)?,
            step: "daq".to_owned(),
            lumi_block,
            application: part("application", application)?,
            sequence: 1,
        })
    }

    /// The same name with another sequence number.
    #[must_use]
    pub fn with_sequence(&self, sequence: u32) -> Self {
        Self { sequence, ..self.clone() }
    }

    /// Everything before the sequence number; the file name record (note §11.2) holds this.
    pub fn core(&self) -> String {
        format!("{}._lb{:04}._{}", self.dataset(), self.lumi_block, self.application)
    }

    /// Name of the data set: the first five fields.
    pub fn dataset(&self) -> String {
        let Self { project, run_number, stream_type, stream_name, step, .. } = self;
        format!("{project}.{run_number:08}.{stream_type}_{stream_name}.{step}.RAW")
    }

    /// Name of the closed file.
    pub fn data(&self) -> String {
        format!("{self}.data")
    }

    /// Name while the file is being written.
    pub fn writing(&self) -> String {
        format!("{self}.writing")
    }

    /// Project tag.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// Run number.
    pub fn run_number(&self) -> u32 {
        self.run_number
    }

    /// Type of the stream, such as `physics`.
    pub fn stream_type(&self) -> &str {
        &self.stream_type
    }

    /// Name of the stream, such as `Main`.
    pub fn stream_name(&self) -> &str {
        &self.stream_name
    }

    /// Luminosity block, 0 if the file holds several.
    pub fn lumi_block(&self) -> u32 {
        self.lumi_block
    }

    /// Application that wrote the file.
    pub fn application(&self) -> &str {
        &self.application
    }

    /// Number in the file sequence.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}._{:04}", self.core(), self.sequence)
    }
}

impl FromStr for FileName {
    type Err = BadFileName;

    /// Reads a name with or without extension, no directory.
    fn from_str(text: &str) -> Result<Self, BadFileName> {
        let text = text.strip_suffix(".data").or_else(|| text.strip_suffix(".writing")).unwrap_or(text);
        let fields: Vec<&str> = text.split('.').collect();
        let [project, run, stream, step, "RAW", lumi, application, sequence] = fields[..] else {
            return Err(BadFileName("number of fields"));
        };
        let (stream_type, stream_name) = stream.split_once('_').ok_or(BadFileName("stream"))?;
        let number = |field, text: Option<&str>| match text {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| BadFileName(field))
            }
            _ => Err(BadFileName(field)),
        };
        if project.is_empty() || !plain(step) {
            return Err(BadFileName("project or step"));
        }
        let application = application.strip_prefix('_').ok_or(BadFileName("application"))?;
        let run_number = number("run number", Some(run))?;
        let lumi_block = number("luminosity block", lumi.strip_prefix("_lb"))?;
        let name = Self::new(project, run_number, stream_type, stream_name, lumi_block, application)?;
        let sequence = number("sequence number", sequence.strip_prefix('_'))?;
        Ok(Self { step: step.to_owned(), sequence, ..name })
    }
}

/// A part of a file name that breaks the rules of the note §11.9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("bad {0} in a file name, expected project.RRRRRRRR.type_name.daq.RAW._lbLLLL._application._NNNN")]
pub struct BadFileName(pub &'static str);

fn plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-+_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_built_name() {
        let name = FileName::new("", 7, "physics", "Main_2", 0, "SFO-1").unwrap().with_sequence(101);
        assert_eq!(name.data(), "data_test.00000007.physics_Main_2.daq.RAW._lb0000._SFO-1._0101.data");
        assert_eq!(name.core(), "data_test.00000007.physics_Main_2.daq.RAW._lb0000._SFO-1");
        assert_eq!(name.dataset(), "data_test.00000007.physics_Main_2.daq.RAW");
        assert_eq!(name.data().parse(), Ok(name.clone()));
        assert_eq!(name.writing().parse(), Ok(name));
    }

    #[test]
    fn parts_of_a_read_name() {
        let text = "data22.00000009.calibration_LAr_x.merge.RAW._lb0012._SFO-3._0042";
        let name: FileName = text.parse().unwrap();
        assert_eq!((name.project(), name.run_number(), name.stream_type()), ("data22", 9, "calibration"));
        assert_eq!((name.stream_name(), name.lumi_block(), name.application()), ("LAr_x", 12, "SFO-3"));
        assert_eq!((name.sequence(), name.to_string()), (42, text.to_owned()));
        assert_eq!(name.with_sequence(43).to_string(), text.replace("0042", "0043"));
    }

    #[test]
    fn parts_that_cannot_be_in_a_name() {
        assert_eq!(FileName::new("a.b", 1, "physics", "Main", 1, "SFO"), Err(BadFileName("project")));
        assert_eq!(FileName::new("a", 1, "phy_sics", "Main", 1, "SFO"), Err(BadFileName("stream type")));
        assert_eq!(FileName::new("a", 1, "physics", "../x", 1, "SFO"), Err(BadFileName("stream name")));
        for bad in ["", "a.b", "a.1.b_c.daq.ESD._lb1._x._1", "a.1.b.daq.RAW._lb1._x._1", "a.+1.b_c.daq.RAW._lb1._x._1"]
        {
            assert!(bad.parse::<FileName>().is_err(), "{bad}");
        }
        for (bad, part) in [
            (".1.b_c.daq.RAW._lb1._x._1", "project or step"),
            ("a.1.b_c..RAW._lb1._x._1", "project or step"),
            ("a.1.b_c.daq.RAW._lb1._x._-1", "sequence number"),
            ("a.1.b_c.daq.RAW._lb1._x._4294967296", "sequence number"),
            ("a.1.b_c.daq.RAW.lb1._x._1", "luminosity block"),
        ] {
            assert_eq!(bad.parse::<FileName>(), Err(BadFileName(part)), "{bad}");
        }
    }
}
