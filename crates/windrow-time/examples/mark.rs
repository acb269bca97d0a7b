//! Marks the hours of a year, and prints the months of local time that they are in.
//!
//! `cargo run -p windrow-time --example mark [ZONE]`

use arrow_array::TimestampSecondArray;
use windrow_time::{CalendarStep, TimeUnit, Window};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let zone = std::env::args().nth(1).unwrap_or_else(|| "America/New_York".into());
    let months = Window::calendar(CalendarStep::Months(1), zone.parse()?, TimeUnit::Second)?;
    let new_year_2013 = 1_356_998_400;
    let hours =
        TimestampSecondArray::from_iter_values((0..365 * 24).map(|hour| new_year_2013 + hour * 3_600));
    let marks = months.mark(&hours)?;
    println!("{} instants are in these months of {zone}:", marks.instants());
    for &range in marks.ranges() {
        for month in months.windows_in(range) {
            let month = month?;
            let start = chrono::DateTime::from_timestamp(month.start(), 0).ok_or("a date")?;
            println!("{month}  from {start}, {} hours", month.width().unwrap_or(i64::MAX) / 3_600);
        }
    }
    Ok(())
}
