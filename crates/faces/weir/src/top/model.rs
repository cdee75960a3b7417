//! What is known of a partition, and what the keys do with it.

use std::collections::VecDeque;

use serde::Deserialize;
use service::SourceRates;

/// What stands on the screen.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) status: Status,
    pub(super) stages: Vec<Stage>,
    /// Those that send by themselves.
    pub(super) sources: Vec<SourceRates>,
    /// The newest last.
    pub(super) messages: VecDeque<Message>,
    /// Rates of the last seconds, one each second while a run goes on; the newest last.
    pub(super) trend: VecDeque<Rates>,
    /// Why nothing is heard, as long as nothing is.
    pub(super) silence: Option<String>,
    /// Why the last order was not carried out.
    pub(super) refusal: Option<String>,
    /// What has a line of the table each.
    pub(super) lines: Lines,
    /// So many lines of the table stand above the screen.
    pub(super) scrolled: usize,
    /// An order that waits for a yes.
    pub(super) asked: Option<String>,
}

/// What has a line of the table each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Lines {
    #[default]
    Stages,
    Applications,
    Sources,
}

/// What comes in.
pub(super) enum News {
    Status(Status),
    Message(Message),
    /// All that are kept.
    Messages(Vec<Message>),
    Dataflow(Vec<Stage>, Vec<SourceRates>),
    Trend(Vec<Sample>),
    /// A second has gone.
    Second,
    Silence(String),
    Refusal(String),
}

/// What a key is to bring about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Leave,
    Order(String),
    TakeOver,
}

