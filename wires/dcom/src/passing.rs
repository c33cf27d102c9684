//! Calls and answers that pass without a contract: stubs as they came, behind an ORPCTHIS or ORPCTHAT with
//! the same flags, causality and extensions (MS-DCOM 2.2.13, 2.2.21).
//!
//! What a stub's bytes depend on is kept: its data representation is that of the new PDU, and what follows
//! ORPCTHIS or ORPCTHAT begins at the same place of a block of eight. Extensions are headers, known by their
//! GUID; where none is changed they go on as they came. The version in ORPCTHIS is the connection's own.
//! OBJREFs in a stub are not touched: they lead past the hop.
//!
//! States: a `MessagePrefix` is made for one message and used once, when that is written.
//!
//! Invariants: a body of another codec, or one that is no whole stub of this kind, is refused before anything
//! is written. No more extensions go out than a receiver here would take (`MAX_EXTENSIONS`). If the values
//! cannot begin at their place, which happens only behind an ORPCTHIS that no known sender writes, the
//! message fails instead of being misread.

use crate::frame::turn;
use crate::ndr::{NAME, THAT, THIS, WHOLE, WINE, extents};
use crate::orpc::{Extent, HOPS, OrpcThat, OrpcThis, put_extents, put_this};
use everywire_model::headers::Content;
use everywire_model::message::needs_contract;
use everywire_model::visit::MessageContents;
use everywire_model::{Body, Failure, Header, Headers, Initiator, Visit};
use uuid::Uuid;

/// Where the minor version stands in ORPCTHIS: its second number of 16 bits.
const MINOR: std::ops::Range<usize> = 2..4;

/// What stands in front of the values of a message.
#[derive(Debug, Default)]
pub(crate) struct MessagePrefix<'a> {
    /// As it came: a whole ORPCTHIS or ORPCTHAT; nothing of one that is new.
    came: &'a [u8],
    /// Whether it, and the values, are little-endian.
    pub(crate) little: bool,
    /// The values' place in a block of eight.
    place: usize,
    /// All its extensions, where they are others than those that came.
    extents: Option<Vec<Extent>>,
}

impl<'a> MessagePrefix<'a> {
    /// In front of what a message carries; `kind` is [`THIS`] or [`THAT`].
    ///
    /// # Errors
    /// The body is another wire's or no message of this kind, or a header is no extension.
    pub(crate) fn of(carries: MessageContents<'a>, kind: u32) -> Result<Self, Failure> {
        let mut lead = Self { little: true, ..Self::default() };
        let own = carries.body.and_then(Body::headers);
        if let Some(body) = carries.body {
            check(body, kind)?;
            lead.came = own.map(|own| &**own.raw()).unwrap_or_default();
            lead.little = body.little;
            // NDR aligns to 8 at the most, so the place modulo 8 is all that the values depend on.
            lead.place = body.base & 7;
        }
        let edits = [own, carries.headers];
        if edits.iter().flatten().all(|headers| headers.edits().is_empty()) {
            return Ok(lead);
        }
        let came = carries.body.filter(|_| !lead.came.is_empty());
        let mut all = came.map(extents).transpose()?.unwrap_or_default();
        all.retain(|extent| edits.iter().flatten().all(|headers| keeps(headers, extent.id)));
        for header in edits.iter().flatten().flat_map(|headers| headers.brought()) {
            all.push(extent(header)?);
        }
        if all.len() > crate::orpc::MAX_EXTENSIONS {
            let (have, most) = (all.len() as u64, crate::orpc::MAX_EXTENSIONS as u64);
            return Err(Failure::over_limit(Initiator::User, "extensions in a message", have, most));
        }
        lead.extents = Some(all);
        Ok(lead)
    }

    /// In front of what this side asks for by itself, on behalf of a message that has passed so many hops as headers beside it tell. Of
    /// them no others go on.
    pub(crate) fn hops(headers: Option<&Headers>) -> Option<Self> {
        let mut told = headers?.brought().filter(|header| id(&header.name) == Some(HOPS));
        let extents = Some(vec![extent(told.next()?).ok()?]);
        Some(Self { little: true, extents, ..Self::default() })
    }

    /// Appends an ORPCTHIS to a stub that begins at the end of `out`.
    ///
    /// # Errors
    /// The values cannot begin at their place.
    pub(crate) fn put_this(&self, out: &mut Vec<u8>, minor: u16, causality: u128) -> Visit<()> {
        let stub = out.len();
        if self.came.len() < OrpcThis::LEN {
            put_this(out, minor, causality);
            if !self.little {
                turn_this(out.get_mut(stub..).unwrap_or_default());
            }
        } else {
            out.extend_from_slice(self.came);
            let minor = if self.little { minor.to_le_bytes() } else { minor.to_be_bytes() };
            if let Some(place) = out.get_mut(stub..).and_then(|this| this.get_mut(MINOR)) {
                place.copy_from_slice(&minor);
            }
        }
        self.put_extents(out, stub, OrpcThis::LEN)
    }

