//! Objects behind references that a route has passed on end with those who refer to them.

use super::{Running, Scratch, place, start, until};
use everywire::{Failure, Node, Ref, WeakNode};
use everywire_tests::kin::family::{Base, Home};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a house makes.
struct Made;

impl Base for Made {
    fn one(&self) -> Result<i32, Failure> {
        Ok(1)
    }
}

/// Makes an object whenever it is asked, and counts those that have ended.
struct Maker {
    node: WeakNode,
    ended: Arc<AtomicUsize>,
}

impl Home for Maker {
    fn find(&self, _: &str) -> Result<Option<Ref<dyn Base>>, Failure> {
        let node = self.node.upgrade().expect("it runs");
        let made = node.lend::<dyn Base>(|own| {
            let ended = Arc::clone(&self.ended);
            node.on_end(own.key(), move || {
                ended.fetch_add(1, Ordering::SeqCst);
            });
            Arc::new(Made)
        });
        Ok(Some(made))
    }
}

struct World {
    _backend: Node,
    ended: Arc<AtomicUsize>,
    broker: Running,
    _client: Node,
    home: Ref<dyn Home>,
}

fn world(near: &str, far: &str, scratch: &Scratch, more: &str) -> World {
    let (backend, ended) = (Node::new(), Arc::<AtomicUsize>::default());
    backend.listen(&place(far, "backend", scratch)).unwrap();
    let maker = Maker { node: backend.downgrade(), ended: Arc::clone(&ended) };
    let served = backend.export::<dyn Home>("home", Arc::new(maker));
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contracts/family.idl");
    let broker = start(&format!(
        "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"home\"\nmatch = {{ key = \"home\" }}\nto = \"{}\"\n\
         contract = \"{}\"\ninterface = \"family::Home\"\n{more}\n",
        place(near, "front", scratch),
        backend.print_friendly(served.reference()),
        contract.display(),
    ));
    let client = Node::new();
    let home = client.connect::<dyn Home>(&broker.reference("home")).unwrap();
    World { _backend: backend, ended, broker, _client: client, home }
}

impl World {
    /// How many objects the route has passed on that have not ended.
    fn held(&self) -> f64 {
        self.broker.metric("references{route=\"home\"}")
    }

    fn make(&self) -> Ref<dyn Base> {
        self.home.find("any").unwrap().expect("an object")
    }
}

/// Objects of COM, on both sides: each is released at the target when its caller has released it.
#[test]
fn objects_that_callers_have_released_end() {
    const OBJECTS: usize = 1_000;
    let scratch = Scratch::new();
    let world = world("dcom", "dcom", &scratch, "references = 200");
    for _ in 0..OBJECTS {
        assert_eq!(world.make().one().unwrap(), 1);
    }
    until("all have ended at the target", || world.ended.load(Ordering::SeqCst) == OBJECTS);
    assert!(world.held() < 0.5, "{}", world.held());
}

/// What is still referred to stays, and is at its limit refused to others.
#[test]
fn objects_that_somebody_refers_to_stay() {
    let scratch = Scratch::new();
    let world = world("dcom", "dcom", &scratch, "references = 3");
    let kept: Vec<_> = (0..3).map(|_| world.make()).collect();
    let failure = world.home.find("any").unwrap_err();
    assert!(failure.to_string().contains("references passed on by this route"), "{failure}");
    kept.iter().for_each(|kept| assert_eq!(kept.one().unwrap(), 1));
    drop(kept);
    until("they have ended", || world.held() < 0.5);
    assert_eq!(world.make().one().unwrap(), 1);
}

/// On a wire that does not count references, the one that was not used for the longest time makes room.
#[test]
fn where_nobody_counts_the_oldest_makes_room() {
    let scratch = Scratch::new();
    let world = world("iiop", "dcom", &scratch, "references = 3");
    let kept: Vec<_> = (0..3).map(|_| world.make()).collect();
    // The first is used once more.
    kept[0].one().unwrap();
    let fourth = world.make();
    assert_eq!(kept[1].one().unwrap_err().kind(), everywire::Kind::NoObject);
    for stays in [&kept[0], &kept[2], &fourth] {
        assert_eq!(stays.one().unwrap(), 1);
    }
    until("it has ended at the target", || world.ended.load(Ordering::SeqCst) == 1);
    assert!((world.held() - 3.0).abs() < 0.1, "{}", world.held());
}
