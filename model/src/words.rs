//! Words that people type, and the known ones that they meant.

/// The known word nearest to a mistyped one, whatever its case; of those that are equally near the first. Nothing if none is near.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let lower = word.to_ascii_lowercase();
    known
        .into_iter()
        .map(|other| (distance(&lower, &other.to_ascii_lowercase()), other))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= 1 + word.len() / 4)
        .map(|(_, other)| other)
}

/// Edits (insert, delete, replace, exchange two neighbours) between two words.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    // The rows of the words with one letter less, and with two.
    let (mut row, mut above): (Vec<usize>, Vec<usize>) = ((0..=to.len()).collect(), Vec::new());
    for (at, character) in from.iter().enumerate() {
        let mut next = vec![at + 1];
        for (place, other) in to.iter().enumerate() {
            let cost = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX - 1);
            let replaced = cost(&row, place) + usize::from(character != other);
            let mut least = replaced.min(cost(&row, place + 1) + 1).min(cost(&next, place) + 1);
            let before = |word: &[char], at: usize| at.checked_sub(1).and_then(|at| word.get(at).copied());
            if before(&from, at) == Some(*other) && before(&to, place) == Some(*character) {
                least = least.min(cost(&above, place - 1) + 1);
            }
            next.push(least);
        }
        above = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("gleich", "gleich"), 0);
        assert_eq!(distance("kye", "key"), 1);
        assert_eq!(distance("ab", "bca"), 3);
    }

    #[test]
    fn the_nearest_word_is_found_unless_none_is_near() {
        assert_eq!(nearest("adress", ["name", "address"]), Some("address"));
        assert_eq!(nearest("Titel", ["title", "count"]), Some("title"));
        assert_eq!(nearest("cat", ["bat", "at"]), Some("bat"));
        assert_eq!(nearest("kye", ["user", "key"]), Some("key"));
        assert_eq!(nearest("zebra", ["name", "address"]), None);
    }
}
