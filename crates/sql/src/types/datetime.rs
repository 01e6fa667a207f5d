//! Dates, times and intervals.
