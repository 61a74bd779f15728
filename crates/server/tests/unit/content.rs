use windlass_server::content::disposition;

#[test]
fn a_name_cannot_leave_its_header() {
    for (name, plain) in [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("a\"; filename=\"b", "a__ filename=_b"),
        ("C:\\Windows\\evil.exe", "evil.exe"),
        ("..", "artifact"),
        ("größe.txt", "gr__e.txt"),
    ] {
        let value = disposition(name);
        let text = value.to_str().unwrap();
        assert!(text.starts_with(&format!("attachment; filename=\"{plain}\"; filename*=UTF-8''")), "{text}");
        assert!(!text.contains('\n') && text.is_ascii());
    }
}
