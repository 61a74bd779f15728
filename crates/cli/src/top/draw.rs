//! How `top` looks.

use super::{
    look::Opened,
    short,
    view::{Tab, View},
};
use crate::{output::clean, times};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Cell, Paragraph, Row, Table, Wrap},
};
use windlass_api::{
    job::{Job, State},
    stats::Count,
};

/// Whether colours may be used. Without them states are told by their words alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(pub bool);

impl Paint {
    pub fn of_environment() -> Self {
        Self(std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
    }

    fn of(self, state: &str) -> Style {
        let colour = match state {
            "completed" | "online" => Color::Green,
            "failed" | "offline" => Color::Red,
            "running" | "claimed" => Color::Cyan,
            "pending" | "blocked" | "scheduled" | "unreachable" => Color::Yellow,
            _ => Color::Reset,
        };
        if self.0 { Style::default().fg(colour) } else { Style::default() }
    }
}

pub fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let parts = [Constraint::Length(3), Constraint::Min(3), Constraint::Length(1)];
    let [head, body, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(header(view)), head);
    match (&view.wanted.job, view.seen.job.clone()) {
        (Some(id), Some(open)) if open.job.id == *id => draw_job(frame, body, view, &open),
        _ => draw_list(frame, body, view),
    }
    let foot_text = view.seen.error.clone().map_or_else(|| clean(&view.footer()), |error| clean(&error));
    frame.render_widget(Paragraph::new(foot_text).style(Style::default().add_modifier(Modifier::REVERSED)), foot);
}

fn shown(count: Option<&Count>) -> String {
    count.map_or_else(|| "–".into(), |count| format!("{}{}", count.count, if count.more { "+" } else { "" }))
}

fn header(view: &View) -> Vec<Line<'static>> {
    let (overview, last) = (&view.seen.overview, &view.seen.last);
    let mut states = vec![Span::raw(format!("{}  ", overview.namespace))];
    for state in ["pending", "running", "blocked", "scheduled", "failed"] {
        states.push(Span::styled(format!("{} {state}  ", shown(overview.jobs.get(state))), view.paint.of(state)));
    }
    let workers = |state: &str| overview.workers.get(state).copied().unwrap_or(0);
    let lost = workers("offline") + workers("unreachable");
    let fleet = format!("workers: {} online, {lost} lost, {} draining", workers("online"), workers("draining"));
    let full = if overview.store_full { "   THE STORE IS FULL" } else { "" };
    let pace = format!(
        "last minute: {} submitted, {} claimed, {} completed, {} failed",
        last.submitted, last.claimed, last.completed, last.failed
    );
    vec![Line::from(states), Line::raw(fleet + full), Line::raw(pace)]
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, view: &mut View) {
    let paint = view.paint;
    let (title, heads, widths, rows) = match view.tab {
        Tab::Jobs => jobs(view, paint),
        Tab::Workers => workers(view, paint),
        Tab::Lanes => lanes(view),
    };
    let table = Table::new(rows, widths)
        .header(Row::new(heads).style(Style::default().add_modifier(Modifier::BOLD)))
        .row_highlight_style(Style::default().add_modifier(Modifier::REVERSED))
        .highlight_symbol("> ")
        .block(Block::bordered().title(title));
    frame.render_stateful_widget(table, area, &mut view.rows);
}

type Sheet = (String, Vec<&'static str>, Vec<Constraint>, Vec<Row<'static>>);

fn jobs(view: &View, paint: Paint) -> Sheet {
    let row = |job: &Job| {
        let state = job.state.name();
        let worker = job.worker.as_deref().unwrap_or_default();
        Row::new([
            Cell::from(state).style(paint.of(state)),
            Cell::from(short(job.id)),
            Cell::from(clean(name(job))),
            Cell::from(clean(worker)),
            Cell::from(times::relative(&job.created_at, times::now())),
        ])
    };
    let widths = [9, 8, 0, 14, 9].map(|width| if width == 0 { Constraint::Min(16) } else { Constraint::Length(width) });
    let title = match view.wanted.name.as_str() {
        "" => " Jobs ".to_owned(),
        name => format!(" Jobs: {} ", clean(name)),
    };
    let heads = vec!["State", "Id", "Job", "Worker", "Created"];
    (title, heads, widths.to_vec(), view.seen.jobs.iter().map(row).collect())
}

