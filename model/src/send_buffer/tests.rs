//! Parts and runs in every order, taken in every step.

use super::*;

#[test]
fn parts_are_what_was_put_in_and_not_taken() {
    for taken in [0, 2, 4, 100, SPLICE + 4, SPLICE + 6] {
        let mut buffer = SendBuffer::new();
        buffer.flat().extend_from_slice(b"head");
        let part = Bytes::from(vec![b'x'; SPLICE]);
        buffer.splice(part.clone());
        buffer.flat().extend_from_slice(b"tail");
        buffer.consume(taken);
        let all = buffer.to_vec();
        let parts = buffer.into_parts();
        assert_eq!(parts.concat(), all, "{taken} taken");
        assert!(parts.iter().all(|part| !part.is_empty()));
        if taken == 0 {
            assert_eq!((parts.len(), parts[1].as_ptr()), (3, part.as_ptr()), "nothing is copied");
        }
    }
    assert!(SendBuffer::new().into_parts().is_empty());
}

#[test]
fn connections_of_a_thread_copy_parts_to_the_same_memory() {
    let part = Bytes::from(vec![b'x'; 2 * LENT]);
    let mut buffers: Vec<_> = (0..3).map(|_| SendBuffer::new()).collect();
    let mut places = Vec::new();
    for round in 0..2 {
        for buffer in &mut buffers {
            buffer.flat().extend_from_slice(b"head");
            buffer.splice(part.clone());
            buffer.flat().extend_from_slice(b"tail");
            assert_eq!(buffer.to_vec(), [b"head", &part[..], b"tail"].concat(), "{round}");
            places.push(buffer.flat.as_ptr());
            buffer.consume(LENT);
            assert!(buffer.own.is_some(), "it is not empty yet");
            buffer.consume(buffer.len());
            assert!(buffer.held() < LENT, "its own buffer is small: {}", buffer.held());
        }
    }
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
    // What waits has its memory alone.
    let [first, second, third] = &mut buffers[..] else { panic!("three") };
    first.splice(part.clone());
    second.splice(part.clone());
    assert_ne!(first.flat.as_ptr(), second.flat.as_ptr());
    third.append(first);
    assert_eq!((first.len(), third.to_vec()), (0, part.to_vec()));
    assert!(first.held() < LENT);
    second.flat().resize(2 * STALE, 1);
    second.settle();
    assert!(second.own.is_none());
    assert!(second.held() < 2 * STALE + LENT, "{}", second.held());
}

#[test]
fn splices_keep_their_place_and_are_consumed_in_order() {
    let mut buffer = SendBuffer::new();
    buffer.flat().extend_from_slice(b"head");
    buffer.splice(Bytes::from(vec![b'x'; SPLICE]));
    buffer.flat().extend_from_slice(b"tail");
    let mut all = b"head".to_vec();
    all.extend(vec![b'x'; SPLICE]);
    all.extend(b"tail");
    // Octet by octet Miri takes minutes.
    let least = if cfg!(miri) { 50 } else { 1 };
    for step in [least, 3 * least, 100, SPLICE] {
        let mut rope2 = SendBuffer::new();
        rope2.flat().extend_from_slice(b"head");
        rope2.splice(Bytes::from(vec![b'x'; SPLICE]));
        rope2.flat().extend_from_slice(b"tail");
        let mut seen = Vec::new();
        while !rope2.is_empty() {
            let first = rope2.slices(1, usize::MAX)[0].to_vec();
            let n = first.len().min(step);
            seen.extend_from_slice(&first[..n]);
            rope2.consume(n);
        }
        assert_eq!(seen, all);
    }
    assert_eq!(buffer.to_vec(), all);
    // The same pieces without memory of their own, as many as there is place for.
    buffer.consume(2);
    for (place, most) in [(1, usize::MAX), (2, 3), (5, usize::MAX), (5, SPLICE)] {
        let mut slices = vec![IoSlice::new(&[]); place];
        let used = buffer.gather(most, &mut slices);
        let (filled, wanted) = (&slices[..used], buffer.slices(place, most));
        assert!(
            filled.iter().map(|slice| &**slice).eq(wanted.iter().map(|slice| &**slice)),
            "{place}, {most}"
        );
        assert!(filled.iter().all(|slice| !slice.is_empty()));
    }
}

#[test]
fn a_buffer_that_never_empties_drops_what_was_sent() {
    let mut buffer = SendBuffer::new();
    let (mut put, mut seen, mut seed) = (Vec::new(), Vec::new(), 1_u32);
    // Miri takes an hour for all of them.
    for round in 0..if cfg!(miri) { 40 } else { 2_000_u32 } {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let small = vec![round.to_le_bytes()[0]; seed as usize >> 20];
        buffer.flat().extend_from_slice(&small);
        put.extend_from_slice(&small);
        if round % 7 == 0 {
            let large = vec![round.to_le_bytes()[1]; SPLICE + (seed as usize >> 22)];
            buffer.splice(Bytes::from(large.clone()));
            put.extend_from_slice(&large);
        }
        // Sometimes within a flat run, sometimes within a splice; never all.
        let taken = (buffer.len() - 1).min(seed as usize >> 18);
        seen.extend(buffer.slices(usize::MAX, taken).iter().flat_map(|slice| slice.iter().copied()));
        let aligned = buffer.position() % ALIGNMENT;
        buffer.consume(taken);
        assert_eq!(buffer.position() % ALIGNMENT, aligned);
        assert_eq!(buffer.len(), put.len() - seen.len());
        assert!(
            buffer.position() <= 2 * buffer.len() + STALE + 2 * ALIGNMENT,
            "{} octets are kept of {}",
            buffer.position(),
            buffer.len()
        );
    }
    seen.extend(buffer.to_vec());
    assert_eq!(seen, put);
}

