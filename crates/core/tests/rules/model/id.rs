use uuid::Uuid;
use windlass_core::{JobId, LeaseId};

#[test]
fn a_lease_survives_its_text_form() {
    let lease = LeaseId::new(JobId::from_u128(7), Uuid::from_u128(9));
    assert_eq!(lease.to_string().len(), 64);
    assert_eq!(lease.to_string().parse::<LeaseId>().unwrap(), lease);
}

#[test]
fn a_lease_is_never_printed_whole() {
    let lease = LeaseId::new(JobId::from_u128(7), Uuid::from_u128(0xfeed));
    assert!(!format!("{lease:?}").contains("feed"));
}

#[test]
fn odd_texts_are_no_leases() {
    for text in ["", "x", "00000000000000000000000000000007", "é".repeat(32).as_str()] {
        assert!(text.parse::<LeaseId>().is_err(), "{text}");
    }
}
