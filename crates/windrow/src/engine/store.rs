//! The catalog in a data directory.
//!
//! ```text
//! DIR/lock            held by the process that uses the directory
//! DIR/catalog.json    the declarations; replaced as a whole, by a rename
//! DIR/tables/NAME-…   a Delta table each, unless tables are made elsewhere
//! ```
//!
//! `docs/data-directory.md` has the format.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::EngineError;
use super::declaration::{ExternalDeclaration, FlowDeclaration, TableDeclaration};

/// The declarations, in the order in which they were made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CatalogFile {
    /// The version of this format.
    version: u32,
    /// Where new tables are made, if that is not in the data directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tables_at: Option<String>,
    pub(super) tables: Vec<TableDeclaration>,
    pub(super) external_tables: Vec<ExternalDeclaration>,
    pub(super) flows: Vec<FlowDeclaration>,
}

const VERSION: u32 = 1;

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// A data directory that this process holds.
#[derive(Debug)]
pub(super) struct Store {
    dir: PathBuf,
    /// Where new tables are made, if that is not in the directory.
    pub(super) tables_at: Option<String>,
    _lock: File,
}

impl Store {
    /// Takes hold of `dir`, which is created where it is not there.
    pub(super) fn open(dir: &Path) -> Result<Self, EngineError> {
        let at = |path: &Path| {
            let path = path.display().to_string();
            move |source| EngineError::DataDir { path, source }
        };
        fs::create_dir_all(dir).map_err(at(dir))?;
        let dir = fs::canonicalize(dir).map_err(at(dir))?;
        fs::create_dir_all(dir.join("tables")).map_err(at(&dir))?;
        let lock_path = dir.join("lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(at(&lock_path))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => EngineError::DataDir {
                path: dir.display().to_string(),
                source: io::Error::new(io::ErrorKind::ResourceBusy, "another process is using it"),
            },
            TryLockError::Error(source) => at(&lock_path)(source),
        })?;
        Ok(Self { dir, tables_at: None, _lock: lock })
    }

    /// Where a table is.
    #[cfg(feature = "delta")]
    pub(super) fn location_of(&self, table: &TableDeclaration) -> windrow_delta::Location {
        let folder = table.folder.as_deref().unwrap_or_default();
        match &table.at {
            None => self.dir.join("tables").join(folder).as_path().into(),
            Some(at) => format!("{}/{folder}", at.trim_end_matches('/')).into(),
        }
    }

    /// The declarations; none in a new directory.
    pub(super) fn load(&self) -> Result<CatalogFile, EngineError> {
        let path = self.catalog_path();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CatalogFile::default()),
            Err(source) => return Err(EngineError::DataDir { path: path.display().to_string(), source }),
        };
        let unreadable = |message: String| EngineError::Catalog { path: path.display().to_string(), message };
        // Of another version nothing else may be understood.
        let Versioned { version } =
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        if version != VERSION {
            return Err(unreadable(format!(
                "it has version {version}, and this program knows version {VERSION}"
            )));
        }
        serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))
    }

    /// Puts `catalog` in the place of the one that is there, all of it or nothing.
    pub(super) fn save(&self, mut catalog: CatalogFile) -> Result<(), EngineError> {
        catalog.version = VERSION;
        catalog.tables_at.clone_from(&self.tables_at);
        let path = self.catalog_path();
        let failed = |source: io::Error| EngineError::DataDir { path: path.display().to_string(), source };
        let text = serde_json::to_vec_pretty(&catalog).map_err(|error| failed(error.into()))?;
        let new = path.with_extension("json.new");
        let mut file = File::create(&new).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
        crash_point("catalog::new-one-is-written");
        fs::rename(&new, &path).map_err(failed)?;
        crash_point("catalog::new-one-is-there");
        // The rename itself is durable once the directory is.
        File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(failed)
    }

    fn catalog_path(&self) -> PathBuf {
        self.dir.join("catalog.json")
    }
}

/// A place at which a test can end the process as if it were killed there; nothing, without the feature `crash-points`.
fn crash_point(_name: &str) {
    #[cfg(feature = "crash-points")]
    fail::fail_point!(_name, |_| std::process::abort());
}
