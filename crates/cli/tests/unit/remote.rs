use windlass_cli::remote::is_loopback;

#[test]
fn a_local_token_stays_here() {
    for here in ["http://127.0.0.1:3000", "http://localhost/x", "https://[::1]:1", "http://127.8.8.8"] {
        assert!(is_loopback(here), "{here}");
    }
    for away in [
        "http://localhost.example.org",
        "http://127.0.0.1.nip.io:3000",
        "http://127.0.0.1@evil.org/",
        "http://10.0.0.1",
    ] {
        assert!(!is_loopback(away), "{away}");
    }
}
