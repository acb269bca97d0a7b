//! `cargo xtask crash`: kills a process that keeps flows, again and again, and looks at what it leaves.

use crate::cargo::Cargo;
use crate::error::{Error, Result};

pub(crate) fn run(args: &[String]) -> Result {
    let usage = || Error::Usage("`crash` takes how often to kill: `--kills N`".into());
    let kills: Option<u32> = match args {
        [] => None,
        [flag, kills] if flag == "--kills" => Some(kills.parse().map_err(|_| usage())?),
        _ => return Err(usage()),
    };
    let mut test = Cargo::new("test").args(["--workspace", "--all-features", "--test", "crash"]);
    if let Some(kills) = kills {
        test = test.env("WINDROW_CRASH_KILLS", kills.to_string());
    }
    test.args(["--", "--nocapture"]).run()
}
