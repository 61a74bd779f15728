use windlass_core::principal::Role;

#[test]
fn roles_include_the_lower_ones_and_workers_stand_apart() {
    use Role::*;
    let table = [
        (Viewer, Viewer, true),
        (Viewer, Editor, false),
        (Editor, Viewer, true),
        (Editor, Admin, false),
        (Admin, Viewer, true),
        (Admin, Worker, false),
        (Worker, Viewer, false),
        (Worker, Worker, true),
    ];
    for (have, needed, passes) in table {
        assert_eq!(have.includes(needed), passes, "{have:?} for {needed:?}");
    }
}