/// As `/api/status` says it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) partition: String,
    pub(super) state: String,
    pub(super) verbs: Vec<String>,
    pub(super) operator: Option<Operator>,
    pub(super) run: Option<Run>,
    pub(super) follow: u32,
    pub(super) last: Option<LastRun>,
    pub(super) sentence: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Operator {
    pub(super) name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Run {
    pub(super) number: Option<u32>,
    pub(super) elapsed_s: f64,
    pub(super) recorded: u64,
    pub(super) rates: Rates,
    pub(super) troubles: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LastRun {
    pub(super) number: Option<u32>,
    pub(super) state: String,
    pub(super) recorded: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Rates {
    pub(super) level1_hz: f64,
    pub(super) built_hz: f64,
    pub(super) recorded_hz: f64,
    pub(super) bytes_per_s: f64,
    pub(super) dead_time: Option<f64>,
}

/// One of `/api/trend`.
#[derive(Deserialize)]
pub(super) struct Sample {
    pub(super) rates: Rates,
}

/// The applications of a role, as `/api/dataflow` says it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) rate_hz: f64,
    pub(super) in_hand: Option<u64>,
    pub(super) applications: Vec<Application>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Application {
    pub(super) name: String,
    pub(super) rate_hz: f64,
    pub(super) in_hand: Option<u64>,
    pub(super) waits: Vec<Wait>,
    pub(super) silent_s: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wait {
    pub(super) words: String,
    pub(super) share: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) number: u64,
    pub(super) at_ms: u64,
    pub(super) severity: String,
    pub(super) text: String,
    pub(super) causes: Vec<String>,
    pub(super) repeats: u64,
}

impl Model {
    pub(super) fn take(&mut self, news: News) {
        match news {
            News::Status(status) => {
                (self.status, self.silence) = (status, None);
                // It is no order any more.
                self.asked.take_if(|asked| *asked != TAKE_COMMAND && !self.status.verbs.contains(asked));
            }
            News::Dataflow(stages, sources) => {
                (self.stages, self.sources, self.silence) = (stages, sources, None);
            }
            News::Message(message) => self.say(message),
            News::Messages(messages) => {
                self.messages.clear();
                messages.into_iter().for_each(|message| self.say(message));
            }
            News::Trend(samples) => {
                let skipped = samples.len().saturating_sub(SECONDS_KEPT);
                self.trend = samples.into_iter().skip(skipped).map(|sample| sample.rates).collect();
            }
            News::Second => self.note(),
            News::Silence(why) => self.silence = Some(why),
            News::Refusal(why) => self.refusal = Some(why),
        }
    }

    fn say(&mut self, message: Message) {
        if let Some(said) = self.messages.iter_mut().rev().find(|said| said.number == message.number) {
            // It was said again.
            *said = message;
            return;
        }
        if self.messages.back().is_some_and(|last| last.number > message.number) {
            return;
        }
        if self.messages.len() == MESSAGES_KEPT {
            self.messages.pop_front();
        }
        self.messages.push_back(message);
    }

    fn note(&mut self) {
        let Some(run) = self.status.run.as_ref().filter(|_| self.silence.is_none()) else { return };
        if self.trend.len() == SECONDS_KEPT {
            self.trend.pop_front();
        }
        self.trend.push_back(run.rates);
    }

    /// What a key means now.
    pub(super) fn on_key(&mut self, key: char) -> Wish {
        if let Some(asked) = self.asked.take() {
            return match key {
                'y' if asked == TAKE_COMMAND => Wish::TakeOver,
                'y' => Wish::Order(asked),
                _ => Wish::Nothing,
            };
        }
        self.refusal = None;
        match key {
            'q' => Wish::Leave,
            't' if self.status.operator.is_none() => Wish::TakeOver,
            't' => {
                self.asked = Some(TAKE_COMMAND.to_owned());
                Wish::Nothing
            }
            'a' => self.show(Lines::Applications),
            'o' => self.show(Lines::Sources),
            _ => match self.verb_of(key) {
                Some(verb) if UNASKED.contains(&verb.as_str()) => Wish::Order(verb),
                asked => {
                    self.asked = asked;
                    Wish::Nothing
                }
            },
        }
    }

    /// Shows these lines, or the stages again.
    fn show(&mut self, lines: Lines) -> Wish {
        self.lines = if self.lines == lines { Lines::Stages } else { lines };
        self.scrolled = 0;
        Wish::Nothing
    }

    fn verb_of(&self, key: char) -> Option<String> {
        let (_, verb) = ORDERS.iter().find(|(letter, _)| *letter == key)?;
        self.status.verbs.iter().find(|possible| possible == verb).cloned()
    }

    /// Moves the table by some lines, of which there are so many.
    pub(super) fn scroll(&mut self, lines: isize) {
        self.scrolled = self.scrolled.saturating_add_signed(lines).min(self.rows().saturating_sub(1));
    }

    /// How many lines the table has.
    pub(super) fn rows(&self) -> usize {
        match self.lines {
            Lines::Stages => self.stages.len(),
            Lines::Applications => self.applications().count(),
            Lines::Sources => self.sources.len(),
        }
    }

    pub(super) fn applications(&self) -> impl Iterator<Item = (&Stage, &Application)> {
        self.stages.iter().flat_map(|stage| stage.applications.iter().map(move |application| (stage, application)))
    }

    /// Keys of orders that are possible now.
    pub(super) fn orders(&self) -> impl Iterator<Item = (char, &str)> {
        let is_possible = |verb: &str| self.status.verbs.iter().any(|possible| possible == verb);
        ORDERS.into_iter().filter(move |(_, verb)| is_possible(verb))
    }
}

/// `s` is no stop, so that nobody who starts a run ends it by a second stroke.
const ORDERS: [(char, &str); 7] =
    [('b', "boot"), ('s', "start"), ('p', "pause"), ('r', "resume"), ('x', "stop"), ('f', "force"), ('d', "shutdown")];
/// What is asked for once more, too, where somebody commands.
const TAKE_COMMAND: &str = "take command";
/// Orders that take nothing away from anybody.
const UNASKED: [&str; 4] = ["boot", "start", "pause", "resume"];
const MESSAGES_KEPT: usize = 200;
/// More than a wide terminal has columns.
const SECONDS_KEPT: usize = 600;

#[cfg(test)]
mod tests {
    use super::*;

    fn in_state(verbs: &[&str]) -> Model {
        let verbs = verbs.iter().map(|&verb| verb.to_owned()).collect();
        let mut model = Model::default();
        model.take(News::Status(Status { verbs, ..Status::default() }));
        model
    }

    #[test]
    fn only_what_is_possible_is_ordered() {
        let mut booted = in_state(&["start", "shutdown"]);
        assert_eq!(booted.on_key('p'), Wish::Nothing);
        assert_eq!(booted.on_key('s'), Wish::Order("start".into()));
        assert_eq!(booted.orders().map(|(key, _)| key).collect::<String>(), "sd");
    }

    #[test]
    fn what_ends_something_is_asked_for_once_more() {
        let mut running = in_state(&["pause", "stop"]);
        assert_eq!(running.on_key('x'), Wish::Nothing);
        assert_eq!(running.on_key('n'), Wish::Nothing);
        assert_eq!(running.on_key('y'), Wish::Nothing);
        assert_eq!(running.on_key('x'), Wish::Nothing);
        assert_eq!(running.on_key('y'), Wish::Order("stop".into()));
        assert_eq!(running.on_key('x'), Wish::Nothing);
        // The run has ended before the answer.
        running.take(News::Status(Status { verbs: vec!["start".into()], ..Status::default() }));
        assert_eq!(running.on_key('y'), Wish::Nothing);
    }

    #[test]
    fn command_is_taken_from_somebody_after_a_second_stroke_alone() {
        let mut model = Model::default();
        assert_eq!(model.on_key('t'), Wish::TakeOver);
        let anna = Operator { name: "anna".into() };
        model.take(News::Status(Status { operator: Some(anna), ..Status::default() }));
        assert_eq!((model.on_key('t'), model.on_key('n')), (Wish::Nothing, Wish::Nothing));
        assert_eq!((model.on_key('t'), model.on_key('y')), (Wish::Nothing, Wish::TakeOver));
    }

    #[test]
    fn messages_of_a_service_that_was_started_again_replace_the_former_ones() {
        let mut model = Model::default();
        let numbered = |number| Message { number, ..Message::default() };
        (1..=9).for_each(|number| model.take(News::Message(numbered(number))));
        model.take(News::Messages(vec![numbered(1), numbered(2)]));
        model.take(News::Message(numbered(2)));
        model.take(News::Message(numbered(3)));
        assert_eq!(model.messages.iter().map(|message| message.number).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn a_message_that_comes_twice_stands_once() {
        let mut model = Model::default();
        for number in [1, 2, 2, 1, 3] {
            model.take(News::Message(Message { number, ..Message::default() }));
        }
        assert_eq!(model.messages.iter().map(|message| message.number).collect::<Vec<_>>(), [1, 2, 3]);
        model.take(News::Message(Message { number: 2, repeats: 4, ..Message::default() }));
        assert_eq!(model.messages.iter().map(|message| message.repeats).collect::<Vec<_>>(), [0, 4, 0]);
    }
}
