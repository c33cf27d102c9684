//! Success that has degrees: results, and the number by which an operation says how it succeeded.

use crate::marshal::{MarshalList, UnmarshalList};
use crate::shape::Shape;
use crate::visit::{Sink, Source, Visit};

/// What an operation yields whose contract says that it succeeds in more than one way: its results, and which way it was.
///
/// The code is that of the wire which has such: an HRESULT that is no failure. It reaches a caller in this process and one over
/// such a wire; over any other wire it is 0, plain success.
///
/// ```
/// use everywire_model::Success;
///
/// let whole: Success<Vec<i32>> = vec![1, 2].into();
/// assert!(whole.is_plain());
/// let less = Success::with(Success::LESS, vec![1]);
/// assert_eq!((less.code, less.value.len()), (1, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Success<T> {
    /// The results.
    pub value: T,
    /// How it succeeded: 0 plainly, else in a way that the contract names. Not negative.
    pub code: i32,
}

impl Success<()> {
    /// The code of plain success (`S_OK`).
    pub const PLAIN: i32 = 0;
    /// The code of success with less than was asked for (`S_FALSE`).
    pub const LESS: i32 = 1;
}

impl<T> Success<T> {
    /// Results with a code. One that is negative tells of a failure, and whoever calls from elsewhere gets a failure for it:
    /// [`crate::Failure::of_status`] is for those.
    pub fn with(code: i32, value: T) -> Self {
        Self { value, code }
    }

    /// Whether it is plain success.
    pub fn is_plain(&self) -> bool {
        self.code == Success::PLAIN
    }

    /// The same success with other results.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Success<U> {
        Success { value: change(self.value), code: self.code }
    }
}

/// Plain success.
impl<T> From<T> for Success<T> {
    fn from(value: T) -> Self {
        Self { value, code: Success::PLAIN }
    }
}

impl<T: MarshalList> MarshalList for Success<T> {
    fn marshal_list<S: Sink + ?Sized>(&self, list: &Shape, sink: &mut S) -> Visit<()> {
        sink.status(self.code)?;
        self.value.marshal_list(list, sink)
    }
}

impl<'a, T: UnmarshalList<'a>> UnmarshalList<'a> for Success<T> {
    fn unmarshal_list<S: Source<'a> + ?Sized>(list: &Shape, source: &mut S) -> Visit<Self> {
        let code = source.status();
        Ok(Self { value: T::unmarshal_list(list, source)?, code })
    }
}
