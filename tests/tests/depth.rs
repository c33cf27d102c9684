//! Values that nest deeper than the limit, and the deepest that the limit can be raised to, on threads as they are.

use everywire::model::budget::MOST_LEVELS;
use everywire::{Builder, Kind, Node};
use everywire_tests::kitchen::interop::{Kitchen, Tree};
use everywire_tests::servants;

/// A tree of one branch: each joint is a struct in a list.
fn branch(joints: usize) -> Tree {
    let end = Tree { name: "end".into(), children: Vec::new() };
    (1..joints).fold(end, |tree, _| Tree { name: "joint".into(), children: vec![tree] })
}

fn joints(tree: &Tree) -> usize {
    let (mut tree, mut count) = (tree, 1);
    while let Some(child) = tree.children.first() {
        (tree, count) = (child, count + 1);
    }
    count
}

fn kitchen(server: &Node, client: &Node) -> everywire::Ref<dyn Kitchen> {
    let address = server.listen("iiop://127.0.0.1:0").unwrap();
    let exported = servants::export_all(server);
    assert!(exported.iter().any(|(name, _)| *name == "Kitchen"));
    client.connect::<dyn Kitchen>(&format!("{address}Kitchen")).unwrap()
}

fn deep(levels: u32) -> Node {
    let builder: Builder = Node::builder();
    builder.max_depth(levels).build().into()
}

#[test]
fn the_limit_of_levels_can_be_raised_and_says_so() {
    let server = Node::new();
    let refused = kitchen(&server, &deep(MOST_LEVELS)).echo_tree(&branch(100)).unwrap_err();
    assert_eq!(refused.kind(), Kind::LimitExceeded, "{refused}");
    assert!(refused.hint().is_some_and(|hint| hint.contains("max_depth")), "{refused:?}");
    let server = deep(MOST_LEVELS);
    let refused = kitchen(&server, &Node::new()).echo_tree(&branch(100)).unwrap_err();
    assert_eq!(refused.kind(), Kind::LimitExceeded, "{refused}");
    let server = deep(300);
    assert_eq!(joints(&kitchen(&server, &deep(300)).echo_tree(&branch(100)).unwrap()), 100);
}

/// The deepest value fits the stacks of the event loops, and of this test.
#[test]
fn the_deepest_value_that_can_be_allowed_exhausts_no_stack() {
    // More than may be allowed is not allowed.
    let (server, client) = (deep(u32::MAX), deep(u32::MAX));
    let kitchen = kitchen(&server, &client);
    let fits = (1..).map(|n| n * 50).take_while(|n| kitchen.echo_tree(&branch(*n)).is_ok()).last().unwrap();
    assert!((400..=1000).contains(&fits), "{fits}");
    let refused = kitchen.echo_tree(&branch(fits + 50)).unwrap_err();
    assert_eq!(refused.kind(), Kind::LimitExceeded, "{refused}");
}
