//! Values whose own type stands beside them, and objects that others refer to.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use everywire_model::shape::{Field, Hold, Struct, Text};
use everywire_model::{Budget, Shape, Value};
use everywire_wcf::limits::MAX_REFERENCES;
use everywire_wcf::{Form, Reading};

const HEAD: &str = "<Op xmlns='urn:o' xmlns:i='http://www.w3.org/2001/XMLSchema-instance' \
                    xmlns:z='http://schemas.microsoft.com/2003/10/Serialization/' xmlns:a='urn:a'>";

fn text() -> Shape {
    Shape::Text(Text::WIDE)
}

fn record(fields: &[(&'static str, Shape)]) -> Shape {
    let fields = fields.iter().map(|(name, shape)| Field { name: (*name).into(), shape: shape.clone() });
    Shape::Struct(Hold::new(Struct { name: "T".into(), id: "{urn:a}T".into(), fields: fields.collect() }))
}

/// Reads one parameter `v`.
fn read(shape: Shape, content: &str) -> Result<Value, String> {
    let parameters = Shape::Struct(Hold::new(Struct {
        name: "".into(),
        id: "".into(),
        fields: vec![Field { name: "v".into(), shape }].into(),
    }));
    let body = format!("{HEAD}{content}</Op>").into_bytes();
    let body = body_with(Form::Text, body, 0, Reading::default(), Budget::default());
    match body.read(|source| Value::decode(&parameters, source)) {
        Ok(Value::Struct(mut fields)) => Ok(fields.remove(0).1),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.to_string()),
    }
}

fn any(content: &str) -> Result<String, String> {
    read(Shape::Variant, content).map(|value| match value {
        Value::Variant(held) => format!("{:?}", held.1),
        other => panic!("{other:?}"),
    })
}

#[test]
fn structs_of_unknown_types_read_as_what_they_hold() {
    for (content, expected) in [
        (
            "<v i:type='a:T'><a:x>1</a:x><a:y><a:k/></a:y><a:n i:nil='true'/></v>",
            r#"Struct([("x", Text("1")), ("y", Struct([("k", Text(""))])), ("n", Nothing)])"#,
        ),
        (
            "<v i:type='a:T'><a:l><a:e>1</a:e><a:e>2</a:e></a:l><a:any i:type='b:int' \
             xmlns:b='http://www.w3.org/2001/XMLSchema'>7</a:any></v>",
            r#"Struct([("l", List([Text("1"), Text("2")])), ("any", Variant((TypedShape(I32), Integer(7))))])"#,
        ),
        (
            "<v i:type='a:ArrayOfT'><a:T><a:x>1</a:x></a:T><a:T><a:y>2</a:y></a:T></v>",
            r#"List([Struct([("x", Text("1")), ("y", Text(""))]), Struct([("x", Text("")), ("y", Text("2"))])])"#,
        ),
        ("<v i:type='a:Color'>Red</v>", r#"Text("Red")"#),
    ] {
        assert_eq!(any(content).as_deref(), Ok(expected), "{content}");
    }
    for (content, why) in [
        ("<v i:type='a:T'><a:x>1</a:x><a:y/><a:x>2</a:x></v>", "lists beside other members"),
        ("<v i:type='a:T'><a:x><a:k>1</a:k></a:x><a:x i:type='a:U'/></v>", "not alike"),
    ] {
        assert!(any(content).unwrap_err().contains(why), "{content}");
    }
    let many: String = (0..300).map(|number| format!("<a:m{number}/>")).collect();
    assert!(any(&format!("<v i:type='a:T'>{many}</v>")).unwrap_err().contains("many members"));
}

#[test]
fn objects_that_are_referred_to_are_read_where_they_are_meant() {
    let leaf = record(&[("x", text())]);
    let pair = || record(&[("a", leaf.clone()), ("b", leaf.clone()), ("c", text())]);
    let one = "<a:a z:Id='i1'><a:x>1</a:x></a:a>";
    let twice =
        r#"Struct([("a", Struct([("x", Text("1"))])), ("b", Struct([("x", Text("1"))])), ("c", Text("2"))])"#;
    for content in [
        format!("<v>{one}<a:b z:Ref='i1' i:nil='true'/><a:c>2</a:c></v>"),
        // In another order, and before what it refers to.
        format!("<v><a:c>2</a:c><a:b z:Ref='i1'></a:b>{one}</v>"),
        format!(
            "<v>{one}<a:b y:Ref='i1' xmlns:y='http://schemas.microsoft.com/2003/10/Serialization/'/><a:c>2</a:c></v>"
        ),
    ] {
        assert_eq!(
            read(pair(), &content).map(|value| format!("{value:?}")).as_deref(),
            Ok(twice),
            "{content}"
        );
    }
    // An attribute of that name, which is another's.
    let other = format!("<v>{one}<a:b a:Ref='i1'><a:x>1</a:x></a:b><a:c>2</a:c></v>");
    assert_eq!(read(pair(), &other).map(|value| format!("{value:?}")).as_deref(), Ok(twice));
    let list = Shape::sequence(leaf.clone());
    let items = format!(
        "<v>{}<a:T z:Ref='i1'/><a:T z:Ref='i1'/><a:T><a:x>3</a:x></a:T></v>",
        one.replace("a:a", "a:T")
    );
    let Ok(Value::List(items)) = read(list, &items) else { panic!("no list") };
    assert_eq!(items.len(), 4);

    for (content, why) in [
        ("<v><a:a z:Ref='i9'/></v>".to_owned(), "not there"),
        ("<v z:Id='i1'><a:a z:Ref='i1'/></v>".to_owned(), "contains itself"),
    ] {
        let failure = read(pair(), &content).unwrap_err();
        assert!(failure.contains(why), "{content}: {failure}");
    }
}

/// A message of a few hundred octets that means 2^20 texts.
#[test]
fn references_to_references_are_bounded() {
    let mut shape = text();
    let mut content = "<a:l z:Id='i0'>ha</a:l>".to_owned();
    let mut fields = vec![("l", text())];
    const NAMES: [&str; 20] =
        ["a", "b", "c", "d", "e", "f", "g", "h", "j", "k", "m", "n", "o", "p", "q", "r", "s", "t", "u", "w"];
    for (number, name) in NAMES.into_iter().enumerate() {
        shape = record(&[("x", shape.clone()), ("y", shape)]);
        fields.push((name, shape.clone()));
        content.push_str(&format!(
            "<a:{name} z:Id='i{}'><a:x z:Ref='i{number}'/><a:y z:Ref='i{number}'/></a:{name}>",
            number + 1
        ));
    }
    let failure = read(record(&fields), &format!("<v>{content}</v>")).unwrap_err();
    assert!(failure.contains(&MAX_REFERENCES.to_string()), "{failure}");
}
