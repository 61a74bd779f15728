use windlass_core::principal::Role;
use windlass_server::secret::{Secret, draw_token, prefix, shown};

#[test]
fn tokens_are_long_fresh_and_recognisable() {
    for role in [Role::Admin, Role::Editor, Role::Viewer, Role::Worker] {
        let (one, two) = (draw_token(role), draw_token(role));
        assert!(one.reveal().starts_with(prefix(role)) && one != two);
        assert_eq!(one.reveal().len(), prefix(role).len() + 43);
        assert_eq!(shown(&one), one.reveal()[..prefix(role).len() + 4]);
    }
    assert_eq!(shown(&Secret::new("correct horse")), "corr");
}
