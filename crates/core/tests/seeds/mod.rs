//! Seeds of random tests: all of a range, or the one that `WINDLASS_SEED` names. The one a test fails with is printed.

use std::ops::Range;

pub struct Seeds {
    rest: Range<u64>,
    current: u64,
}

pub fn of(usual: Range<u64>) -> Seeds {
    let alone = std::env::var("WINDLASS_SEED").ok().map(|text| text.parse().expect("WINDLASS_SEED is a number"));
    let rest = alone.map_or(usual, |seed: u64| seed..seed + 1);
    Seeds { current: rest.start, rest }
}

impl Iterator for Seeds {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        self.current = self.rest.next()?;
        Some(self.current)
    }
}

impl Drop for Seeds {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("WINDLASS_SEED={} repeats this alone", self.current);
        }
    }
}
