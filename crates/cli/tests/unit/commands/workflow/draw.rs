use super::layout::graph;
use windlass_cli::commands::workflow::draw::{dot, svg, text};

#[test]
fn text_says_what_waits_for_what() {
    let diamond = graph(&["top", "left", "right", "end"], &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    let expected = "  1  ✓ top    completed 1.2s\n  2  ✓ left   completed 1.2s  after top\n  2  ✓ right  completed 1.2s  after top\n  3  ✓ end    completed 1.2s  after left, right";
    assert_eq!(text(&diamond), expected);
    assert_eq!(text(&graph(&[], &[])), "The run has no steps yet.");
}

#[test]
fn names_cannot_break_out_of_a_drawing() {
    let nasty = graph(&["<script>\"&'\u{1b}", "a\\\"b]; n0 -> n1"], &[(0, 1)]);
    let picture = svg(&nasty);
    assert!(!picture.contains("<script") && !picture.contains('\u{1b}'), "{picture}");
    assert!(picture.contains("&lt;script&gt;&quot;&amp;&#39;\u{fffd}"));
    assert_eq!(picture.matches("<rect").count(), 3, "the ground and two boxes");
    assert_eq!(picture.matches("<path").count(), 1);
    assert!(dot(&nasty).contains(r#"label="a\\\"b]; n0 -> n1""#), "{}", dot(&nasty));
    assert!(!text(&nasty).contains('\u{1b}'));
}
