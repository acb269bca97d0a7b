//! The stable words of logs and metrics.

use std::fmt;

macro_rules! labels {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $label:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $name {
            /// The label in logs and metrics; it does not change between versions.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $label,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

labels! {
    /// What a query of a refresh reads.
    Coverage {
        /// The whole source: only for flows without time windows.
        UnfilteredFull = "unfiltered_full",
        /// The first chunk of dirty windows, at the snapshot that the refresh opened.
        ScopedBaseRepair = "scoped_base_repair",
        /// A later chunk, at exactly the same snapshot.
        FencedRepairChunk = "fenced_repair_chunk",
        /// Only the rows after the checkpoint.
        IncrementalDelta = "incremental_delta",
    }
}

labels! {
    /// Where a flow is.
    Mode {
        /// There is something to repair, or nothing was proved yet.
        FullSnapshot = "full_snapshot",
        /// Nothing is dirty; only new rows are to be read.
        Incremental = "incremental",
    }
}

labels! {
    /// What a refresh led to.
    Decision {
        /// The checkpoint moved, or nothing is left to do under it.
        Advance = "advance",
        /// The flow has to repair before it can go on.
        Fallback = "fallback",
        /// More chunks are pending at the same snapshot.
        ContinueRepair = "continue_repair",
    }
}

labels! {
    /// Why a refresh led to its decision.
    Reason {
        /// Nothing out of the ordinary.
        None = "none",
        /// Windows are left for further chunks.
        DirtyBacklogPending = "dirty_backlog_pending",
        /// The flow's query cannot be merged, or merging is switched off for it.
        IncrementalDisabled = "incremental_disabled",
        /// The query failed.
        QueryFailure = "query_failure",
        /// A merge failed.
        IncrementalQueryFailure = "incremental_query_failure",
        /// The source no longer knows what changed since the checkpoint.
        StaleCursor = "stale_cursor",
        /// The answer does not say what was read.
        MissingRegionWatermark = "missing_region_watermark",
        /// The answer does not prove that every region was read as it had to be.
        IncompleteRegionWatermark = "incomplete_region_watermark",
        /// The snapshot of a repair can no longer be read.
        SnapshotFenceExpired = "snapshot_fence_expired",
        /// Someone else wrote to the sink.
        SinkChanged = "sink_changed",
    }
}
