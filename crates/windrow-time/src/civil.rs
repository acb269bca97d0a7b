//! Days and months of the proleptic Gregorian calendar, in UTC.
//!
//! The conversions count in eras of 400 years, each of exactly 146 097 days, from 1 March of year 0, so that the
//! leap day is the last day of a year (after Howard Hinnant, "chrono-compatible low-level date algorithms").
//! They work in `i128`, which no `i64` instant can overflow.

const DAYS_PER_ERA: i128 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: i128 = 719_468;

/// The number of months from January 1970 to the month of `day` (days since 1970-01-01).
pub(crate) fn month_of_day(day: i128) -> i128 {
    let shifted = day + DAYS_TO_EPOCH;
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    (era * 400 + year_of_era - 1970) * 12 + month_from_march + 2
}

/// The first day (since 1970-01-01) of the month that is `month` months after January 1970.
pub(crate) fn start_of_month(month: i128) -> i128 {
    let from_march = month - 2;
    let year = 1970 + from_march.div_euclid(12);
    let month_from_march = from_march.rem_euclid(12);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month_from_march + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - DAYS_TO_EPOCH
}

/// How many days after the first of its month `day` is.
pub(crate) fn day_in_month(day: i128) -> i128 {
    day - start_of_month(month_of_day(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_months_begin_on_known_days() {
        for (month, day) in [
            (0, 0),
            (1, 31),
            (-1, -31),
            ((2000 - 1970) * 12 + 1, 10_988),  // 2000-02-01
            ((2000 - 1970) * 12 + 2, 11_017),  // 2000-03-01: 2000 is a leap year
            ((1900 - 1970) * 12 + 1, -25_536), // 1900-02-01
            ((1900 - 1970) * 12 + 2, -25_508), // 1900-03-01: 1900 is not
            ((2200 - 1970) * 12, 84_006),      // 2200-01-01
        ] {
            assert_eq!(start_of_month(month), day, "month {month}");
        }
    }

    #[test]
    fn every_day_of_twelve_centuries_is_in_its_month() {
        let mut month = month_of_day(-250_000);
        for day in -250_000..200_000 {
            if day == start_of_month(month + 1) {
                month += 1;
            }
            assert_eq!(month_of_day(day), month, "day {day}");
        }
    }
}
