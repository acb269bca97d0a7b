//! What can happen.

use std::fmt;

use crate::RegionId;

/// A commit to come: its region, whether it only appends, and the windows that it touches, as bits.
pub(super) type Step = (RegionId, bool, u8);

/// Something that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    Commit(Step),
    Deliver(usize),
    Refresh,
    Execute(Execution),
    HearAnswer,
    LoseAnswer,
    GiveUp,
    WriteLate,
    Crash,
    Restart,
    Forget(RegionId),
    Expire,
    Flush,
}

/// What the executor makes of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Execution {
    Right,
    Fails,
    WritesOneWindowAndFails,
    ReadsWhatIsThereNow,
    ReadsBelow,
    ProvesNothing,
    LeavesARegionOut,
    IsStale,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |mask: u8| -> String {
            let windows = (0..8).filter(|window| mask & 1 << window != 0);
            windows.map(|window| window.to_string()).collect::<Vec<_>>().join(" and ")
        };
        match self {
            Self::Commit((region, appends, windows)) => {
                let what = if *appends { "appended to" } else { "deleted from" };
                write!(f, "rows of window {} are {what} region {region}", list(*windows))
            }
            Self::Deliver(commit) => write!(f, "the notification of commit {} arrives", commit + 1),
            Self::Refresh => f.write_str("a refresh begins"),
            Self::Execute(execution) => f.write_str(match execution {
                Execution::Right => "the executor reads and writes what it was asked to",
                Execution::Fails => "the executor fails",
                Execution::WritesOneWindowAndFails => "the executor writes one window and fails",
                Execution::ReadsWhatIsThereNow => "the executor reads what is there now, and says so",
                Execution::ReadsBelow => "the executor reads an older snapshot, and says so",
                Execution::ProvesNothing => "the executor writes, and does not say what it has read",
                Execution::LeavesARegionOut => "the executor leaves a region out, and its watermark too",
                Execution::IsStale => "the executor finds that it cannot be read any more",
            }),
            Self::HearAnswer => f.write_str("the answer arrives"),
            Self::LoseAnswer => f.write_str("the answer is lost"),
            Self::GiveUp => f.write_str("the flow gives the query up"),
            Self::WriteLate => f.write_str("the query that was given up commits"),
            Self::Crash => f.write_str("the process crashes"),
            Self::Restart => f.write_str("the process starts again"),
            Self::Forget(region) => write!(f, "region {region} forgets its history"),
            Self::Expire => f.write_str("window 0 expires"),
            Self::Flush => f.write_str("a flush is asked for"),
        }
    }
}
