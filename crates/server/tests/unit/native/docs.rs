use windlass_server::{native::docs::error_page, problem::Code};

#[test]
fn every_error_has_its_anchor_and_nothing_comes_from_elsewhere() {
    let page = error_page();
    for code in Code::ALL {
        assert!(page.contains(&format!("<section id=\"{}\">", code.name())), "{code:?}");
    }
    let all = [
        &page,
        include_str!("../../../src/docs/docs.html"),
        include_str!("../../../src/docs/docs.js"),
        include_str!("../../../src/docs/docs.css"),
    ];
    for text in all {
        assert!(!text.contains("//cdn") && !text.contains("src=\"http") && !text.contains("href=\"http"));
        assert!(!text.contains("innerHTML"), "texts are never taken for markup");
    }
}