    /// Appends an ORPCTHAT to a stub that begins at the end of `out`.
    ///
    /// # Errors
    /// The values cannot begin at their place.
    pub(crate) fn put_that(&self, out: &mut Vec<u8>) -> Visit<()> {
        let stub = out.len();
        if self.came.len() < OrpcThat::LEN {
            out.extend_from_slice(&[0; OrpcThat::LEN]);
        } else {
            out.extend_from_slice(self.came);
        }
        self.put_extents(out, stub, OrpcThat::LEN)
    }

    /// Puts other extensions in the place of those that stand there, whose pointer ends `head` octets into the stub.
    fn put_extents(&self, out: &mut Vec<u8>, stub: usize, head: usize) -> Visit<()> {
        if let Some(extents) = &self.extents {
            out.truncate(stub + head - 4);
            // Of a sender whose array has an odd length.
            // An array with an even number of places ends at a multiple of 8 (behind ORPCTHIS as behind
            // ORPCTHAT), one with an odd number four octets later.
            let odd = self.place == 4 && !extents.is_empty();
            put_extents(out, self.little, extents, odd);
        }
        match (out.len() - stub) & 7 == self.place {
            true => Ok(()),
            false => Err(needs_contract("values that are aligned in another way")),
        }
    }
}

/// Whether a body passes here.
fn check(body: &Body, kind: u32) -> Result<(), Failure> {
    if body.codec.name() != NAME {
        return Err(needs_contract("a body of another wire"));
    }
    let known = body.headers().is_some_and(|headers| !headers.raw().is_empty());
    match body.dialect & (THIS | THAT | WHOLE | WINE) {
        found if found == kind | WHOLE => Ok(()),
        // Values that somebody encoded.
        0 if kind == THIS && !known && body.base & 7 == 0 => Ok(()),
        _ => Err(needs_contract("a body that is no whole stub")),
    }
}

/// The GUID that a header is known by; braces are left out of it.
fn id(name: &str) -> Option<Uuid> {
    let plain = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    if plain.len() == 36 { Uuid::try_parse(plain).ok() } else { None }
}

/// Whether an extension that came still goes out, however the changes spell it.
fn keeps(headers: &Headers, extent: Uuid) -> bool {
    use everywire_model::Edit;
    !headers.edits().iter().any(|edit| match edit {
        Edit::Add(_) => false,
        Edit::Put(header) => id(&header.name) == Some(extent),
        Edit::Remove(name) => id(name) == Some(extent),
    })
}

/// Whether headers tell of hops, and of nothing else.
pub(crate) fn is_count(headers: &Headers) -> bool {
    headers.raw().is_empty()
        && headers.brought().all(|header| id(&header.name) == Some(HOPS))
        && headers.brought().count() == headers.edits().len()
}

/// The extension that a header is.
pub(crate) fn extent(header: &Header) -> Result<Extent, Failure> {
    let Some(id) = id(&header.name).filter(|id| *id != crate::session::EXCEPTION_EXTENT) else {
        let what = format!("`{}` names no extension", header.name);
        return Err(Failure::bad_argument(what)
            .with_hint("give its GUID, such as 45570001-1a8c-11d3-b68f-00c04f8b72e7"));
    };
    let data = match &header.content {
        Content::Text(text) => bytes::Bytes::copy_from_slice(text.as_bytes()),
        Content::Bytes(bytes) => bytes.clone(),
    };
    Ok(Extent { id, data })
}

