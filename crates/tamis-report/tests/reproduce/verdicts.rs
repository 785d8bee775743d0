//! What a row may be called: nothing is confirmed without a comparison, no erratum without evidence, and no agreement counts
//! that a wrong prediction would have had too.

use tamis_report::reproduce::{Claim, Estimate, Line, POWER, Printed, Row, Unit, Verdict};

fn row() -> Row {
    Row::new("row")
}

fn about(value: f64) -> Estimate {
    Estimate::about(value, 0.01 * value)
}

#[test]
fn a_number_alone_confirms_nothing() {
    assert_eq!(row().predicted(1.0).verdict(), Verdict::Stated);
    assert_eq!(row().measured(about(1.0)).verdict(), Verdict::Stated);
    // Printed and predicted may be the same mistake.
    assert_eq!(row().printed("1.0").predicted(1.0).verdict(), Verdict::Stated);
    assert_eq!(
        row().claims("at most 2", Claim::AtMost(2.0)).predicted(1.0).verdict(),
        Verdict::Stated
    );
    assert_eq!(row().printed("1.0").predicted(1.2).verdict(), Verdict::Differs);
    assert_eq!(row().verdict(), Verdict::Differs);
}

#[test]
fn prediction_and_evidence_confirm() {
    let both = || row().predicted(1.0).measured(about(1.001));
    assert_eq!(both().verdict(), Verdict::Recomputed);
    assert_eq!(both().printed("1.0").verdict(), Verdict::Reproduced);
    assert_eq!(both().printed("1.3").verdict(), Verdict::Differs);
    let far = || row().predicted(1.0).measured(about(1.02));
    assert_eq!(far().verdict(), Verdict::Differs);
    assert_eq!(far().slack(0.015, "known to be off").verdict(), Verdict::Recomputed);
    assert_eq!(
        row().predicted(1.0).checked(Estimate::exact(1.0), "again").verdict(),
        Verdict::Recomputed
    );
    // What the source measured need only lie in our interval.
    let ours = row().predicted(1.0).measured(Estimate::about(1.0, 0.02));
    assert_eq!(ours.clone().sampled("1.015").verdict(), Verdict::Reproduced);
    assert_eq!(ours.printed("1.015").verdict(), Verdict::Differs);
}

#[test]
fn an_erratum_needs_evidence() {
    let wrong = || row().printed("1.3").predicted(1.0).erratum("because");
    assert_eq!(wrong().verdict(), Verdict::Stated, "any wrong prediction would confirm it");
    assert_eq!(wrong().measured(about(1.0)).verdict(), Verdict::Erratum);
    assert_eq!(wrong().checked(Estimate::exact(1.0), "again").verdict(), Verdict::Erratum);
    assert_eq!(wrong().measured(Estimate::about(1.0, 0.4)).verdict(), Verdict::Weak);
    assert_eq!(wrong().measured(about(1.3)).verdict(), Verdict::Differs);
    // What is said to be wrong comes out.
    assert_eq!(
        row().printed("1.0").predicted(1.0).measured(about(1.0)).erratum("because").verdict(),
        Verdict::Differs
    );
    let claim = |value| {
        row().claims("two", Claim::AtLeast(2.0)).measured(about(value)).erratum("because").verdict()
    };
    assert_eq!(claim(1.9), Verdict::Erratum);
    assert_eq!(claim(1.99), Verdict::Weak);
    assert_eq!(claim(2.1), Verdict::Differs);
}

#[test]
fn one_sided_rows_have_a_verdict_of_their_own() {
    let at_most = |bound| {
        row().claims("few", Claim::AtMost(bound)).predicted(1.0).measured(about(1.0)).verdict()
    };
    assert_eq!(at_most(1.1), Verdict::Bounded);
    assert_eq!(at_most(1.005), Verdict::Weak, "the interval reaches to both sides");
    assert_eq!(at_most(0.9), Verdict::Differs);
    let own = row().bounded(Claim::Between(0.5, 2.0)).predicted(1.0).measured(about(1.0));
    assert_eq!(own.verdict(), Verdict::Bounded);
    assert_eq!(own.compared(), ["bound", "predicted", "measured"]);
}

#[test]
fn power_is_stated_and_counts() {
    let with = |error: f64| row().predicted(2.0).measured(Estimate::about(2.0, error));
    let near = |value: Option<f64>, wanted: f64| {
        assert!((value.unwrap() / wanted - 1.0).abs() < 1e-6, "{value:?} {wanted}");
    };
    near(with(0.05).detects(), 0.05);
    near(with(0.05).slack(0.03, "known").detects(), 0.08);
    near(with(0.05).required(), 2.0 * POWER);
    assert_eq!(with(0.05).verdict(), Verdict::Recomputed);
    assert_eq!(with(0.05).slack(0.03, "known").verdict(), Verdict::Weak);
    assert_eq!(with(0.1).verdict(), Verdict::Weak);
    assert_eq!(with(0.1).printed("2").verdict(), Verdict::Weak);
    assert_eq!(with(0.1).unit(Unit::Of(10.0)).verdict(), Verdict::Recomputed);
    assert_eq!(with(0.1).unit(Unit::Rare).verdict(), Verdict::Recomputed);
    // 0.01 in the logarithm of a rate are 2.3%.
    assert_eq!(with(0.01).unit(Unit::Log10).verdict(), Verdict::Recomputed);
    assert_eq!(with(0.02).unit(Unit::Log10).verdict(), Verdict::Weak);
    // A prediction that is off by more than what is noticed is noticed.
    let noticed = with(0.05).detects().unwrap();
    assert_eq!(
        row().predicted(2.0 + 1.01 * noticed).measured(Estimate::about(2.0, 0.05)).verdict(),
        Verdict::Differs
    );
}

#[test]
fn lines_say_what_was_compared() {
    let row = row()
        .printed("1.0")
        .predicted(1.0)
        .checked(Estimate::about(1.0, 0.01), "by counting")
        .slack(0.005, "because");
    let line = Line::new("000", "Table", &row);
    assert_eq!(line.printed, Some(Printed::Number(1.0)));
    assert_eq!((line.measured, line.checked), (None, Some(1.0)));
    assert_eq!((line.low, line.high, line.slack), (Some(0.99), Some(1.01), 0.005));
    assert_eq!(line.compared, ["printed", "predicted", "checked"]);
    assert_eq!((line.slack_reason, line.computation), (Some("because"), Some("by counting")));
    let text = serde_json::to_value(&line).unwrap();
    assert!((text["detects"].as_f64().unwrap() - 0.015).abs() < 1e-6);
    assert_eq!(text["verdict"], "reproduced");
    assert!(Line::new("000", "Table", &Row::new("alone").predicted(1.0)).compared.is_empty());
}
