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

/// Edits (insert, delete, replace) between two words.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, character) in from.chars().enumerate() {
        let (mut before, mut left) = (at, at + 1);
        let mut next = vec![left];
        for (other, above) in to.iter().zip(row.iter().skip(1)) {
            left = (before + usize::from(character != *other)).min(left + 1).min(above + 1);
            before = *above;
            next.push(left);
        }
        row = next;
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
    }

    #[test]
    fn the_nearest_word_is_found_unless_none_is_near() {
        assert_eq!(nearest("adress", ["name", "address"]), Some("address"));
        assert_eq!(nearest("Titel", ["title", "count"]), Some("title"));
        assert_eq!(nearest("cat", ["bat", "at"]), Some("bat"));
        assert_eq!(nearest("zebra", ["name", "address"]), None);
    }
}
