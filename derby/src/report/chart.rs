//! Charts in SVG, drawn by hand: nothing is fetched and nothing is scripted. Colours come from the page's style sheet,
//! so that one drawing serves light, dark and paper.

use super::short;
use std::fmt::Write;

/// A line of a chart.
pub(super) struct Strip {
    /// What it is about.
    pub(super) label: String,
    /// A few words below the label.
    pub(super) note: String,
    /// Class that gives the colour: `ours`, `raw`, `rival` or `past`.
    pub(super) class: &'static str,
    /// The value.
    pub(super) value: f64,
    /// Its confidence interval, or whatever interval is of interest.
    pub(super) interval: Option<(f64, f64)>,
    /// A thin line up to here.
    pub(super) tail: Option<f64>,
    /// Small marks: what goes with the value.
    pub(super) companions: Vec<f64>,
    /// What to write beside the value.
    pub(super) text: String,
}

/// Between the labels and the values.
const PLOT: f64 = 650.0;
/// A letter of a label, of a note and of a value is at the most this wide, nearly always: as wide as in the style sheet's fonts.
const LETTER: f64 = 7.4;
const SMALL_LETTER: f64 = 6.1;
const GAP: f64 = 16.0;
const LINE: f64 = 33.0;
const TOP: f64 = 26.0;

/// How wide the parts of a chart are: no label and no value is cut off.
#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    width: f64,
}

impl Frame {
    #[allow(clippy::cast_precision_loss)]
    fn of(strips: &[Strip]) -> Self {
        let wide = |text: &str, letter: f64| text.chars().count() as f64 * letter + GAP;
        let widest = |least: f64, all: &mut dyn Iterator<Item = f64>| all.fold(least, f64::max);
        let labels =
            &mut strips.iter().map(|strip| wide(&strip.label, LETTER).max(wide(&strip.note, SMALL_LETTER)));
        let left = widest(120.0, labels);
        let right = widest(80.0, &mut strips.iter().map(|strip| wide(&strip.text, LETTER) + GAP));
        Self { left, width: left + PLOT + right }
    }

    /// Where the values stand.
    fn end(self) -> f64 {
        self.left + PLOT
    }
}

/// Values on a logarithmic scale: a mark for each, its interval as a bar, a thin line to the tail; a dashed line at `reference`.
pub(super) fn dots(title: &str, unit: &str, reference: Option<f64>, strips: &[Strip]) -> String {
    let frame = Frame::of(strips);
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
    if !low.is_finite() || !high.is_finite() {
        return String::new();
    }
    let (low, high) = (low - 0.05, (high + 0.05).max(low + 0.3));
    let x = |value: f64| frame.left + (value.max(1e-9).log10() - low) / (high - low) * PLOT;
    let mut out = open(title, frame, strips.len());
    for tick in ticks(low, high) {
        axis(&mut out, x(tick), &format!("{}{unit}", plain(tick)), strips.len());
    }
    if let Some(reference) = reference {
        dashed(&mut out, x(reference), strips.len());
    }
    for (i, strip) in strips.iter().enumerate() {
        let y = label(&mut out, frame, i, strip);
        if let Some(tail) = strip.tail {
            let _ = write!(
                out,
                r#"<line class="tail {}" x1="{:.1}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}"/>"#,
                strip.class,
                x(strip.value),
                x(tail)
            );
            let _ = write!(
                out,
                r#"<line class="tail {}" x1="{1:.1}" y1="{2:.1}" x2="{1:.1}" y2="{3:.1}"/>"#,
                strip.class,
                x(tail),
                y - 4.0,
                y + 4.0
            );
        }
        for &companion in &strip.companions {
            let _ = write!(
                out,
                r#"<circle class="companion {}" cx="{:.1}" cy="{y:.1}" r="3"/>"#,
                strip.class,
                x(companion)
            );
        }
        if let Some((from, to)) = strip.interval {
            let (from, to) = (x(from), x(to));
            let _ = write!(
                out,
                r#"<rect class="interval {}" x="{:.1}" y="{:.1}" width="{:.1}" height="12" rx="3"/>"#,
                strip.class,
                from - 1.0,
                y - 6.0,
                (to - from + 2.0).max(2.0)
            );
        }
        let _ = write!(
            out,
            r#"<circle class="dot {}" cx="{:.1}" cy="{y:.1}" r="6"/>"#,
            strip.class,
            x(strip.value)
        );
        aside(&mut out, frame, y, &strip.text);
    }
    out.push_str("</svg>");
    out
}

