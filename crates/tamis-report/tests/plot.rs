//! Plots: places, ticks, hover, and no harm from values that cannot be drawn.

use tamis_report::plot::{Axis, Mark, Plot, Point, Series};

fn lines() -> Plot {
    let rates: Vec<f64> = (1..=7).map(|power| 10_f64.powi(-power)).collect();
    let bits = |factor: f64| rates.iter().map(move |&rate| (rate, -rate.log2() * factor));
    let measured = rates.iter().map(|&rate| Point {
        x: rate,
        y: -rate.log2() * 1.2,
        interval: Some((-rate.log2() * 1.1, -rate.log2() * 1.3)),
    });
    Plot::new("Bits & rates", Axis::log("rate"), Axis::linear("memory, bits per key"))
        .with(Series::line("information bound", bits(1.0)))
        .with(Series::line("bloom", bits(1.0 / 2_f64.ln())).marked(Mark::Ring))
        .with(Series::marks("measured <here>", measured))
        .with(Series::level("a level", 12.0).dashed(1))
}

/// Every element that opens also closes.
fn is_balanced(svg: &str) -> bool {
    ["svg", "text", "title", "circle", "style"].iter().all(|tag| {
        let opened = svg.matches(&format!("<{tag}")).count();
        opened == svg.matches(&format!("</{tag}>")).count()
    })
}

#[test]
fn a_plot_has_axes_a_legend_and_values_on_hover() {
    let svg = lines().svg();
    assert!(is_balanced(&svg), "{svg}");
    for text in ["Bits &amp; rates", "measured &lt;here&gt;", "memory, bits per key", "10⁻⁵"] {
        assert!(svg.contains(text), "{text} is missing in {svg}");
    }
    assert!(svg.contains("<title>bloom: 9.585 at 0.01</title>"), "{svg}");
    assert!(svg.contains("interval 7.308 to 8.637"), "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("=\"inf"), "{svg}");
}

#[test]
fn what_stands_in_a_page_has_no_style_of_its_own() {
    let svg = lines().inline();
    assert!(is_balanced(&svg));
    assert!(!svg.contains("<style") && !svg.contains("xmlns"));
}

#[test]
fn what_cannot_be_drawn_is_left_out() {
    let odd = [(0.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (2.0, 0.0)];
    for points in [&odd[..], &[], &[(1.0, 1.0)]] {
        for (across, up) in [
            (Axis::log("x"), Axis::log("y")),
            (Axis::linear("x"), Axis::linear("y")),
            (Axis::linear("x").over(0.0, 3.0), Axis::log("y").over(1e-9, 1e9)),
        ] {
            let plot = Plot::new("odd", across, up).with(Series::line("odd", points.to_vec()));
            let svg = plot.svg();
            assert!(is_balanced(&svg));
            assert!(!svg.contains("NaN") && !svg.contains("=\"inf"), "{svg}");
        }
    }
}

#[test]
fn lines_stay_inside_and_the_legend_below() {
    let svg = lines().svg();
    let places = svg.split(r#"cy=""#).skip(1).map(|rest| rest.split('"').next().unwrap());
    let ys: Vec<f64> = places.map(|y| y.parse().unwrap()).collect();
    // Marks of the plot and of the legend: none in between, where the axis has its names.
    assert!(ys.iter().all(|&y| (44.0..=304.0).contains(&y) || y > 350.0), "{ys:?}");
}
