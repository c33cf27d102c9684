//! What was used last, such as the beginnings of the messages of a connection: few enough to be looked through.
//!
//! State: up to `N` entries in no order; the one that was used last, which is tried first; and the place that is filled next. Until all
//! places are filled that is the first free one, and then the one of the entry that came first. An entry has its number as long as
//! nothing has taken its place.

/// See the module.
#[derive(Debug)]
pub struct Recent<T, const N: usize> {
    all: Vec<T>,
    last: usize,
    next: usize,
}

impl<T, const N: usize> Default for Recent<T, N> {
    fn default() -> Self {
        Self { all: Vec::new(), last: 0, next: 0 }
    }
}

impl<T, const N: usize> Recent<T, N> {
    /// The number of the entry that this is true of; it is the last that was used from now on.
    #[inline]
    pub fn find(&mut self, is: impl Fn(&T) -> bool) -> Option<usize> {
        self.find_map(|held| is(held).then_some(())).map(|(index, ())| index)
    }

    /// The number of the entry that something is found in, and what; it is the last that was used from now on.
    #[inline]
    pub fn find_map<R>(&mut self, look: impl Fn(&T) -> Option<R>) -> Option<(usize, R)> {
        if let Some((index, held)) = self.last()
            && let Some(found) = look(held)
        {
            return Some((index, found));
        }
        let mut all = self.all.iter().enumerate();
        let (index, found) = all.find_map(|(index, held)| Some((index, look(held)?)))?;
        self.last = index;
        Some((index, found))
    }

    /// Keeps one more, if need be in place of the one that came first. Its number.
    pub fn keep(&mut self, new: T) -> usize {
        match self.all.get_mut(self.next) {
            Some(place) => *place = new,
            None => self.all.push(new),
        }
        self.last = self.next;
        self.next = (self.next + 1) % N;
        self.last
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The one that was used last, and its number.
    #[inline]
    pub fn last(&self) -> Option<(usize, &T)> {
        self.all.get(self.last).map(|held| (self.last, held))
    }

    /// The entry with this number.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.all.get(index)
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.all.get_mut(index)
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.all.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_that_came_first_gives_way_and_the_last_one_used_is_tried_first() {
        let mut recent = Recent::<u32, 3>::default();
        assert_eq!((recent.find(|_| true), recent.last()), (None, None));
        assert_eq!([10, 11, 12, 13].map(|new| recent.keep(new)), [0, 1, 2, 0]);
        assert_eq!(recent.iter().copied().collect::<Vec<_>>(), [13, 11, 12]);
        assert_eq!(recent.find(|held| *held == 12), Some(2));
        assert_eq!(recent.last(), Some((2, &12)));
        assert_eq!(recent.find(|_| true), Some(2));
        assert_eq!(recent.find_map(|held| held.checked_sub(13)), Some((0, 0)));
        assert_eq!((recent.find(|held| *held == 10), recent.last()), (None, Some((0, &13))), "it is gone");
        assert_eq!((recent.keep(14), recent.get(1), recent.get(3)), (1, Some(&14), None));
        recent.clear();
        assert_eq!((recent.keep(15), recent.iter().count()), (0, 1));
    }
}