/// Values as bars from zero.
pub(super) fn bars(title: &str, unit: &str, strips: &[Strip]) -> String {
    let frame = Frame::of(strips);
    let most =
        strips.iter().map(|strip| strip.interval.map_or(strip.value, |(_, high)| high)).fold(0.0, f64::max);
    if most <= 0.0 || !most.is_finite() {
        return String::new();
    }
    let step = nice(most / 5.0);
    let most = (most / step).ceil() * step;
    let x = |value: f64| frame.left + value / most * PLOT;
    let mut out = open(title, frame, strips.len());
    let mut tick = 0.0;
    while tick <= most + step / 2.0 {
        axis(&mut out, x(tick), &format!("{}{unit}", plain(tick)), strips.len());
        tick += step;
    }
    for (i, strip) in strips.iter().enumerate() {
        let y = label(&mut out, frame, i, strip);
        let mut from = 0.0;
        // With companions a bar is made of parts: the value is their sum.
        let parts: Vec<f64> =
            if strip.companions.is_empty() { vec![strip.value] } else { strip.companions.clone() };
        for (part, value) in parts.iter().enumerate() {
            let _ = write!(
                out,
                r#"<rect class="bar part{part} {}" x="{:.1}" y="{:.1}" width="{:.1}" height="16" rx="2"/>"#,
                strip.class,
                x(from),
                y - 8.0,
                (x(from + value) - x(from)).max(0.5)
            );
            from += value;
        }
        if let Some((low, high)) = strip.interval {
            let _ = write!(
                out,
                r#"<line class="whisker" x1="{:.1}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}"/>"#,
                x(low),
                x(high)
            );
        }
        aside(&mut out, frame, y, &strip.text);
    }
    out.push_str("</svg>");
    out
}

#[allow(clippy::cast_precision_loss)]
fn height(strips: usize) -> f64 {
    TOP + LINE * strips as f64 + 8.0
}

fn open(title: &str, frame: Frame, strips: usize) -> String {
    format!(
        r#"<svg viewBox="0 0 {:.0} {:.0}" role="img" aria-label="{title}"><title>{title}</title>"#,
        frame.width,
        height(strips),
        title = escape(title)
    )
}

fn dashed(out: &mut String, x: f64, strips: usize) {
    let bottom = height(strips) - 4.0;
    let _ = write!(out, r#"<line class="reference" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{bottom:.1}"/>"#);
}

fn axis(out: &mut String, x: f64, text: &str, strips: usize) {
    let bottom = height(strips) - 4.0;
    let _ = write!(out, r#"<line class="grid" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{bottom:.1}"/>"#);
    let _ = write!(out, r#"<text class="tick" x="{x:.1}" y="{:.1}">{}</text>"#, TOP - 9.0, escape(text));
}

#[allow(clippy::cast_precision_loss)]
fn label(out: &mut String, frame: Frame, i: usize, strip: &Strip) -> f64 {
    let y = TOP + LINE * (i as f64 + 0.5);
    let up = if strip.note.is_empty() { 4.0 } else { -1.0 };
    let _ = write!(
        out,
        r#"<text class="label" x="{:.1}" y="{:.1}">{}</text>"#,
        frame.left - GAP + 2.0,
        y + up,
        escape(&strip.label)
    );
    if !strip.note.is_empty() {
        let _ = write!(
            out,
            r#"<text class="note" x="{:.1}" y="{:.1}">{}</text>"#,
            frame.left - GAP + 2.0,
            y + 12.0,
            escape(&strip.note)
        );
    }
    y
}

fn aside(out: &mut String, frame: Frame, y: f64, text: &str) {
    let _ = write!(
        out,
        r#"<text class="value" x="{:.1}" y="{:.1}">{}</text>"#,
        frame.end() + GAP,
        y + 4.0,
        escape(text)
    );
}

/// 1, 2 and 5 times the powers of ten between the two logarithms; only the powers where that would be too many.
#[allow(clippy::cast_possible_truncation)]
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = if high - low > 2.2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let decades = low.floor() as i32..=high.ceil() as i32;
    let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
    all.filter(|tick| (low..=high).contains(&tick.log10())).collect()
}

/// The next of 1, 2, 2.5 and 5 times a power of ten.
fn nice(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .iter()
        .map(|step| step * power)
        .find(|step| *step >= value)
        .unwrap_or(10.0 * power)
}

fn plain(value: f64) -> String {
    let text = if value >= 1.0 || value == 0.0 { format!("{value}") } else { short(value) };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Text for markup.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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

    #[test]
    fn marks_stay_inside_the_drawing() {
        let strips = [strip(0.003), strip(68.0)];
        let (svg, frame) = (dots("x", " us", Some(1.0), &strips), Frame::of(&strips));
        for part in svg.split("cx=\"").skip(1) {
            let x: f64 = part.split('"').next().unwrap().parse().unwrap();
            assert!((frame.left..=frame.end()).contains(&x), "{x}");
        }
        assert!(svg.contains("a &lt; b") && svg.contains("class=\"reference\""));
    }

    #[test]
    fn the_longest_label_has_room() {
        let mut long = strip(1.0);
        long.label = "Mono WCF, BasicHttp, as shipped (sleeps up to 100 ms before each accept)".into();
        long.text = "123 us, 1,234,567 signals/s, and then some".into();
        let frame = Frame::of(&[strip(2.0), long]);
        assert!(frame.left > 72.0 * 7.0 && frame.width - frame.end() > 42.0 * 7.0, "{}", frame.width);
        assert!(Frame::of(&[strip(2.0)]).left < 200.0);
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
    }
}
