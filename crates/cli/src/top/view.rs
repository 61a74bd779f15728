//! What is selected and typed, and what keys do. Knows no terminal and no server.

use super::look::{Seen, Wanted};
use ratatui::{
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    widgets::TableState,
};
use uuid::Uuid;

/// Something to do on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Cancel(Uuid),
    Retry(Uuid),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    Jobs,
    Workers,
    Lanes,
}

/// What the next key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Browse,
    Filter,
    Confirm(Act),
}

pub struct View {
    pub wanted: Wanted,
    pub seen: Seen,
    pub tab: Tab,
    pub rows: TableState,
    pub paint: super::draw::Paint,
    /// Lines above the end of the log.
    pub scrolled: usize,
    /// Why the last thing asked for was not done.
    pub said: Option<String>,
    mode: Mode,
}

impl View {
    pub fn new(wanted: Wanted, paint: super::draw::Paint) -> Self {
        let rows = TableState::default().with_selected(Some(0));
        Self { wanted, seen: Seen::default(), tab: Tab::Jobs, rows, paint, scrolled: 0, said: None, mode: Mode::Browse }
    }

    /// The selection stays on its job, wherever that moved.
    pub fn see(&mut self, seen: &Seen) {
        let chosen = self.chosen();
        self.seen = seen.clone();
        self.narrow();
        if let Some(at) = self.seen.jobs.iter().position(|job| Some(job.id) == chosen).filter(|_| self.tab == Tab::Jobs)
        {
            self.rows.select(Some(at));
        }
        // A list that is drawn while it is empty loses its selection.
        if self.rows.selected().is_none() {
            self.rows.select(Some(0));
        }
    }

    /// What was asked for before the filter changed is not shown under the new one: a key would act on a job that was filtered out.
    fn narrow(&mut self) {
        let begin = &self.wanted.name;
        self.seen.jobs.retain(|job| begin.is_empty() || job.name.as_ref().is_some_and(|name| name.starts_with(begin)));
        if self.tab == Tab::Jobs && self.rows.selected() >= Some(self.seen.jobs.len()) {
            self.rows.select(Some(0));
        }
    }

    fn chosen(&self) -> Option<Uuid> {
        let at = self.rows.selected().filter(|_| self.tab == Tab::Jobs)?;
        self.seen.jobs.get(at).map(|job| job.id)
    }

    /// The job that a key is about: the open one, or the selected one.
    fn subject(&self) -> Option<Uuid> {
        self.wanted.job.or_else(|| self.chosen())
    }

    pub fn ends_with(&self, key: &KeyEvent) -> bool {
        let interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        interrupt || (self.mode == Mode::Browse && key.code == KeyCode::Char('q'))
    }

    pub fn key(&mut self, key: &KeyEvent) -> Option<Act> {
        match self.mode {
            Mode::Browse => {
                self.browse(key.code);
                None
            }
            Mode::Filter => {
                self.filter(key.code);
                None
            }
            Mode::Confirm(act) => {
                self.mode = Mode::Browse;
                (key.code == KeyCode::Char('y')).then_some(act)
            }
        }
    }

    fn browse(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char('j') | KeyCode::Down => self.step(1),
            KeyCode::Char('k') | KeyCode::Up => self.step(-1),
            KeyCode::PageDown => self.step(10),
            KeyCode::PageUp => self.step(-10),
            KeyCode::Tab => {
                let next = [(Tab::Jobs, Tab::Workers), (Tab::Workers, Tab::Lanes), (Tab::Lanes, Tab::Jobs)];
                self.tab = next.iter().find(|(from, _)| *from == self.tab).map_or(Tab::Jobs, |(_, to)| *to);
                self.wanted.job = None;
                self.rows.select(Some(0));
            }
            KeyCode::Enter => {
                self.wanted.job = self.subject();
                self.scrolled = 0;
            }
            KeyCode::Esc => self.wanted.job = None,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('c') => {
                self.mode = self.subject().map_or(Mode::Browse, |job| Mode::Confirm(Act::Cancel(job)))
            }
            KeyCode::Char('r') => self.mode = self.subject().map_or(Mode::Browse, |job| Mode::Confirm(Act::Retry(job))),
            _ => {}
        }
    }

    fn filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(char) => self.wanted.name.push(char),
            KeyCode::Backspace => drop(self.wanted.name.pop()),
            KeyCode::Esc => {
                self.wanted.name.clear();
                self.mode = Mode::Browse;
            }
            KeyCode::Enter => self.mode = Mode::Browse,
            _ => {}
        }
        self.narrow();
    }

    fn step(&mut self, by: isize) {
        if let Some(open) = self.seen.job.as_ref().filter(|_| self.wanted.job.is_some()) {
            self.scrolled = self.scrolled.saturating_add_signed(-by).min(open.log.len());
            return;
        }
        let last = self.count().saturating_sub(1);
        self.rows.select(Some(self.rows.selected().unwrap_or(0).saturating_add_signed(by).min(last)));
    }

    fn count(&self) -> usize {
        match self.tab {
            Tab::Jobs => self.seen.jobs.len(),
            Tab::Workers => self.seen.workers.len(),
            Tab::Lanes => self.seen.overview.lanes.len(),
        }
    }

    /// The last line: what is asked, what is typed, or what keys there are.
    pub fn footer(&self) -> String {
        match self.mode {
            Mode::Confirm(Act::Cancel(job)) => format!("Cancel job {}? y: yes, any other key: no", super::short(job)),
            Mode::Confirm(Act::Retry(job)) => format!("Run job {} again? y: yes, any other key: no", super::short(job)),
            Mode::Filter => format!("Name begins with: {}_   Enter: keep, Esc: clear", self.wanted.name),
            Mode::Browse if self.said.is_some() => self.said.clone().unwrap_or_default(),
            Mode::Browse if self.wanted.job.is_some() => "Esc back  j/k scroll  c cancel  r retry  q quit".to_owned(),
            Mode::Browse => "Tab view  j/k select  Enter open  c cancel  r retry  / filter  q quit".to_owned(),
        }
    }
}
