//! Window math over instants.
//!
//! An *instant* is an `i64` in some [`TimeUnit`], as Arrow stores timestamps. A [`Window`] maps every instant to
//! the half-open [`InstantRange`] of all instants that fall into the same window; [`Window::mark`] turns an
//! Arrow timestamp array into the distinct windows of its values.
//!
//! Everything here is total: negative instants, `i64::MIN` and `i64::MAX`, and windows that begin before or end
//! after what an `i64` can hold are answered with a range that saturates, never with an overflow.
//!
//! ```
//! use windrow_time::{InstantRange, TimeUnit, Window};
//!
//! let hour = Window::fixed(0, 3_600).expect("a positive width");
//! assert_eq!(hour.range_of(-1), InstantRange::new(-3_600, 0));
//!
//! let month = Window::months(1, TimeUnit::Second).expect("at least one month");
//! // 2024-02-29T12:00:00Z is in a month of 29 days.
//! assert_eq!(month.range_of(1_709_208_000).width(), Some(29 * 86_400));
//! ```

mod calendar;
mod civil;
mod grid;
mod mark;
mod opaque;
mod range;
mod unit;
mod window;
mod zone;

pub use calendar::{Calendar, CalendarStep};
pub use grid::FixedGrid;
pub use mark::{MarkError, Marks};
pub use opaque::OpaqueWindow;
pub use range::InstantRange;
pub use unit::TimeUnit;
pub use window::{Window, WindowError};
pub use zone::{LocalOffsets, Zone, ZoneError};
