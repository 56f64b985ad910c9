//! The pace: how many messages one transaction may carry, and when the next may begin. Pure.
//!
//! The pace is waited for between transactions, never inside one: an open transaction holds up read_committed readers.

use super::canary::Millis;

/// A slice lasts at most this long at the pace asked for, in milliseconds.
const SLICE: u64 = 500;
/// A slice holds at most this many messages, so that the outcome of a crash stays small.
const MOST: u64 = 10_000;
/// From here on `messagesPerSecond` is no limit.
const UNLIMITED: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    last_began: Millis,
    last_sent: u64,
}

impl Pacer {
    /// Messages a slice may carry at this pace.
    pub fn slice(per_second: u64) -> u64 {
        if per_second >= UNLIMITED { MOST } else { (per_second * SLICE / 1000).clamp(1, MOST) }
    }

    /// When the next slice may begin. A new pace counts from the last slice on, not from the next.
    pub fn next_at(&self, per_second: u64) -> Millis {
        if per_second >= UNLIMITED || self.last_sent == 0 {
            return self.last_began;
        }
        self.last_began + (self.last_sent * 1000).div_ceil(per_second.max(1)) as Millis
    }

    pub fn record(&mut self, sent: u64, began: Millis) {
        (self.last_sent, self.last_began) = (sent, began);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_lasts_half_a_second_at_its_pace() {
        let table = [(1, 1), (2, 1), (100, 50), (20_000, 10_000), (999_999, 10_000), (1_000_000, 10_000)];
        for (pace, size) in table {
            assert_eq!(Pacer::slice(pace), size, "at {pace}/s");
        }
    }

    #[test]
    fn slices_keep_the_pace_and_a_new_one_acts_at_once() {
        let mut pacer = Pacer::default();
        pacer.record(50, 1_000);
        assert_eq!(pacer.next_at(100), 1_500);
        assert_eq!(pacer.next_at(10), 6_000);
        assert_eq!(pacer.next_at(1_000_000), 1_000);
    }
}
