use windlass_cli::{commands::wait::worst, fail::code};

#[test]
fn the_worst_ending_decides() {
    assert_eq!(worst(&[0, 4, 3, 0]), code::FAILED);
    assert_eq!(worst(&[0, 5, 3]), code::TIMEOUT);
    assert_eq!(worst(&[0, 0]), code::OK);
}
