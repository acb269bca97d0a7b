//! The files of the repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};

/// A file that is this large has no place in the repository, and is not read as text.
pub(super) const SIZE_LIMIT: u64 = 5 * 1024 * 1024;

/// A file that git tracks, or would if it was added.
#[derive(Debug, Clone)]
pub(super) struct SourceFile {
    /// From the root of the repository, with `/` between the parts.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// `None` if the file is not UTF-8, or too large.
    pub(super) text: Option<String>,
}

impl SourceFile {
    /// The lines of a text file, counted from zero; a file of bytes has none.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        // Not `str::lines`, which hides a carriage return.
        self.text.iter().flat_map(|text| text.split('\n')).enumerate()
    }

    pub(super) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|it| it == extension)
    }

    pub(super) fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    /// Whether the file is of one of the product's crates.
    pub(super) fn is_in_crates(&self) -> bool {
        self.path.starts_with("crates/")
    }

    #[cfg(test)]
    pub(super) fn fake(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), bytes: text.len() as u64, text: Some(text.to_owned()) }
    }
}

/// Reads the tracked files, and those that are neither tracked nor ignored: tidy is run before a commit.
pub(super) fn read(root: &Path) -> Result<Vec<SourceFile>> {
    list(root)?
        .into_iter()
        // A deleted file stays in git's list until the deletion is added.
        .filter(|path| root.join(path).is_file())
        .map(|path| {
            let full = root.join(&path);
            let io = || Error::io(format!("read {path}"));
            let bytes = fs::metadata(&full).map_err(io())?.len();
            let text = if bytes > SIZE_LIMIT {
                None
            } else {
                String::from_utf8(fs::read(&full).map_err(io())?).ok()
            };
            Ok(SourceFile { path, bytes, text })
        })
        .collect()
}

fn list(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--deduplicate",
    ]);
    let output = git.output().map_err(Error::io("start `git ls-files`"))?;
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        return Err(Error::Failed { line: "git ls-files".to_owned(), status: output.status });
    }
    let list = String::from_utf8_lossy(&output.stdout);
    Ok(list.split_terminator('\0').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_read_with_the_files_not_yet_committed() -> Result {
        let files = read(&crate::cargo::root())?;
        let this = files.iter().find(|file| file.path == "xtask/src/tidy/files.rs");
        assert!(this.is_some_and(|file| file.bytes > 0 && file.text.is_some()));
        assert!(!files.iter().any(|file| file.path.starts_with("target/")));
        Ok(())
    }

    #[test]
    fn lines_keep_a_carriage_return() {
        let file = SourceFile::fake("a.txt", "one\r\ntwo");
        let lines: Vec<_> = file.lines().collect();
        assert_eq!(lines, [(0, "one\r"), (1, "two")]);
    }
}
