use std::collections::BTreeMap;
use windlass_worker::guard::Left;

#[test]
fn what_ended_is_left_alone() {
    let told = "? a\n+ 20 a\n? b\n+ 30 b\n- 20\n+ 0 x\n+ 1 y\ngarbage\n? d\n? c\n+ 40 c\n? e\n! e\n! f\n";
    let groups = BTreeMap::from([(30, "b".to_owned()), (40, "c".to_owned())]);
    let starting = BTreeMap::from([("d".to_owned(), 1)]);
    assert_eq!(Left::read(told.as_bytes()), Left { groups, starting });
}
