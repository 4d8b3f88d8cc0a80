//! Fair shares of load: a step in which an instance received none is no step of that many instances.

/// An address that was sent less than this part of its fair share is idle.
const IDLE_SHARE: f64 = 0.1;

/// The first address that was sent next to nothing of its fair share of all messages; none if each was sent some.
pub fn idle_address<'a>(sent: impl Iterator<Item = (&'a str, u64)> + Clone) -> Option<&'a str> {
    let all: u64 = sent.clone().map(|(_, messages)| messages).sum();
    let least = all as f64 / sent.clone().count().max(1) as f64 * IDLE_SHARE;
    let mut idle = sent.filter(|(_, messages)| (*messages as f64) < least);
    idle.next().map(|(address, _)| address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_less_than_a_tenth_of_its_fair_share_is_idle() {
        let idle = |sent: &[u64]| {
            let names = ["a", "b", "c"];
            idle_address(names.into_iter().zip(sent.iter().copied()))
        };
        for fair in [&[100, 100][..], &[100, 11], &[0, 0], &[0], &[]] {
            assert_eq!(idle(fair), None, "{fair:?}");
        }
        assert_eq!(idle(&[100, 0, 0]), Some("b"));
        assert_eq!(idle(&[1_000, 30]), Some("b"));
        assert_eq!(idle(&[30, 1_000]), Some("a"));
    }
}
