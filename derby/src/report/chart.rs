//! Charts of plain elements, placed in percent: nothing is fetched and nothing is scripted. Letters
//! keep their size however narrow the page is, and labels wrap, so none is cut off. Colours come from
//! the page's style sheet, so that one chart serves light, dark and paper.
//!
//! A chart is an axis and one strip for each row: label, value as text, and a plot in which marks have
//! a place and a width in percent. Positions are computed here, all the rest is the style sheet's.
//!
//! Invariants: text is escaped when it is put in. Every value also stands as text beside its strip. A
//! chart without a value that can be shown is an empty string.

use super::markup::escape;
use super::short;
use std::fmt::Write;

/// A line of a chart. All numbers are in the unit of the chart.
pub(super) struct Strip {
    /// What it is about.
    pub(super) label: String,
    /// A few words below the label.
    pub(super) note: String,
    /// Class that gives the colour: `ours`, `raw`, `rival` or `past`.
    pub(super) class: &'static str,
    /// The value.
    pub(super) value: f64,
    /// Its confidence interval, or the middle half of the calls, as the caption says.
    pub(super) interval: Option<(f64, f64)>,
    /// A thin line up to here.
    pub(super) tail: Option<f64>,
    /// On a logarithmic scale small marks of what belongs to the value; in bars the parts that it is
    /// the sum of.
    pub(super) companions: Vec<f64>,
    /// What to write beside the value.
    pub(super) text: String,
}

/// A column of labels or of values is at the most so much of a wide chart, in percent: longer text wraps.
const MOST_LABEL: usize = 36;
const MOST_VALUE: usize = 20;

/// The widths of the columns of labels and of values, in `ch` of the page's font: as wide as the
/// longest text needs.
fn columns(strips: &[Strip]) -> String {
    let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let label = longest(
        // A note is in smaller letters.
        &mut strips.iter().map(|s| s.label.chars().count().max(s.note.chars().count() * 5 / 6)),
    );
    let value = longest(&mut strips.iter().map(|strip| strip.text.chars().count()));
    format!(
        "--label:min({MOST_LABEL}%,{}ch);--value:min({MOST_VALUE}%,{}ch)",
        label.max(12) + 2,
        value.max(6) + 2
    )
}

/// Values on a logarithmic scale: a mark for each, its interval as a bar, a thin line to the tail; a dashed line at `reference`.
pub(super) fn dots(title: &str, unit: &str, reference: Option<f64>, strips: &[Strip]) -> String {
    let all = strips.iter().flat_map(|strip| {
        let interval = strip.interval.map(|(low, high)| [low, high]).unwrap_or([strip.value; 2]);
        strip
            .companions
            .iter()
            .copied()
            .chain(interval)
            .chain([strip.value, strip.tail.unwrap_or(strip.value)])
    });
    let positive: Vec<f64> = all.chain(reference).filter(|value| *value > 0.0 && value.is_finite()).collect();
    let low = positive.iter().copied().fold(f64::INFINITY, f64::min).log10();
    let high = positive.iter().copied().fold(0.0, f64::max).log10();
    if strips.is_empty() || !low.is_finite() || !high.is_finite() {
        return String::new();
    }
    // A little room at both ends, and never less than a third of a decade, or one value alone would
    // fill the chart.
    let (low, high) = (low - 0.05, (high + 0.05).max(low + 0.3));
    let x = |value: f64| (value.max(1e-9).log10() - low) / (high - low) * 100.0;
    let mut out = open(title, strips);
    // The text of the reference needs the room of its neighbours.
    let near = |tick: f64| reference.is_some_and(|reference| (x(tick) - x(reference)).abs() < 6.0);
    let ticks = ticks(low, high);
    // Where one power is all that there is, it alone says nothing of the scale.
    let powers = ticks.iter().filter(|tick| is_power(**tick)).count() > 1;
    for tick in ticks.into_iter().filter(|tick| !near(*tick)) {
        let kind = if is_power(tick) || !powers { "" } else { " between" };
        axis(&mut out, x(tick), &format!("{}{unit}", plain(tick)), kind);
    }
    if let Some(reference) = reference {
        axis(&mut out, x(reference), &format!("{}{unit}", plain(reference)), " reference");
    }
    out.push_str("</div>");
    for strip in strips {
        strip_open(&mut out, strip);
        if let Some(tail) = strip.tail {
            mark(&mut out, "tail", x(strip.value), Some(x(tail)));
        }
        for &companion in &strip.companions {
            mark(&mut out, "companion", x(companion), None);
        }
        if let Some((from, to)) = strip.interval {
            mark(&mut out, "interval", x(from), Some(x(to)));
        }
        mark(&mut out, "dot", x(strip.value), None);
        out.push_str("</div></div>");
    }
    out.push_str("</div>");
    out
}

