//! The growth of a counter.

use muster_model::Micros;

/// The growth per second of a counter between two readings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Growth {
    last: Option<(Micros, f64)>,
}

impl Growth {
    /// The growth per second since the reading before; none without one, or if the counter fell: it began anew. A
    /// reading at instant zero only tries the source before the clock of the run begins, so that no growth counts from it.
    pub fn per_second(&mut self, now: Micros, counter: f64) -> Option<f64> {
        let (then, before) = self.last.replace((now, counter))?;
        if then == Micros::ZERO {
            return None;
        }
        let passed = (now - then).as_secs_f64();
        (passed > 0.0 && counter >= before).then(|| (counter - before) / passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_time_between_two_readings() {
        let mut growth = Growth::default();
        let mut read = |seconds, counter| growth.per_second(Micros::from_secs(seconds), counter);
        assert_eq!(read(0, 10.0), None);
        assert_eq!(
            read(1, 100.0),
            None,
            "nobody knows how long ago it was tried"
        );
        assert_eq!(read(3, 110.0), Some(5.0));
        assert_eq!(read(3, 110.0), None, "no time has passed");
        assert_eq!(read(4, 7.0), None, "it began anew");
        assert_eq!(read(5, 8.0), Some(1.0));
    }
}
