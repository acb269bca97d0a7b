//! Engines that differ from the ordinary one.

use std::fmt;
use std::sync::Arc;

use windrow_transport::Executor;

use super::Engine;

type Around = Box<dyn FnOnce(Arc<dyn Executor>) -> Arc<dyn Executor> + Send>;

/// How an engine is to differ from the ordinary one.
#[derive(Default)]
pub struct EngineBuilder {
    pub(super) executor: Option<Around>,
    pub(super) tables_at: Option<String>,
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineBuilder")
            .field("executor", &self.executor.is_some())
            .field("tables_at", &self.tables_at)
            .finish()
    }
}

impl EngineBuilder {
    /// Has the queries of flows run by what `around` makes of the executor in this process: something that measures them,
    /// limits them, or sends them elsewhere.
    #[must_use]
    pub fn executor(
        mut self,
        around: impl FnOnce(Arc<dyn Executor>) -> Arc<dyn Executor> + Send + 'static,
    ) -> Self {
        self.executor = Some(Box::new(around));
        self
    }

    /// Has new tables made in this folder, which is there, or under this URL of an object store (`s3://bucket/folder`, with
    /// the feature `s3`, and with credentials from the environment), rather than in the data directory. The directory
    /// remembers it.
    #[must_use]
    pub fn tables_at(mut self, location: impl Into<String>) -> Self {
        self.tables_at = Some(location.into());
        self
    }

    /// The engine, with tables in memory.
    #[must_use]
    pub fn in_memory(self) -> Engine {
        Engine::new(None, self)
    }

    /// The engine, on a data directory.
    ///
    /// # Errors
    /// As [`Engine::open`].
    #[cfg(feature = "delta")]
    pub async fn open(self, data_dir: impl AsRef<std::path::Path>) -> Result<Engine, super::EngineError> {
        Engine::open_with(data_dir.as_ref(), self).await
    }
}
