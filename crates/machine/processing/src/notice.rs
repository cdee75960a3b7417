//! What people should know of tasks.

/// Something that people should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Name of the task.
    pub task: String,
    /// What kind of news it is.
    pub kind: NoticeKind,
    /// For people; several lines where a task had last words.
    pub text: String,
}

/// A kind of news of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// It printed a line.
    Output,
    /// It ended and is started again.
    Restarted,
    /// It cannot be started, or ended without having decided anything; it is tried again later.
    Trouble,
}