/// An ORPCTHIS without extensions in the other byte order.
fn turn_this(this: &mut [u8]) {
    // The last part of a GUID is octets.
    turn(this, &[(0, 2), (2, 2), (4, 4), (8, 4), (12, 4), (16, 2), (18, 2), (28, 4)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::values::passing;
    use bytes::Bytes;
    use everywire_model::Kind;
    use everywire_model::visit::{Nothing, WithHeaders};
    use everywire_model::{Budget, Encode};

    fn passing_body(stub: &Bytes, base: usize, little: bool, kind: u32) -> Body {
        passing(stub, base, little, Budget::default(), None, kind)
    }

    const ID: Uuid = uuid::uuid!("45570001-1a8c-11d3-b68f-00c04f8b72e7");

    fn extent(len: u8) -> Extent {
        Extent { id: Uuid::from_u128(len.into()), data: (0..len).collect::<Vec<_>>().into() }
    }

    /// A stub of another sender: ORPCTHIS with these extensions, then four octets.
    fn stub(little: bool, extents: &[Extent], odd: bool) -> (Bytes, usize) {
        let mut out = Vec::new();
        put_this(&mut out, 7, 0x0102_0304_0506_0708);
        if !little {
            turn_this(&mut out);
        }
        out.truncate(OrpcThis::LEN - 4);
        put_extents(&mut out, little, extents, odd);
        let base = out.len();
        out.extend_from_slice(&[1, 2, 3, 4]);
        (out.into(), base)
    }

    /// What goes out of what came in.
    fn passed(arguments: &dyn Encode) -> Result<(Vec<u8>, bool), Failure> {
        let lead = MessagePrefix::of(arguments.carries(), THIS)?;
        let mut out = Vec::new();
        lead.put_this(&mut out, 6, 9)?;
        out.extend_from_slice(&arguments.carries().body.unwrap().bytes);
        Ok((out, lead.little))
    }

    #[test]
    fn what_is_not_changed_goes_on_as_it_came_but_for_its_version() {
        for little in [true, false] {
            for (extents, odd) in
                [(vec![], false), (vec![extent(0), extent(9)], false), (vec![extent(3)], true)]
            {
                let (stub, base) = stub(little, &extents, odd);
                let (this, taken) = OrpcThis::parse(&stub, little).unwrap();
                assert_eq!((taken, &this.extensions), (base, &extents));
                let body = passing_body(&stub, base, little, THIS);
                let (out, as_little) = passed(&body).unwrap();
                let mut expected = stub.to_vec();
                expected[if little { 2 } else { 3 }] = 6;
                assert_eq!((out, as_little), (expected, little));
            }
        }
    }

    #[test]
    fn changed_extensions_leave_the_values_at_their_place() {
        for little in [true, false] {
            for (extents, odd) in
                [(vec![], false), (vec![extent(0), extent(9)], false), (vec![extent(3)], true)]
            {
                let (stub, base) = stub(little, &extents, odd);
                let body = passing_body(&stub, base, little, THIS);
                let mut headers = Headers::default();
                headers.put(Header::bytes(ID.to_string(), vec![5; 5]));
                headers.remove(format!("{{{}}}", extent(9).id));
                let (out, _) = passed(&WithHeaders { values: &body, headers: &headers }).unwrap();
                let (this, taken) = OrpcThis::parse(&out.clone().into(), little).unwrap();
                assert_eq!((taken & 7, &out[taken..]), (base & 7, &[1, 2, 3, 4][..]));
                let kept = extents.iter().filter(|held| held.id != extent(9).id).cloned();
                let brought = Extent { id: ID, data: vec![5; 5].into() };
                assert_eq!(this.extensions, kept.chain([brought]).collect::<Vec<_>>());
                let before = OrpcThis::parse(&stub, little).unwrap().0;
                assert_eq!((this.cid, this.version), (before.cid, (5, 6)));
                let names: Vec<_> =
                    body.codec.headers(&body).unwrap().into_iter().map(|held| held.name).collect();
                assert_eq!(names, extents.iter().map(|held| held.id.to_string()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn no_more_extensions_go_out_than_come_in() {
        let (stub, base) = stub(true, &[extent(1)], false);
        let body = passing_body(&stub, base, true, THIS);
        let mut headers = Headers::default();
        (0..64).for_each(|_| headers.add(Header::text(ID.to_string(), "x")));
        let refused = passed(&WithHeaders { values: &body, headers: &headers }).unwrap_err();
        assert_eq!(refused.kind(), Kind::LimitExceeded);
        let mut own = Headers::default();
        own.add(Header::text(crate::session::EXCEPTION_EXTENT.to_string(), "x"));
        let refused =
            MessagePrefix::of(WithHeaders { values: &Nothing, headers: &own }.carries(), THIS).unwrap_err();
        assert_eq!(refused.kind(), Kind::BadArgument);
    }

    #[test]
    fn no_octet_of_what_came_makes_it_panic() {
        let mut headers = Headers::default();
        headers.add(Header::text(ID.to_string(), "x"));
        for little in [true, false] {
            let (stub, base) = stub(little, &[extent(3), extent(8)], false);
            for at in (0..base).step_by(if cfg!(miri) { 8 } else { 1 }) {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut changed = stub.to_vec();
                    changed[at] = value;
                    for len in [base, at] {
                        let body = passing_body(&changed.clone().into(), len, little, THIS);
                        let _ = passed(&body);
                        let _ = passed(&WithHeaders { values: &body, headers: &headers });
                        let _ = body.codec.headers(&body);
                    }
                }
            }
        }
    }

    #[test]
    fn an_answer_passes_whole_and_in_its_byte_order() {
        let stub: Bytes = vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0x80, 4, 2, 7].into();
        let body = passing_body(&stub, 8, false, THAT);
        let lead = MessagePrefix::of(body.carries(), THAT).unwrap();
        let mut out = Vec::new();
        lead.put_that(&mut out).unwrap();
        out.extend_from_slice(&body.bytes);
        assert_eq!((out, lead.little), (stub.to_vec(), false));
        // One whose HRESULT was taken off, and a call, are no answers.
        let mut cut = body.clone();
        cut.dialect = THAT;
        assert_eq!(MessagePrefix::of(cut.carries(), THAT).unwrap_err().kind(), Kind::Unsupported);
        assert_eq!(MessagePrefix::of(body.carries(), THIS).unwrap_err().kind(), Kind::Unsupported);
    }
}
