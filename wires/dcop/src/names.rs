//! The names of result types, remembered by the shapes they are of: no name is made twice.

use crate::limits::REMEMBERED;
use crate::{strings, types};
use bytes::Bytes;
use everywire_idl::kidl;
use everywire_model::recent::Recent;
use everywire_model::shape::{Hold, Struct};
use everywire_model::{SendBuffer, Shape, Visit};

/// Where the length of a reply's data will be written, once the head is there. It lives for one reply: made,
/// written by the sink at the first composite, finished behind the data.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Head {
    /// Offset in the send buffer's flat buffer, and the send buffer's position behind it.
    pub(crate) length: Option<(usize, usize)>,
}

impl Head {
    /// Appends a type and room for the length. The length that is not known yet is 0.
    pub(crate) fn put(&mut self, buffer: &mut SendBuffer, kind: &[u8]) {
        let out = buffer.flat();
        strings::put_name(out, kind);
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        self.length = Some((at, buffer.position()));
    }

    /// Sets the length, when all data are there.
    pub(crate) fn finish(self, buffer: &mut SendBuffer) {
        if let Some((at, begin)) = self.length {
            let len = buffer.position() - begin;
            strings::patch_len(buffer.flat(), at, len);
        }
    }
}

/// Names by shapes.
#[derive(Debug, Default)]
pub(crate) struct TypeNames {
    /// Whether the next name is to be spelled as Trinity does.
    pub(crate) trinity: bool,
    /// Shape, spelling and name. Holding the shape keeps its address from being used for another.
    known: Recent<(Hold<Struct>, bool, Bytes), REMEMBERED>,
}

impl TypeNames {
    /// In the spelling of whoever gets the reply.
    fn spelled(&self, name: String) -> String {
        if self.trinity { kidl::types::of_trinity(&name) } else { name }
    }

    /// Appends the type of these results, and room for the length of the data.
    ///
    /// # Errors
    /// The results have no type name on this wire, or are more than one.
    #[inline]
    pub(crate) fn put_head(
        &mut self,
        results: &Shape,
        buffer: &mut SendBuffer,
        head: &mut Head,
    ) -> Visit<()> {
        let Shape::Struct(results) = results.resolved() else {
            head.put(buffer, self.spelled(types::name(results)?).as_bytes());
            return Ok(());
        };
        let same = |(held, trinity, _): &(Hold<Struct>, bool, Bytes)| {
            std::ptr::eq(&**held, &**results) && *trinity == self.trinity
        };
        let index = match self.known.find(same) {
            Some(index) => index,
            None => {
                let name = Bytes::from(self.spelled(types::results(&results.fields)?));
                self.known.keep((results.clone(), self.trinity, name))
            }
        };
        if let Some((.., name)) = self.known.get(index) {
            head.put(buffer, name);
        }
        Ok(())
    }
}