fn name(job: &Job) -> &str {
    let names = [&job.name, &job.node, &job.definition, &job.command];
    names.into_iter().find_map(|name| name.as_deref()).unwrap_or("(no name)")
}

fn workers(view: &View, paint: Paint) -> Sheet {
    let rows = view.seen.workers.iter().map(|worker| {
        let state = format!("{:?}", worker.state).to_lowercase();
        let more = if worker.draining { "draining" } else { "" };
        let style = paint.of(&state);
        Row::new([
            Cell::from(state).style(style),
            Cell::from(clean(&worker.worker)),
            Cell::from(worker.slots.to_string()),
            Cell::from(clean(&worker.tags.join(" "))),
            Cell::from(times::relative(&worker.last_seen, times::now())),
            Cell::from(more),
        ])
    });
    let widths =
        [11, 20, 5, 0, 9, 8].map(|width| if width == 0 { Constraint::Min(10) } else { Constraint::Length(width) });
    let heads = vec!["State", "Worker", "Slots", "Tags", "Seen", ""];
    (" Workers ".into(), heads, widths.to_vec(), rows.collect())
}

fn lanes(view: &View) -> Sheet {
    let rows = view.seen.overview.lanes.iter().map(|lane| {
        let since = lane.since.as_deref().map(|since| times::relative(since, times::now())).unwrap_or_default();
        let reason = lane.reason.as_deref().unwrap_or_default();
        let cells = [lane.tags.join(" "), shown(Some(&lane.waiting)), since, reason.to_owned()];
        Row::new(cells.map(|cell| Cell::from(clean(&cell))))
    });
    let widths = vec![Constraint::Length(18), Constraint::Length(7), Constraint::Length(9), Constraint::Min(20)];
    (" Lanes ".into(), vec!["Tags", "Waiting", "Oldest", "Why"], widths, rows.collect())
}

fn draw_job(frame: &mut Frame<'_>, area: Rect, view: &View, open: &Opened) {
    let mut about = vec![Line::from(vec![
        Span::styled(open.job.state.name(), view.paint.of(open.job.state.name())),
        Span::raw(format!("  {}  {}", open.job.id, clean(name(&open.job)))),
    ])];
    if let Some(why) = &open.why {
        about.push(Line::raw(clean(&why.summary)));
        about.extend(why.reasons.first().and_then(|reason| reason.help.as_deref()).map(|help| Line::raw(clean(help))));
    }
    if let Some(error) = open.job.error.as_ref().filter(|_| open.job.state != State::Completed) {
        about.push(Line::raw(clean(&format!("{} {}", error.reason, error.message))));
    }
    let [top, log] = Layout::vertical([Constraint::Length(7), Constraint::Min(3)]).areas(area);
    frame.render_widget(Paragraph::new(about).wrap(Wrap { trim: true }).block(Block::bordered().title(" Job ")), top);
    let room = usize::from(log.height.saturating_sub(2));
    let end = open.log.len().saturating_sub(view.scrolled).max(room.min(open.log.len()));
    let lines: Vec<Line<'_>> =
        open.log[end.saturating_sub(room)..end].iter().map(|line| Line::raw(line.as_str())).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" Log ")), log);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::{
        look::{Seen, Wanted},
        view::Act,
    };
    use ratatui::{
        Terminal,
        backend::TestBackend,
        buffer::Buffer,
        crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    };
    use serde_json::json;

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
        let why =
            serde_json::from_value(json!({"job": jobs[0].id, "state": "pending", "summary": "No worker offers gpu.",
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
}
