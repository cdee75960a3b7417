//! Byte credits of push building: what a source may have on the way to one builder.
//!
//! Both ends count all bytes since the source's life began. Every reply says how much the source has pushed so far,
//! pushed or asked for. The builder tells how much of that it has taken, has dropped, or will never see. So a lost
//! message takes no credit with it. If the last pushes are lost, the builder asks for their events in the end, and
//! the replies bring it up to date.
//!
//! The window holds where replies of a source arrive in the order in which they were sent. One that overtakes
//! others, by another carrier or network port, returns credit for bytes that are still under way. If these then
//! find no room, they are dropped and asked for.

/// The source's end: the bytes on the way to one builder.
#[derive(Clone, Debug)]
pub(crate) struct PushWindow {
    window_bytes: u64,
    pushed: u64,
    taken: u64,
}

impl PushWindow {
    /// A window of this many bytes. It is overrun by one event at most, so that any event can go.
    pub(crate) fn new(window_bytes: u64) -> Self {
        Self { window_bytes, pushed: 0, taken: 0 }
    }

    /// Whether one more event may go.
    pub(crate) fn is_open(&self) -> bool {
        self.pushed - self.taken < self.window_bytes
    }

    /// Counts an event that is pushed.
    pub(crate) fn push(&mut self, len_bytes: usize) {
        self.pushed += cost(len_bytes);
    }

    /// What was pushed in all: travels with every reply.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed
    }

    /// What the builder says that it has taken; it may be old, or of another life.
    pub(crate) fn on_credit(&mut self, taken: u64) {
        self.taken = self.taken.max(taken.min(self.pushed));
    }

    /// The builder was lost, and all that was on the way with it.
    pub(crate) fn forgive(&mut self) {
        self.taken = self.pushed;
    }
}

/// The builder's end: the bytes of one source.
#[derive(Clone, Debug)]
pub(crate) struct TakenBytes {
    every: u64,
    pushed: u64,
    /// Kept ahead of their event.
    held: u64,
    told: u64,
}

impl TakenBytes {
    /// For a source with this window.
    pub(crate) fn new(window_bytes: u64) -> Self {
        Self { every: (window_bytes / TELLS_PER_WINDOW).max(1), pushed: 0, held: 0, told: 0 }
    }

    /// What a reply says of the bytes pushed so far.
    pub(crate) fn on_pushed(&mut self, pushed: u64) {
        self.pushed = self.pushed.max(pushed);
    }

    /// An event is kept until it is assigned.
    pub(crate) fn hold(&mut self, len_bytes: usize) {
        self.held += cost(len_bytes);
    }

    /// An event that was kept is used or dropped.
    pub(crate) fn release(&mut self, len_bytes: usize) {
        self.held -= cost(len_bytes);
    }

    /// What to tell the source, if it is worth a message.
    pub(crate) fn due(&mut self) -> Option<u64> {
        (self.taken() >= self.told + self.every).then(|| self.tell())
    }

    /// What to tell the source now.
    pub(crate) fn tell(&mut self) -> u64 {
        self.told = self.told.max(self.taken());
        self.told
    }

    /// The source may have begun another life, which counts from 0.
    pub(crate) fn restart(&mut self) {
        self.pushed = 0;
        self.told = 0;
    }

    fn taken(&self) -> u64 {
        self.pushed.saturating_sub(self.held)
    }
}

/// An event without data takes room in a queue, too.
pub(crate) fn cost(len_bytes: usize) -> u64 {
    len_bytes as u64 + EVENT_BYTES
}

/// What an event that is pushed counts for besides its data, in bytes.
pub const EVENT_BYTES: u64 = 64;

/// Credits go back in quarters of a window: a source whose window is shut is always owed one.
const TELLS_PER_WINDOW: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn a_window_shuts_and_credits_open_it() {
        let (mut window, mut taken) = (PushWindow::new(1000), TakenBytes::new(1000));
        while window.is_open() {
            window.push(236);
        }
        assert_eq!(window.pushed(), 1200, "overrun by one message at most");
        taken.on_pushed(300);
        taken.hold(236);
        assert_eq!(taken.due(), None, "kept ahead of its event");
        taken.release(236);
        assert_eq!(taken.due(), Some(300));
        assert_eq!(taken.due(), None, "told once");
        window.on_credit(300);
        assert!(window.is_open());
    }

    #[test]
    fn lost_pushes_give_their_credit_back_with_the_next_reply() {
        let (mut window, mut taken) = (PushWindow::new(1000), TakenBytes::new(1000));
        while window.is_open() {
            window.push(100);
        }
        // None of them arrived; the builder asks, and the reply says how much was pushed.
        taken.on_pushed(window.pushed());
        window.on_credit(taken.tell());
        window.on_credit(0);
        assert!(window.is_open() && window.pushed() == window.taken);
    }

    #[test]
    fn another_life_of_either_end_does_no_harm() {
        let (mut window, mut taken) = (PushWindow::new(1000), TakenBytes::new(1000));
        window.push(2000);
        taken.on_pushed(window.pushed());
        taken.hold(2000);
        window = PushWindow::new(1000);
        taken.restart();
        window.push(500);
        taken.on_pushed(window.pushed());
        window.on_credit(taken.tell());
        taken.release(2000);
        window.on_credit(taken.tell() + 7777);
        assert!(window.taken == window.pushed, "no more credit than was used");
        window.push(2000);
        window.forgive();
        assert!(window.is_open());
    }

    #[test]
    fn no_loss_of_pushes_or_credits_shuts_a_window_for_good() {
        let mut random = Random::new(1);
        let (mut window, mut taken) = (PushWindow::new(5000), TakenBytes::new(5000));
        let mut pushes = 0;
        for _ in 0..100_000 {
            let arrives = random.chance(0.7);
            if window.is_open() {
                window.push(random.below(2000) as usize);
                pushes += 1;
                if arrives {
                    taken.on_pushed(window.pushed());
                }
            } else if random.chance(0.01) {
                taken.on_pushed(window.pushed());
                window.on_credit(taken.tell());
            }
            if let Some(credit) = taken.due().filter(|_| random.chance(0.7)) {
                window.on_credit(credit);
            }
            assert!(window.pushed() - window.taken < 5000 + 2064);
        }
        assert!(pushes > 10_000, "{pushes}");
    }
}
