use windlass_core::Timestamp;
use windlass_server::{
    ask::Params,
    dialects::joblib::{
        body::{LIMIT, paging, time},
        error::HttpError,
    },
};

#[test]
fn times_have_six_digits_and_a_zone() {
    assert_eq!(time(Timestamp(1_763_208_000_123)), "2025-11-15T12:00:00.123000Z");
}

#[test]
fn pages_are_bounded() {
    let paging = |query| paging(&Params::read(query));
    let page = paging("limit=1&limit=0&offset=7").unwrap();
    assert_eq!((page.limit, page.offset), (0, 7));
    assert_eq!(paging("").unwrap().limit, LIMIT);
    let Err(HttpError::Invalid(faults)) = paging("limit=501&offset=-1") else { panic!("taken") };
    assert_eq!(faults.len(), 2);
}