#[test]
fn what_settles_holds_what_is_in_it_and_keeps_its_order() {
    let mut buffer = SendBuffer::new();
    let mut all = Vec::new();
    let mut put = |buffer: &mut SendBuffer, octet: u8, size: usize, splice: bool| {
        let bytes = vec![octet; size];
        all.extend_from_slice(&bytes);
        if splice { buffer.splice(bytes.into()) } else { buffer.flat().extend_from_slice(&bytes) }
    };
    put(&mut buffer, 1, STALE, false);
    buffer.settle();
    assert!(buffer.contiguous().is_some(), "so little is left as it is");
    put(&mut buffer, 2, SPLICE, true);
    put(&mut buffer, 3, 5, false);
    put(&mut buffer, 4, SPLICE, true);
    assert!(buffer.held() > buffer.len() + STALE / 2, "room for as much again");
    let at = buffer.position();
    buffer.settle();
    assert_eq!((buffer.held(), buffer.position(), buffer.len()), (at, at, at));
    assert_eq!(buffer.flat.capacity(), 0);
    put(&mut buffer, 5, 2 * STALE, false);
    put(&mut buffer, 6, SPLICE, true);
    // In the middle of a part, and behind some.
    for taken in [7, STALE + SPLICE + 3, 9] {
        buffer.consume(taken);
        buffer.settle();
    }
    put(&mut buffer, 7, 3, false);
    let taken = 7 + STALE + SPLICE + 3 + 9;
    assert_eq!(buffer.to_vec(), all[taken..]);
    let mark = buffer.mark();
    buffer.splice(vec![8; SPLICE].into());
    buffer.truncate(mark);
    assert_eq!(buffer.to_vec(), all[taken..]);
    assert_eq!(buffer.into_parts().concat(), all[taken..]);
}

#[test]
fn a_part_counts_as_a_whole_until_it_is_given_back() {
    let (part, count) = (8 * SPLICE, 6);
    let mut buffer = SendBuffer::new();
    for _ in 0..count {
        buffer.splice(vec![0; part].into());
    }
    // Each goes when its end was taken, though more than half of all waits.
    for gone in 0..count {
        assert_eq!(buffer.held(), (count - gone) * part, "{gone} were taken");
        buffer.consume(part - 1);
        assert_eq!(buffer.held(), (count - gone) * part, "its end waits");
        buffer.consume(1);
    }
    assert_eq!((buffer.held(), buffer.len()), (0, 0));
}

#[test]
fn handles_keep_their_place_when_what_was_sent_is_dropped() {
    let mut buffer = SendBuffer::new();
    buffer.flat().extend_from_slice(&vec![0; 3 * STALE]);
    let at = buffer.position();
    buffer.flat().extend_from_slice(b"with them");
    buffer.attach(at, Vec::new());
    buffer.consume(2 * STALE + 5);
    assert_eq!(buffer.handles().1, STALE - 5, "so many octets go before them");
    buffer.consume(STALE - 5);
    assert!(buffer.handles().0.is_some() && buffer.to_vec() == b"with them");
}

#[test]
fn what_is_inserted_stands_before_what_came_since_the_mark() {
    let mut buffer = SendBuffer::new();
    buffer.flat().extend_from_slice(b"a");
    buffer.splice(Bytes::from(vec![b'x'; SPLICE]));
    let mark = buffer.mark();
    buffer.flat().extend_from_slice(b"b");
    buffer.splice(Bytes::from(vec![b'y'; SPLICE]));
    buffer.flat().extend_from_slice(b"c");
    buffer.insert(mark, b"12");
    let mut all = b"a".to_vec();
    all.extend(vec![b'x'; SPLICE]);
    all.extend(b"12b");
    all.extend(vec![b'y'; SPLICE]);
    all.extend(b"c");
    assert_eq!((buffer.to_vec(), buffer.len()), (all.clone(), all.len()));
}

#[test]
fn truncate_leaves_no_trace() {
    let mut buffer = SendBuffer::new();
    buffer.flat().extend_from_slice(b"keep");
    let mark = buffer.mark();
    buffer.splice(Bytes::from(vec![0; SPLICE]));
    buffer.flat().push(1);
    buffer.truncate(mark);
    assert_eq!(buffer.to_vec(), b"keep");
    assert_eq!(buffer.len(), 4);
}

#[test]
fn a_rope_appended_to_another_keeps_its_order() {
    for taken in [0, 1, 3, 4, SPLICE, SPLICE + 4, SPLICE + 6] {
        let mut other = SendBuffer::new();
        other.flat().extend_from_slice(b"one");
        other.splice(Bytes::from(vec![7; SPLICE]));
        other.flat().extend_from_slice(b"two");
        other.consume(taken);
        let mut buffer = SendBuffer::new();
        buffer.flat().extend_from_slice(b"zero");
        let whole = [&b"zero"[..], &other.to_vec()].concat();
        buffer.append(&mut other);
        assert_eq!(buffer.to_vec(), whole, "{taken} taken");
        assert_eq!(buffer.len(), whole.len());
        assert!(other.is_empty() && other.to_vec().is_empty());
    }
}
