//! A call between two applications takes no memory on its way, once the connections have warmed up.

#![allow(clippy::unwrap_used)]

#[path = "server/net.rs"]
#[allow(dead_code)]
mod net;

use bytes::BytesMut;
use everywire_model::{Hub, HubEvent, PeerId};
use net::{Net, call, reply};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every request goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above; the place came from `alloc`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_call_takes_no_memory_on_its_way() {
    let mut net = Net::new();
    let (a, b) = (net.application("a"), net.application("b"));
    let (call, reply) = (call("a", "b", "o", "f(int)", &[0; 4]), reply("b", "a", "int", &[0; 4]));
    let mut input = BytesMut::with_capacity(64 << 10);
    let mut passed = 0;
    let mut round = |input: &mut BytesMut| {
        for (from, message) in [(a, &call), (b, &reply)] {
            input.clear();
            input.reserve(message.len());
            input.extend_from_slice(message);
            net.server.receive(PeerId(from), net.now, input, &mut Vec::new()).unwrap();
            while let Some(event) = net.server.poll() {
                let HubEvent::Flush(to) = event else { panic!("{event:?}") };
                let rope = net.server.transmit(to).unwrap();
                let len = rope.contiguous().unwrap().len();
                assert_eq!(len, message.len());
                rope.consume(len);
                passed += 1;
            }
        }
    };
    (0..100).for_each(|_| round(&mut input));
    let before = COUNT.load(Ordering::Relaxed);
    (0..1000).for_each(|_| round(&mut input));
    let taken = COUNT.load(Ordering::Relaxed) - before;
    assert_eq!(passed, 2 * 1100);
    // The test's own buffer is made anew a few times.
    assert!(taken <= 20, "{taken} allocations in 1000 rounds");
}
