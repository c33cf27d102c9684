//! Statistics: histograms that are merged and never averaged, and confidence intervals by resampling.
//!
//! Invariants: nothing here depends on time or chance: the same samples give the same figures, since
//! the random numbers begin with a constant. Times are kept in picoseconds as integers, and become
//! microseconds when they are read.

use hdrhistogram::Histogram;

/// Times of single calls, in picoseconds, to three significant digits. It grows by itself, so a time is
/// never clipped.
#[derive(Clone)]
pub struct Times(Histogram<u32>);

impl Default for Times {
    fn default() -> Self {
        // Three significant digits is within what the library accepts, so the fallback is never taken.
        Self(Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are within bounds")))
    }
}

impl Times {
    /// Adds `count` calls that took `ps` picoseconds each.
    pub fn add(&mut self, ps: u64, count: u64) {
        // The histogram grows by itself: it refuses nothing that fits 64 bits.
        let _ = self.0.record_n(ps, u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Takes the calls of `other` in as well: percentiles are then those of all calls together.
    pub fn merge(&mut self, other: &Self) {
        let _ = self.0.add(&other.0);
    }

    /// Calls.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The time that this share of the calls did not exceed, in microseconds; `share` is between 0 and
    /// 1. It is the middle of the histogram's step; 0 if there are no calls.
    pub fn percentile_us(&self, share: f64) -> f64 {
        let value = self.0.value_at_quantile(share);
        let lowest = self.0.lowest_equivalent(value);
        us(lowest + (self.0.highest_equivalent(value) - lowest) / 2)
    }

    /// The middle one, in microseconds.
    pub fn median_us(&self) -> f64 {
        self.percentile_us(0.5)
    }

    /// (value in ps, count) of everything recorded, in ascending order: enough to make the same
    /// histogram in another process.
    pub fn pairs(&self) -> Vec<(u64, u64)> {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value().into())).collect()
    }
}

/// Microseconds of picoseconds.
#[allow(clippy::cast_precision_loss)]
pub fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// The median; of an even number the mean of the two in the middle. `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    middle(&mut values.to_vec())
}

/// The same of values whose order does not matter any more: it looks at each only a few times, which
/// sorting does not.
fn middle(values: &mut [f64]) -> Option<f64> {
    let (half, even) = (values.len() / 2, values.len().is_multiple_of(2));
    if values.is_empty() {
        return None;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    if !even {
        return Some(upper);
    }
    Some(f64::midpoint(below.iter().copied().max_by(f64::total_cmp)?, upper))
}

/// A 95 % confidence interval of the median, by a bootstrap in two levels: rounds are drawn with replacement, and of
/// each drawn round its blocks. Calls that follow each other resemble each other, and so do the calls of one process:
/// drawing single calls would promise more than is known.
///
/// `rounds` holds the medians of consecutive blocks of calls. The same input gives the same interval. Of a great many blocks
/// fewer draws are made: the work is bounded, and the interval is narrow anyhow.
pub fn confidence(rounds: &[Vec<f64>]) -> Option<(f64, f64)> {
    // As many draws as the work allows: the number of values in a draw times the number of draws stays
    // about `WORK`.
    const DRAWS: std::ops::RangeInclusive<usize> = 200..=1000;
    const WORK: usize = 200_000;
    let rounds: Vec<&Vec<f64>> = rounds.iter().filter(|blocks| !blocks.is_empty()).collect();
    if rounds.is_empty() {
        return None;
    }
    let blocks: usize = rounds.iter().map(|blocks| blocks.len()).sum();
    let draws = (WORK / blocks).clamp(*DRAWS.start(), *DRAWS.end());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut medians = Vec::with_capacity(draws);
    let mut drawn = Vec::with_capacity(blocks);
    for _ in 0..draws {
        drawn.clear();
        for _ in 0..rounds.len() {
            let Some(blocks) = rounds.get(random.below(rounds.len())) else { continue };
            drawn.extend((0..blocks.len()).filter_map(|_| blocks.get(random.below(blocks.len())).copied()));
        }
        medians.extend(middle(&mut drawn));
    }
    medians.sort_by(f64::total_cmp);
    let at = |thousandths: usize| medians.get(medians.len() * thousandths / 1000).copied();
    Some((at(25)?, at(975)?))
}

/// SplitMix64: small, and good enough to draw samples. It begins with a constant, so that a report can
/// be made again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `bound`, which is not 0.
    #[allow(clippy::cast_possible_truncation)]
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn percentiles_are_exact_to_three_digits() {
        let mut times = Times::default();
        for i in 1..=1000 {
            times.add(i * 1_000_000, 1);
        }
        for (share, us) in [(0.5, 500.0), (0.99, 990.0), (0.25, 250.0)] {
            let found = times.percentile_us(share);
            assert!((found / us - 1.0).abs() < 0.002, "{share}: {found}");
        }
    }

    #[test]
    fn merging_is_not_averaging() {
        // A quick round of 900 calls and a slow one of 100: the 99th percentile of both is that of the slow one.
        let (mut quick, mut slow) = (Times::default(), Times::default());
        quick.add(1_000_000, 900);
        slow.add(100_000_000, 100);
        quick.merge(&slow);
        assert_eq!(quick.len(), 1000);
        assert!((quick.percentile_us(0.99) - 100.0).abs() < 0.1);
        assert!((quick.median_us() - 1.0).abs() < 0.001);
    }

    #[test]
    fn pairs_survive_the_way_between_processes() {
        let mut times = Times::default();
        times.add(3_400, 1000);
        times.add(12_345_678, 7);
        let mut copy = Times::default();
        for (ps, count) in times.pairs() {
            copy.add(ps, count);
        }
        assert_eq!(copy.len(), 1007);
        assert_eq!(copy.pairs(), times.pairs());
    }

    #[test]
    fn an_interval_holds_the_median_and_repeats() {
        let rounds: Vec<Vec<f64>> =
            (0..5).map(|r| (0..20).map(|b| 10.0 + f64::from(r) + f64::from(b) / 100.0).collect()).collect();
        let (low, high) = confidence(&rounds).unwrap();
        assert!(low < 12.1 && 12.1 < high, "{low} {high}");
        assert!((10.0..=14.2).contains(&low) && (10.0..=14.2).contains(&high));
        assert_eq!(confidence(&rounds), Some((low, high)));
        assert_eq!(confidence(&[]), None);
        assert_eq!(confidence(&[vec![5.0; 20]]), Some((5.0, 5.0)));
    }

    #[test]
    fn an_interval_widens_with_the_spread_of_rounds() {
        let width = |step: f64| {
            let rounds: Vec<Vec<f64>> = (0..5).map(|r| vec![10.0 + step * f64::from(r); 20]).collect();
            let (low, high) = confidence(&rounds).unwrap();
            high - low
        };
        assert!(width(1.0) > width(0.1));
    }
}
