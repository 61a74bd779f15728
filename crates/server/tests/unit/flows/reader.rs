use windlass_server::flows::reader::{marked, unmarked};

#[test]
fn a_mark_is_taken_off_and_plans_without_one_stay_as_they_are() {
    assert_eq!(unmarked(&marked("other", "{\"a\":1}")), "{\"a\":1}");
    assert_eq!(unmarked("{\"source\":\"\"}"), "{\"source\":\"\"}");
}