/// Values as bars from zero.
pub(super) fn bars(title: &str, unit: &str, strips: &[Strip]) -> String {
    let most =
        strips.iter().map(|strip| strip.interval.map_or(strip.value, |(_, high)| high)).fold(0.0, f64::max);
    if most <= 0.0 || !most.is_finite() {
        return String::new();
    }
    let step = nice(most / 5.0);
    let most = (most / step).ceil() * step;
    let x = |value: f64| value / most * 100.0;
    let mut out = open(title, strips);
    let mut tick = 0.0;
    let mut even = true;
    while tick <= most + step / 2.0 {
        axis(&mut out, x(tick), &format!("{}{unit}", plain(tick)), if even { "" } else { " between" });
        tick += step;
        even = !even;
    }
    out.push_str("</div>");
    for strip in strips {
        strip_open(&mut out, strip);
        let mut from = 0.0;
        // With companions a bar is made of parts: the value is their sum.
        let parts: Vec<f64> =
            if strip.companions.is_empty() { vec![strip.value] } else { strip.companions.clone() };
        for (part, value) in parts.iter().enumerate() {
            mark(&mut out, &format!("bar part{part}"), x(from), Some(x(from + value)));
            from += value;
        }
        out.push_str("</div></div>");
    }
    out.push_str("</div>");
    out
}

/// A chart up to its axis, which stays open for the ticks.
fn open(title: &str, strips: &[Strip]) -> String {
    format!(
        r#"<div class="chart" role="group" aria-label="{}" style="{}"><div class="axis" aria-hidden="true">"#,
        escape(title),
        columns(strips)
    )
}

