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
