use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::Buffer,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    style::Color,
};
use serde_json::json;
use windlass_api::job::Job;
use windlass_cli::top::{
    draw::{Paint, draw},
    look::{Opened, Seen, Wanted},
    view::{Act, View},
};

fn job(last: u8, name: &str, state: &str) -> Job {
    serde_json::from_value(json!({
        "id": format!("01890000-0000-7000-8000-0000000000{last:02}"), "namespace": "default", "state": state, "name": name,
        "priority": 100, "attempt": 0, "attempts_max": 3, "created_at": "2026-01-01T00:00:00Z", "log_bytes": 0,
    }))
    .unwrap()
}

fn view(paint: bool) -> View {
    let mut view = View::new(Wanted::default(), Paint(paint));
    let jobs = vec![job(1, "train", "pending"), job(2, "\u{1b}[2Jodd", "failed")];
    let why = serde_json::from_value(json!({"job": jobs[0].id, "state": "pending", "summary": "No worker offers gpu.",
        "reasons": [{"code": "no_worker_offers", "text": "No worker offers gpu.", "help": "Start one."}]}))
    .unwrap();
    let log = (0..100).map(|line| format!("line {line}")).collect();
    let open = Opened { job: jobs[0].clone(), why: Some(why), log };
    view.see(&Seen { jobs, job: Some(open), ..Seen::default() });
    view
}

fn screen(view: &mut View) -> (String, Buffer) {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let rows = buffer.content().chunks(80).map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
    (rows.collect::<Vec<_>>().join("\n"), buffer)
}

fn press(view: &mut View, key: KeyCode) -> Option<Act> {
    view.key(&KeyEvent::new(key, KeyModifiers::NONE))
}

#[test]
fn jobs_their_reasons_and_their_logs_fit_80_by_24_and_need_no_colours() {
    let mut view = view(false);
    let (text, buffer) = screen(&mut view);
    assert!(text.contains("pending") && text.contains("train") && text.contains("q quit"), "{text}");
    assert!(!text.contains('\u{1b}'), "what others wrote moves no cursor");
    assert!(buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    press(&mut view, KeyCode::Enter);
    let (text, _) = screen(&mut view);
    assert!(
        text.contains("No worker offers gpu.") && text.contains("Start one.") && text.contains("line 99"),
        "{text}"
    );
    for _ in 0..30 {
        press(&mut view, KeyCode::Up);
    }
    let (text, _) = screen(&mut view);
    assert!(!text.contains("line 99") && text.contains("line 69"), "{text}");
    let (_, coloured) = screen(&mut self::view(true));
    assert!(coloured.content().iter().any(|cell| cell.fg == Color::Yellow));
}

#[test]
fn nothing_is_cancelled_or_retried_without_a_yes() {
    let mut view = view(false);
    let id = view.seen.jobs[1].id;
    press(&mut view, KeyCode::Char('j'));
    assert_eq!(press(&mut view, KeyCode::Char('c')), None);
    assert!(screen(&mut view).0.contains("Cancel job"));
    assert_eq!(press(&mut view, KeyCode::Char('n')), None);
    press(&mut view, KeyCode::Char('r'));
    assert_eq!(press(&mut view, KeyCode::Char('y')), Some(Act::Retry(id)));
    press(&mut view, KeyCode::Char('/'));
    press(&mut view, KeyCode::Char('q'));
    assert_eq!(view.wanted.name, "q", "letters are typed while a filter is");
}

#[test]
fn a_key_never_acts_on_a_job_that_the_filter_leaves_out() {
    let mut view = view(true);
    let (train, stale) = (view.seen.jobs[0].id, view.seen.clone());
    for key in ['j', '/', 't'].map(KeyCode::Char).into_iter().chain([KeyCode::Enter]) {
        press(&mut view, key);
    }
    // The answer to what was asked for before.
    view.see(&stale);
    press(&mut view, KeyCode::Char('r'));
    assert_eq!(press(&mut view, KeyCode::Char('y')), Some(Act::Retry(train)));
}
