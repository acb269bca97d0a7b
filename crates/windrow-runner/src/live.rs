//! Which windows are kept up to date.

use windrow_plan::TimeWindow;
use windrow_time::{InstantRange, TimeUnit};

use crate::flow::now_millis;
use crate::{Flow, RefreshError, windowed};

impl Flow {
    /// The instants of the source that are in a window, and that have not expired, from the start of a window on.
    ///
    /// # Errors
    /// When the window of the bound cannot be found.
    pub fn live_range(&self, window: &TimeWindow) -> Result<InstantRange, RefreshError> {
        self.live_range_at(window, now_millis())
    }

    pub(crate) fn live_range_at(
        &self,
        window: &TimeWindow,
        now_millis: i64,
    ) -> Result<InstantRange, RefreshError> {
        let Some(expire_after) = self.definition.options.expire_after else {
            return Ok(window.domain());
        };
        let source = windowed::source_of(self, window)?;
        let unit = source.spec().time_unit().unwrap_or(TimeUnit::Millisecond);
        let bound_nanos = i128::from(now_millis) * 1_000_000
            - i128::try_from(expire_after.as_nanos()).unwrap_or(i128::MAX / 2);
        let bound = bound_nanos.div_euclid(i128::from(unit.nanos()));
        let bound = bound.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let first_live = window.window().try_range_of(bound)?.start();
        let domain = window.domain();
        Ok(InstantRange::new(first_live.max(domain.start()), domain.end()))
    }
}
