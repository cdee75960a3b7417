//! How fast one processor computes [OS1998 Table 1]. One kernel of whole numbers has the mix of operations that
//! Dhrystone stands for, and one of floating-point numbers has that of Whetstone. Both are our own: their numbers are
//! near those of the programs of these names, and not the same.

use std::hint::black_box;
use std::time::Duration;

use transport::clock;

/// Passes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    /// Of the kernel of whole numbers; the paper's unit.
    pub(super) integer_hz: f64,
    /// Of the kernel of floating-point numbers, in millions of operations.
    pub(super) floating_mflops: f64,
}

impl Speed {
    pub(super) fn measure(each: Duration) -> Self {
        let mut records = Records::new();
        let integer_hz = rate(each, |pass| records.pass(pass));
        let mut numbers = Numbers::new();
        let floating_hz = rate(each, |_| numbers.pass());
        Self { integer_hz, floating_mflops: floating_hz * OPERATIONS_PER_PASS / 1e6 }
    }
}

/// Passes per second: the best of some shares of the time, as others only ever take time away.
fn rate(lasts: Duration, mut pass: impl FnMut(u32)) -> f64 {
    let share = lasts / SHARES;
    let of_share = |_| {
        let began = clock::now();
        let (mut passes, mut taken) = (0_u32, Duration::ZERO);
        while passes == 0 || taken < share {
            (passes..passes + PASSES).for_each(&mut pass);
            passes += PASSES;
            taken = clock::now().since(began);
        }
        f64::from(passes) / taken.as_secs_f64()
    };
    (0..SHARES).map(of_share).fold(0.0, f64::max)
}

/// Linked records that are copied, texts that are compared, tables that are looked up, branches on what is found.
struct Records {
    records: [Record; 2],
    table: [[i32; SIDE]; SIDE],
    sum: i32,
}

#[derive(Clone, Copy)]
struct Record {
    next: usize,
    colour: Colour,
    number: i32,
    text: [u8; TEXT_BYTES],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    Red,
    Green,
    Blue,
}

impl Records {
    fn new() -> Self {
        let record = |next, colour| Record { next, colour, number: 40, text: *b"a record of thirty characters." };
        Self { records: [record(1, Colour::Red), record(0, Colour::Green)], table: [[0; SIDE]; SIDE], sum: 0 }
    }

    fn pass(&mut self, pass: u32) {
        let records = black_box(&mut self.records);
        let mut copy = records[0];
        copy.number = follow(&copy, &records[copy.next], pass.cast_signed());
        let text = black_box(b"a record of twenty-nine letters");
        if copy.text[..] > text[..TEXT_BYTES] {
            copy.colour = next(copy.colour);
        }
        let place = (copy.number & 31).cast_unsigned() as usize;
        look_up(&mut self.table, place, copy.number);
        for letter in b'a'..=b'c' {
            if copy.text.contains(&black_box(letter)) {
                self.sum = self.sum.wrapping_add(quotient(copy.number, i32::from(letter)));
            }
        }
        let second = &mut records[copy.next];
        (second.colour, second.number) = (copy.colour, self.sum);
        records[0] = copy;
    }
}

#[inline(never)]
fn follow(record: &Record, next: &Record, by: i32) -> i32 {
    match record.colour {
        Colour::Red => next.number.wrapping_add(by),
        Colour::Green => by.wrapping_mul(3),
        Colour::Blue => next.number.wrapping_sub(by),
    }
}

#[inline(never)]
fn next(colour: Colour) -> Colour {
    match black_box(colour) {
        Colour::Red => Colour::Green,
        Colour::Green => Colour::Blue,
        Colour::Blue => Colour::Red,
    }
}

#[inline(never)]
fn look_up(table: &mut [[i32; SIDE]; SIDE], place: usize, number: i32) {
    let row = &mut table[place];
    row[place] = number;
    row[place + 1] = row[place];
    row[place + 10] = place as i32;
    table[place + 10][place] = table[place][place].wrapping_add(1);
}

#[inline(never)]
fn quotient(number: i32, by: i32) -> i32 {
    number.wrapping_mul(7) / black_box(by) - number % by
}

/// Sums of neighbours, products, and functions of the mathematical library, in the shares of Whetstone's time.
struct Numbers {
    values: [f64; 4],
}

impl Numbers {
    fn new() -> Self {
        Self { values: [1.0, -1.0, -1.0, -1.0] }
    }

    fn pass(&mut self) {
        let [mut a, mut b, mut c, mut d] = black_box(self.values);
        for _ in 0..SUMS {
            a = (a + b + c - d) * T;
            b = (a + b - c + d) * T;
            c = (a - b + c + d) * T;
            d = (b - a + c + d) * T;
        }
        let mut angle = black_box(0.5_f64);
        for _ in 0..FUNCTIONS {
            angle = T * (2.0 * angle.sin() * angle.cos() / (angle.cos() + 1.0)).atan();
            angle = (angle.abs().ln() / T).exp().sqrt();
        }
        self.values = black_box([a, b, c, d + 1e-9 * angle]);
        // Far from overflow, however many passes there are.
        let size = self.values.iter().fold(1.0_f64, |most, value| most.max(value.abs()));
        self.values = self.values.map(|value| value / size);
    }
}

const SHARES: u32 = 5;
const PASSES: u32 = 1000;
const TEXT_BYTES: usize = 30;
const SIDE: usize = 50;
const T: f64 = 0.499_975;
const SUMS: u32 = 12;
const FUNCTIONS: u32 = 2;
/// Four in each of the four lines; twelve of the functions, each of which counts as one, as in Whetstone; then four quotients.
const OPERATIONS_PER_PASS: f64 = (SUMS * 16 + FUNCTIONS * 14 + 4) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_change_what_they_work_on_and_stay_numbers() {
        let (mut records, mut numbers) = (Records::new(), Numbers::new());
        let before = numbers.values;
        (0..10_000).for_each(|pass| {
            records.pass(pass);
            numbers.pass();
        });
        assert!(records.sum != 0 && numbers.values != before);
        assert!(numbers.values.iter().all(|value| value.is_finite()), "{:?}", numbers.values);
    }

    #[test]
    fn the_rate_is_a_number_however_short_the_time() {
        assert!(rate(Duration::ZERO, |_| ()).is_finite());
        let speed = Speed::measure(Duration::from_millis(5));
        assert!(speed.integer_hz > 1.0 && speed.floating_mflops > 0.1, "{speed:?}");
    }
}
