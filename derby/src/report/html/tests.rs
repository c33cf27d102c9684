use super::super::tests::sample;

#[test]
fn the_page_needs_nothing_else() {
    let page = sample().to_html();
    for word in ["http:", "https:", "<script", "@import", "url("] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("class=\"chart\"") && page.contains("prefers-color-scheme"));
}

/// The narrowest screen that the page is made for, in pixels, without the margins of the page.
const NARROW: f64 = 480.0 - 2.0 * 16.0;

#[test]
fn nothing_is_wider_than_a_narrow_screen() {
    // Whatever has a width in pixels, or keeps its text on one line, would make the page scroll or be cut off.
    let css = include_str!("../style.css");
    let declarations = css.split(['{', '}', ';']).map(str::trim);
    let (mut widths, mut unwrapped) = (0, Vec::new());
    for declaration in declarations {
        let Some((property, value)) = declaration.split_once(':') else { continue };
        let pixels = value.split([' ', '(', ')', ',']).filter_map(|word| word.strip_suffix("px"));
        let widest = pixels.filter_map(|number| number.parse().ok()).fold(0.0, f64::max);
        if ["width", "min-width", "flex", "flex-basis", "grid-template-columns"].contains(&property.trim()) {
            widths += 1;
            assert!(widest <= NARROW, "{declaration}");
        }
        if property == "white-space" && value.trim() == "nowrap" {
            unwrapped.push(declaration);
        }
    }
    assert!(widths > 10, "only {widths} widths found");
    // The numbers at the ticks of an axis, which are short.
    assert_eq!(unwrapped.len(), 1, "{unwrapped:?}");
    let page = sample().to_html();
    for style in page.split("style=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(!style.contains("px"), "{style}");
    }
    // A drawing of a fixed size would be scaled until nobody can read it.
    assert!(!page.contains("viewBox") && page.contains("width=device-width"));
}

#[test]
fn labels_and_cells_of_tables_are_whole() {
    let mut report = sample();
    let long =
        "A contestant with a name of many words, over a transport with another, and what it does meanwhile";
    report.rows[1].title = long.into();
    let page = report.to_html();
    assert!(page.contains(&format!("<span class=\"label\">{long}")), "{page}");
    assert!(page.contains(&format!("<td>{long}</td>")), "{page}");
    // On a narrow screen a cell has the title of its column beside it.
    assert!(page.contains("<td data-of=\"median µs\">11.0</td>"), "{page}");
}

#[test]
fn the_story_and_the_verdicts_come_before_any_figure() {
    let mut report = sample();
    report.verdicts = vec!["calls, inout int: who: won.".into()];
    let page = report.to_html();
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part}: {page}"));
    assert!(at("class=\"story\"") < at("<h2>Verdicts</h2>"));
    assert!(at("<b>inout int:</b> who: won.") < at("class=\"card"));
    assert!(at("class=\"card") < at("class=\"chart\""));
    assert!(
        at("<a href=\"#missing\">") < at("class=\"story\"") && at("id=\"missing\"") > at("class=\"chart\"")
    );
}

#[test]
fn text_from_outside_is_escaped() {
    let page = sample().to_html();
    assert!(page.contains("is &lt;not&gt; here") && page.contains("--only &lt;raw&gt;"));
    assert!(!page.contains("<not>"));
}

#[test]
fn every_tag_that_opens_closes() {
    let page = sample().to_html();
    for tag in ["figure", "table", "div", "details", "p", "text", "tr", "td"] {
        let opened = page.matches(&format!("<{tag} ")).count() + page.matches(&format!("<{tag}>")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}
