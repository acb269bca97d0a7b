//! Window math over instants.
//!
#![doc = include_str!("../README.md")]

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
