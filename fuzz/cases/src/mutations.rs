//! Changes to an input, as a fuzzer makes them, but always the same ones: what they find in one place is found in every other.

/// Numbers that look like chance and depend on the seed alone (Marsaglia's xorshift).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Begins at a seed; a text that differs gives other numbers.
    pub fn of(seed: &str) -> Self {
        // FNV-1a, which is never zero for a text that somebody would choose; zero would stay zero.
        let hash = seed.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(hash.max(1))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number less than `end`, or 0 when there is none.
    pub fn below(&mut self, end: usize) -> usize {
        // The high bits are the better ones.
        let number = usize::try_from(self.number() >> 33).unwrap_or(0);
        number.checked_rem(end).unwrap_or(0)
    }
}

/// What a length or a count may say when its sender is hostile.
const EXTREMES: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0xffff_ffff_ffff_fff0,
];
/// The longest input that is made.
const LONGEST: usize = 8192;

/// One to three changes to `input`; some bring in a part of `others`.
pub fn mutated(random: &mut Random, input: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut data = input.to_vec();
    for _ in 0..=random.below(3) {
        change(random, &mut data, others);
    }
    data.truncate(LONGEST.max(input.len()));
    data
}

fn change(random: &mut Random, data: &mut Vec<u8>, others: &[Vec<u8>]) {
    let len = data.len();
    let at = random.below(len);
    match random.below(8) {
        0 => data.truncate(at),
        1 | 2 => {
            let bit = random.below(8);
            if let Some(byte) = data.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        3 | 4 => field(random, data),
        5 => {
            let Some(other) = others.get(random.below(others.len())) else { return };
            let from = random.below(other.len());
            data.truncate(at);
            data.extend_from_slice(other.get(from..).unwrap_or_default());
        }
        6 => {
            let end = at + random.below(len - at.min(len));
            data.drain(at..end);
        }
        _ => {
            let end = at + random.below((len - at.min(len)).min(64));
            let again = data.get(at..end).unwrap_or_default().to_vec();
            data.splice(at..at, again);
        }
    }
}

/// Puts an extreme number where a length may stand, in either order of octets.
fn field(random: &mut Random, data: &mut [u8]) {
    let width = [1, 2, 4, 8][random.below(4)];
    let Some(last) = data.len().checked_sub(width) else { return };
    let at = random.below(last + 1);
    let mut value = EXTREMES[random.below(EXTREMES.len())];
    // A length is wrong most cunningly when it is wrong by one.
    if random.below(4) == 0 {
        value = u64::try_from(last - at).unwrap_or(0).wrapping_add(1);
    }
    let octets = value.to_le_bytes();
    let little = random.below(2) == 0;
    for (index, byte) in data[at..at + width].iter_mut().enumerate() {
        *byte = octets[if little { index } else { width - 1 - index }];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_the_same_each_time_and_change_something() {
        let others = vec![b"another".to_vec()];
        let all = |seed| {
            let mut random = Random::of(seed);
            (0..500).map(|_| mutated(&mut random, b"an input of some length", &others)).collect::<Vec<_>>()
        };
        assert_eq!(all("a"), all("a"));
        assert_ne!(all("a"), all("b"));
        let different = all("a").iter().filter(|made| made.as_slice() != b"an input of some length").count();
        assert!(different > 450, "only {different} of 500 differ");
    }

    #[test]
    fn the_empty_input_can_be_changed_too() {
        let mut random = Random::of("empty");
        (0..500).for_each(|_| drop(mutated(&mut random, b"", &[])));
    }
}
