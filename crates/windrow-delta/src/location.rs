//! Where a table is.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deltalake_core::logstore::{LogStoreRef, StorageConfig, default_logstore};
use futures::{StreamExt, TryStreamExt};
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, parse_url_opts};
use url::Url;

use crate::DeltaError;

/// The location of a table: a path, or the URL of a folder in an object store, with the options of that store.
///
/// What is not set as an option is taken from the environment, from variables whose names begin with `AWS_`, `AZURE_`
/// or `GOOGLE_`.
///
/// ```
/// use windrow_delta::Location;
///
/// let here = Location::from("data/metrics");
/// let there = Location::from("s3://bucket/metrics").with_option("aws_region", "eu-south-1");
/// assert_eq!(there.to_string(), "s3://bucket/metrics");
/// # drop(here);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    text: String,
    options: HashMap<String, String>,
}

impl Location {
    /// Sets an option of the object store, under the name that the `object_store` crate knows it by.
    #[must_use]
    pub fn with_option(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.insert(key.into(), value.into());
        self
    }

    /// Whether both are one place, however it is written: as a path or a URL, with links on the way or without.
    ///
    /// What is not there, or is no valid location, is no place.
    pub fn is_same_place(&self, other: &Self) -> bool {
        matches!((self.url(), other.url()), (Ok(one), Ok(two)) if one == two)
    }

    /// Deletes the table, and everything else that is there.
    ///
    /// # Errors
    /// When the storage fails. Where nothing is, nothing is to be done.
    pub async fn delete(&self) -> Result<(), DeltaError> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            DeltaError::storage(format!("deleting {self}"), error)
        };
        if let Some(path) = self.path()? {
            return match std::fs::remove_dir_all(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error.into())),
                _ => Ok(()),
            };
        }
        let store = self.storage()?.object_store(None);
        let files = store.list(None).map_ok(|file| file.location).boxed();
        store.delete_stream(files).try_collect::<Vec<_>>().await.map_err(|error| failed(error.into()))?;
        Ok(())
    }

    /// The storage of the table; a folder on disk is made.
    pub(crate) fn make(&self) -> Result<LogStoreRef, DeltaError> {
        if let Some(path) = self.path()? {
            std::fs::create_dir_all(&path)
                .map_err(|e| DeltaError::NotWritable { location: self.to_string(), source: Box::new(e) })?;
        }
        self.storage()
    }

    /// The storage of a table that is there.
    pub(crate) async fn find(&self) -> Result<LogStoreRef, DeltaError> {
        if self.path()?.is_some_and(|path| !path.exists()) {
            return Err(DeltaError::Missing { location: self.to_string() });
        }
        let storage = self.storage()?;
        let reading = |error| DeltaError::storage(format!("the location {self}"), error);
        if storage.is_delta_table_location().await.map_err(|e| reading(Box::new(e)))? {
            return Ok(storage);
        }
        let nothing = self.path()?.is_none() && storage.object_store(None).list(None).next().await.is_none();
        Err(match nothing {
            true => DeltaError::Missing { location: self.to_string() },
            false => DeltaError::NotATable { location: self.to_string() },
        })
    }

    /// The folder; a path has to be there.
    fn url(&self) -> Result<Url, DeltaError> {
        match self.path()? {
            Some(path) => self.url_of(&path),
            None => {
                let folder = format!("{}/", self.text.trim_end_matches('/'));
                Url::parse(&folder).map_err(|error| self.invalid(error.to_string()))
            }
        }
    }

    fn storage(&self) -> Result<LogStoreRef, DeltaError> {
        let url = self.url()?;
        let (root, prefix) =
            parse_url_opts(&url, self.all_options()).map_err(|error| self.invalid(error.to_string()))?;
        let root: Arc<dyn ObjectStore> = Arc::from(root);
        let table: Arc<dyn ObjectStore> = Arc::new(PrefixStore::new(Arc::clone(&root), prefix));
        let options =
            StorageConfig::parse_options(&self.options).map_err(|error| self.invalid(error.to_string()))?;
        Ok(default_logstore(table, root, &url, &options))
    }

    fn all_options(&self) -> HashMap<String, String> {
        let environment = std::env::vars().map(|(key, value)| (key.to_ascii_lowercase(), value));
        let mut options: HashMap<String, String> = environment
            .filter(|(key, _)| ["aws_", "azure_", "google_"].iter().any(|prefix| key.starts_with(prefix)))
            .collect();
        options.extend(self.options.iter().map(|(key, value)| (key.to_ascii_lowercase(), value.clone())));
        options
    }

    /// The path, if it is one.
    fn path(&self) -> Result<Option<PathBuf>, DeltaError> {
        if !self.text.contains("://") {
            return Ok(Some(PathBuf::from(&self.text)));
        }
        let url = Url::parse(&self.text).map_err(|error| self.invalid(error.to_string()))?;
        if url.scheme() != "file" {
            return Ok(None);
        }
        url.to_file_path().map(Some).map_err(|()| self.invalid("it is no path on this machine".into()))
    }

    fn url_of(&self, path: &Path) -> Result<Url, DeltaError> {
        // One name for one place, whatever links lead there.
        let path = std::fs::canonicalize(path).map_err(|error| self.invalid(error.to_string()))?;
        if path.to_string_lossy().contains('%') {
            // What lists and reads the log decodes names once more than it encodes them.
            return Err(self.invalid("tables cannot be below a folder whose name has a percent sign".into()));
        }
        Url::from_directory_path(path).map_err(|()| self.invalid("it is no absolute path".into()))
    }

    fn invalid(&self, reason: String) -> DeltaError {
        DeltaError::Location { location: self.text.clone(), reason }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Location {
    fn from(text: String) -> Self {
        Self { text, options: HashMap::new() }
    }
}

impl From<&str> for Location {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        path.to_string_lossy().into_owned().into()
    }
}