/// A tick: a line through the chart and its text on top.
fn axis(out: &mut String, x: f64, text: &str, kind: &str) {
    let last = if x > 95.0 { " last" } else { "" };
    let _ = write!(out, r#"<i class="tick{kind}{last}" style="left:{x:.2}%"><b>{}</b></i>"#, escape(text));
}

/// A strip up to its plot, which stays open for the marks.
fn strip_open(out: &mut String, strip: &Strip) {
    let note =
        if strip.note.is_empty() { String::new() } else { format!("<small>{}</small>", escape(&strip.note)) };
    let _ = write!(
        out,
        r#"<div class="strip {}"><span class="label">{}{note}</span><span class="value">{}</span><div class="plot">"#,
        strip.class,
        escape(&strip.label),
        escape(&strip.text)
    );
}

/// A mark in percent of the plot, or one from here to there.
fn mark(out: &mut String, kind: &str, from: f64, to: Option<f64>) {
    let width = to.map(|to| format!(";width:{:.2}%", (to - from).max(0.0))).unwrap_or_default();
    let _ = write!(out, r#"<i class="{kind}" style="left:{from:.2}%{width}"></i>"#);
}

/// Whether a tick is a power of ten.
fn is_power(tick: f64) -> bool {
    (tick.log10() - tick.log10().round()).abs() < 1e-9
}

/// 1, 2 and 5 times the powers of ten between the two logarithms; only the powers where that would be too many, and more where those
/// would be too few.
#[allow(clippy::cast_possible_truncation)]
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = match high - low {
        range if range > 2.2 => &[1.0],
        range if range > 0.5 => &[1.0, 2.0, 5.0],
        _ => &[1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
    };
    let decades = low.floor() as i32..=high.ceil() as i32;
    let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
    all.filter(|tick| (low..=high).contains(&tick.log10())).collect()
}

/// The next larger of 1, 2, 2.5, 5 and 10 times a power of ten.
fn nice(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .iter()
        .map(|step| step * power)
        .find(|step| *step >= value)
        .unwrap_or(10.0 * power)
}

/// A number of an axis, without zeros at its end.
fn plain(value: f64) -> String {
    let text = if value >= 1.0 || value == 0.0 { format!("{value}") } else { short(value) };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(value: f64) -> Strip {
        Strip {
            label: "a < b".into(),
            note: String::new(),
            class: "ours",
            value,
            interval: Some((value * 0.9, value * 1.1)),
            tail: Some(value * 3.0),
            companions: vec![value],
            text: short(value),
        }
    }

    fn bare(value: f64) -> Strip {
        Strip { interval: None, tail: None, ..strip(value) }
    }

    /// Where the marks of a kind are, in percent.
    fn lefts(chart: &str, kind: &str) -> Vec<f64> {
        let begin = format!("<i class=\"{kind}\" style=\"left:");
        chart.split(&begin).skip(1).map(|part| part.split('%').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn a_logarithmic_axis_places_equal_ratios_at_equal_distances() {
        let strips = [0.5, 1.0, 2.0, 4.0, 40.0].map(strip);
        let chart = dots("x", " ×", Some(1.0), &strips);
        let (at, reference) = (lefts(&chart, "dot"), lefts(&chart, "tick reference"));
        let doubling = at[1] - at[0];
        assert!(doubling > 5.0, "{chart}");
        assert!((at[2] - at[1] - doubling).abs() < 0.03 && (at[3] - at[2] - doubling).abs() < 0.03, "{at:?}");
        assert!((at[4] - at[3] - doubling * 10f64.log2()).abs() < 0.1, "{at:?}");
        // What is as fast as raw bytes stands on the line that says so, and the line has its number.
        assert!(reference.len() == 1 && (reference[0] - at[1]).abs() < 0.01, "{reference:?} {at:?}");
        assert!(chart.contains("<b>1 ×</b>"), "{chart}");
        for tick in lefts(&chart, "tick") {
            assert!((tick - reference[0]).abs() > 5.0, "{chart}");
        }
    }

    #[test]
    fn marks_stay_inside_the_chart() {
        let chart = dots("x", " us", Some(1.0), &[strip(0.003), strip(68.0)]);
        for kind in ["dot", "companion", "interval", "tail", "tick", "tick reference"] {
            let at = lefts(&chart, kind);
            assert!(!at.is_empty() && at.iter().all(|x| (0.0..=100.0).contains(x)), "{kind}: {at:?}");
        }
        for part in chart.split("left:").skip(1).filter(|part| part.contains(";width:")) {
            let mut numbers = part.split(['%', ':']).filter_map(|word| word.parse::<f64>().ok());
            let (left, width) = (numbers.next().unwrap(), numbers.next().unwrap_or(0.0));
            assert!(left + width <= 100.01, "{left} {width}");
        }
        assert!(chart.contains("a &lt; b"));
    }

    #[test]
    fn labels_are_whole_and_columns_are_parts_of_the_chart() {
        let mut long = strip(1.0);
        long.label = "Mono WCF, BasicHttp, as shipped (sleeps up to 100 ms before each accept)".into();
        long.text = "123 us, 1,234,567 signals/s, and then some".into();
        let (label, text) = (long.label.clone(), long.text.clone());
        let chart = dots("x", "", None, &[strip(2.0), long]);
        assert!(chart.contains(&label) && chart.contains(&text), "{chart}");
        // Never wider than its part of the chart, never wider than what it has to hold.
        assert!(chart.contains("--label:min(36%,74ch);--value:min(20%,44ch)"), "{chart}");
        assert!(columns(&[strip(2.0)]).contains("--label:min(36%,14ch)"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(dots("x", "", None, &[]), "");
        assert_eq!(bars("x", "", &[]), "");
    }

    #[test]
    fn steps_are_round() {
        assert_eq!([0.3, 1.0, 7.0, 23.0].map(nice), [0.5, 1.0, 10.0, 25.0]);
        assert_eq!(ticks(0.9, 2.1), [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(ticks(-3.0, 1.0).len(), 5);
        assert_eq!(ticks(-0.05, 0.25), [0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.7]);
    }

    #[test]
    fn a_narrow_range_has_more_than_one_number() {
        // Hops that need 1.01 to 1.25 of the forwarder's CPU: on a narrow page, too, two numbers make the scale.
        let chart = dots("x", " ×", Some(1.0), &[1.01, 1.1, 1.25].map(bare));
        assert!(lefts(&chart, "tick").len() > 1 && !chart.contains("between"), "{chart}");
    }

    #[test]
    fn numbers_at_the_end_of_an_axis_are_known_to_be_there() {
        let chart = bars("x", " µs", &[strip(3357.0)]);
        assert!(chart.contains("last\" style=\"left:100.00%\"><b>4000 µs</b>"), "{chart}");
    }
}
