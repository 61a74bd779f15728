use crate::rules::story::{Story, code, ns, once};
use windlass_core::{
    Progress,
    commands::{holder::Holder, progress::ReportProgress},
};

#[test]
fn progress_is_a_percentage_and_keeps_its_last_words() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(once(1));
    let report = |percent, message: Option<&str>| ReportProgress {
        holder: Holder::lease(&ns(), lease),
        percent,
        message: message.map(Into::into),
    };
    for wrong in [-0.1, 100.1, f64::NAN, f64::INFINITY] {
        assert_eq!(code(&story.run(report(wrong, None))), "invalid", "{wrong}");
    }
    assert_eq!(code(&story.run(report(1.0, Some(&"x".repeat(65_537))))), "too-large");
    story.run(report(10.0, Some("building"))).unwrap();
    story.run(report(20.0, None)).unwrap();
    assert_eq!(story.job(1).live.progress, Some(Progress { percent: 20.0, message: "building".into() }));
    assert_eq!(story.events(Some(1))[2..], ["started", "progress", "progress"]);
}
