//! `weir top`: a partition that `weir serve` runs, on a terminal.

mod model;
mod view;
mod watcher;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use service::RunControl;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use terminal::{Exit, complain};

use self::model::{Model, News, Wish};
use self::view::View;
use crate::cli::TopArgs;
use crate::commands::operator;

/// Shows it until somebody leaves.
pub(crate) fn top(args: TopArgs) -> Exit {
    if !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
        complain("weir top: it draws on a terminal; without one use `weir ctl status --watch`");
        return Exit::NotStarted;
    }
    // Whoever types a wrong name reads so where the line stays.
    if let Err(error) = RunControl::find(args.partition.as_deref(), operator()) {
        complain(&format!("weir: {error}"));
        return Exit::NotStarted;
    }
    match show(args.partition) {
        Ok(()) => Exit::Well,
        Err(error) => {
            complain(&format!("weir top: the terminal cannot be used: {error}"));
            Exit::NotStarted
        }
    }
}

fn show(partition: Option<String>) -> io::Result<()> {
    let is_ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_ended))?;
    }
    let (news, coming) = sync_channel(COMING);
    watcher::watch(partition.clone(), news.clone());
    let mut terminal = ratatui::try_init()?;
    let shown = Screen { partition, news, coming, model: Model::default() }.keep(&mut terminal, &is_ended);
    ratatui::try_restore()?;
    shown
}

struct Screen {
    partition: Option<String>,
    news: SyncSender<News>,
    coming: Receiver<News>,
    model: Model,
}

impl Screen {
    fn keep(mut self, terminal: &mut DefaultTerminal, is_ended: &AtomicBool) -> io::Result<()> {
        let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let view = View { has_colours };
        while !is_ended.load(Ordering::SeqCst) {
            self.coming.try_iter().for_each(|news| self.model.take(news));
            terminal.draw(|frame| view.draw(frame, &self.model))?;
            if !event::poll(LOOK)? {
                continue;
            }
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
                && self.leaves(key)
            {
                break;
            }
        }
        Ok(())
    }

    fn leaves(&mut self, key: KeyEvent) -> bool {
        let wish = match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Wish::Leave,
            // Terminals and people use these for something else.
            KeyCode::Char(_) if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => Wish::Nothing,
            KeyCode::Char(key) => self.model.on_key(key),
            KeyCode::Esc => self.model.on_key('n'),
            other => {
                self.model.scroll(lines(other));
                Wish::Nothing
            }
        };
        let (partition, news) = (self.partition.clone(), self.news.clone());
        match wish {
            Wish::Nothing => {}
            Wish::Leave => return true,
            Wish::Order(verb) => watcher::order(partition, verb, news),
            Wish::TakeOver => watcher::take_over(partition, news),
        }
        false
    }
}

/// By how many lines a key moves the table.
const fn lines(key: KeyCode) -> isize {
    match key {
        KeyCode::Up => -1,
        KeyCode::Down => 1,
        KeyCode::PageUp => -10,
        KeyCode::PageDown => 10,
        KeyCode::Home => -MANY,
        KeyCode::End => MANY,
        _ => 0,
    }
}

const MANY: isize = 1 << 20;
/// Between two looks at what has come.
const LOOK: Duration = Duration::from_millis(100);
/// So much waits to be shown.
const COMING: usize = 1024;
