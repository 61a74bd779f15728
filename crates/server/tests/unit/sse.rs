use windlass_server::sse::frame;

#[test]
fn nothing_in_an_event_starts_another_field() {
    let text = frame(Some(7), "log\nid: 9", "a\nid: 8\r\nevent: x\rdata: y\n\n");
    assert_eq!(text, "id: 7\nevent: logid9\ndata: a\ndata: id: 8\ndata: event: x\ndata: data: y\ndata: \ndata: \n\n");
    assert_eq!(text.matches("\n\n").count(), 1, "one event");
}
