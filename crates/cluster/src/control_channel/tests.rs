//! Both ends of a control channel over loopback.

use muster_measure::ChecksummedCount;
use muster_model::Listening;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// A clock that is ahead of `clock` by so much.
fn ahead(clock: Clock, ms: u64) -> Clock {
    Clock::agreed(clock.t0_ns() - ms * 1_000_000, clock.wall_ms_at_t0())
}

fn member(part: &str, run: u32) -> Membership {
    Membership {
        run: RunId(run),
        plan: "5eed".to_owned(),
        part: part.parse().expect("a part"),
        has_backend: true,
        clock: format!("clock of {part}"),
    }
}

fn own(open: u64, consumers: u64, has_settled: bool) -> Own {
    Own {
        progress: Progress {
            at: Micros::from_secs(7),
            open,
            consumers_wanted: consumers,
            listening: Listening::NOBODY,
            ..Progress::default()
        },
        windows: Windows {
            sent: open + 100,
            ..Windows::default()
        },
        has_settled,
    }
}

fn ends(parts: [&str; 2]) -> [ControlChannel; 2] {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let hear = ControlChannel::listen(at, member(parts[0], 1)).expect("a free port");
    let at = hear.local_addr().expect("it has one");
    let tell = ControlChannel::join(vec![at], member(parts[1], 1)).expect("a socket");
    [hear, tell]
}

/// Turns both ends until a condition holds of them.
fn until(
    lines: &mut [(ControlChannel, Clock, Own)],
    holds: impl Fn(&[(ControlChannel, Clock, Own)]) -> bool,
) {
    let clock = Clock::start();
    while !holds(lines) {
        for (line, clock, own) in lines.iter_mut() {
            line.turn(*clock, &|| own.clone());
        }
        assert!(
            clock.now() < Micros::from_secs(20),
            "it never held: {lines:?}"
        );
        std::thread::yield_now();
    }
}

fn hears((line, clock, _): &(ControlChannel, Clock, Own)) -> bool {
    line.others(clock.now()).is_some()
}

#[test]
fn each_end_hears_how_the_other_stands() {
    let clock = Clock::start();
    let [hear, tell] = ends(["backend", "devices"]);
    let mut lines = [
        (hear, clock, own(0, 2, false)),
        (tell, clock, own(5, 0, false)),
    ];
    until(&mut lines, |lines| lines.iter().all(hears));
    let stand = |at: usize| lines[at].0.others(clock.now()).expect("it is heard");
    let (progress, windows) = stand(0);
    assert_eq!((progress[0].open, windows.sent), (5, 105));
    let (progress, windows) = stand(1);
    assert_eq!((progress[0].consumers_wanted, windows.sent), (2, 100));
}

#[test]
fn a_line_is_complete_only_with_every_part_of_the_run() {
    let clock = Clock::start();
    let [hear, tell] = ends(["backend", "devices:1/2"]);
    let at = hear.local_addr().expect("it has one");
    let mut lines = vec![
        (hear, clock, own(0, 1, false)),
        (tell, clock, own(3, 0, false)),
    ];
    until(&mut lines, |lines| !lines[1].0.peers.peers.is_empty());
    assert!(
        !lines.iter().any(hears),
        "one half of the devices is missing"
    );
    let third = ControlChannel::join(vec![at], member("devices:2/2", 1)).expect("a socket");
    lines.push((third, clock, own(4, 0, false)));
    until(&mut lines, |lines| lines.iter().all(hears));
    // Each receives the progress of all others, in one status.
    let (progress, windows) = lines[1].0.others(clock.now()).expect("it is heard");
    assert_eq!((progress[0].open, windows.sent), (4, 204));
}

/// As `localhost` may have an address of either family, and one listens at one of them.
#[test]
fn where_nobody_listens_the_next_address_is_told() {
    let clock = Clock::start();
    let [hear, _] = ends(["backend", "devices"]);
    let at = hear.local_addr().expect("it has one");
    let nobody = SocketAddr::from(([127, 0, 0, 2], at.port()));
    let tell = ControlChannel::join(vec![nobody, at], member("devices", 1)).expect("a socket");
    let mut lines = [
        (hear, clock, own(0, 1, false)),
        (tell, clock, own(3, 0, false)),
    ];
    until(&mut lines, |lines| lines.iter().all(hears));
    assert_eq!(lines[1].0.current, 1);
    lines[1].0.try_next();
    assert_eq!(lines[1].0.current, 1, "somebody was heard there");
}

#[test]
fn what_is_no_word_of_this_run_is_counted_and_changes_nothing() {
    let clock = Clock::start();
    let [hear, tell] = ends(["backend", "devices"]);
    let at = hear.local_addr().expect("it has one");
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let of_others = ControlChannel::join(vec![at], member("devices", 2)).expect("a socket");
    let status = of_others
        .peers
        .status_for(None, &own(0, 0, true), clock.now());
    let foreign = status.encoded().expect("it fits");
    let torn = &foreign[..foreign.len() - 1];
    let long = [&foreign[..], b"more"].concat();
    for bytes in [
        &b""[..],
        b"GET / HTTP/1.1",
        &[0xFF; 60_000],
        &foreign,
        torn,
        &long,
    ] {
        stranger.send_to(bytes, at).expect("it is sent");
    }
    let mut lines = [
        (hear, clock, own(0, 1, false)),
        (tell, clock, own(5, 0, false)),
    ];
    until(&mut lines, |lines| {
        lines[0].0.peers.ignored == 6 && hears(&lines[0])
    });
    assert_eq!(lines[0].0.peers.peers.len(), 1);
}

#[test]
fn a_part_that_falls_silent_is_not_counted_on_unless_it_had_settled() {
    let clock = Clock::start();
    let [hear, tell] = ends(["backend", "devices"]);
    let mut lines = [
        (hear, clock, own(0, 1, false)),
        (tell, clock, own(5, 0, false)),
    ];
    until(&mut lines, |lines| lines.iter().all(hears));
    let later = clock.now() + Micros::from_secs(4);
    assert!(lines[0].0.others(later).is_none());
    lines[1].2.has_settled = true;
    until(&mut lines, |lines| lines[0].0.others(later).is_some());
    let (progress, _) = lines[0].0.others(later).expect("it has settled");
    assert_eq!((progress[0].open, progress[0].at), (0, later));
}

#[test]
fn the_last_word_is_said_until_it_is_heard() {
    let clock = Clock::start();
    let [hear, tell] = ends(["backend", "devices"]);
    let mut lines = [
        (hear, clock, own(0, 1, false)),
        (tell, clock, own(0, 0, false)),
    ];
    until(&mut lines, |lines| lines.iter().all(hears));
    let closed = lines.map(|(line, clock, own)| {
        std::thread::spawn(move || {
            let own = Own {
                has_settled: true,
                ..own
            };
            let begun = clock.now();
            let account = line.close(clock, &own, true);
            (account, clock.now() - begun)
        })
    });
    for end in closed {
        let (account, took) = end.join().expect("it ends");
        assert!(took < LINGER, "both knew: {took:?}");
        assert!(account.was_complete && account.ignored == 0, "{account:?}");
    }
}

#[test]
fn nobody_leaves_before_all_have_settled_or_a_second_has_passed() {
    let clock = Clock::start();
    let [hear, tell] = ends(["backend:1/2", "devices"]);
    let at = hear.local_addr().expect("it has one");
    let third = ControlChannel::join(vec![at], member("backend:2/2", 1)).expect("a socket");
    let mut lines = [
        (hear, clock, own(0, 1, false)),
        (tell, clock, own(0, 0, false)),
        (third, clock, own(0, 1, false)),
    ];
    until(&mut lines, |lines| lines.iter().all(hears));
    let now = clock.now();
    let settle = |(line, _, own): &mut (ControlChannel, Clock, Own)| {
        own.has_settled = true;
        line.settled(now);
    };
    lines[..2].iter_mut().for_each(settle);
    until(&mut lines, |lines| {
        let mut peers = lines[0].0.peers.peers.iter();
        peers.any(|peer| peer.status.has_settled)
    });
    for (line, ..) in &lines {
        assert!(!line.may_leave(now), "the third has not settled");
    }
    let second = now + Micros::from_secs(1);
    let may = [0, 1, 2].map(|at| lines[at].0.may_leave(second));
    assert_eq!(may, [true, true, false], "it still listens");
    settle(&mut lines[2]);
    until(&mut lines, |lines| {
        lines.iter().all(|(line, ..)| line.may_leave(now))
    });
}

#[test]
fn the_one_that_tells_knows_how_far_the_clocks_are_apart() {
    let clock = Clock::start();
    for (ms, sign) in [(250, 1), (0, 0), (250, -1)] {
        let mine = if sign < 0 { ahead(clock, ms) } else { clock };
        let theirs = if sign > 0 { ahead(clock, ms) } else { clock };
        let [hear, tell] = ends(["backend", "devices"]);
        let mut lines = [
            (hear, theirs, own(0, 1, false)),
            (tell, mine, own(0, 0, false)),
        ];
        let measured = |lines: &[(ControlChannel, Clock, Own)]| {
            let peers = lines[1].0.peers.peers.iter();
            peers.flat_map(|peer| peer.offset.clone()).next()
        };
        until(&mut lines, |lines| measured(lines).is_some());
        let offset = measured(&lines).expect("it was measured");
        assert_eq!(offset.clock, "clock of backend");
        let error = (offset.ahead_us - sign * 250_000).unsigned_abs();
        assert!(error <= offset.bound_us + 2, "{offset:?}");
        assert!(offset.bound_us < 5_000_000, "{offset:?}");
    }
}

#[test]
fn the_surer_measurement_counts_and_one_that_cannot_be_does_not() {
    let status = |sent, heard| Status {
        sent: Micros(sent),
        last_received: heard,
        clock: "there".to_owned(),
        ..blank()
    };
    let asked = |at, heard| Some((Micros(at), Micros(heard)));
    // 100 us there, 100 us back, 50 us to think; their clock is 1,000 us ahead.
    let sure = Offset::from_status(&status(2_150, asked(1_000, 2_100)), Micros(1_250));
    let sure = sure.expect("it can be");
    assert_eq!((sure.ahead_us, sure.bound_us), (1_000, 100));
    // 900 us there, 100 us back.
    let unsure = Offset::from_status(&status(3_050, asked(1_000, 2_900)), Micros(2_150));
    let unsure = unsure.expect("it can be");
    assert_eq!((unsure.ahead_us, unsure.bound_us), (1_400, 500));
    let better = Offset::better(Some(unsure), Some(sure.clone()));
    assert_eq!(better, Some(sure));
    assert_eq!(Offset::from_status(&status(9_000, None), Micros(1)), None);
    // They had it for longer than it was away.
    assert_eq!(
        Offset::from_status(&status(9_000, asked(1_000, 2_000)), Micros(1_100)),
        None
    );
}

/// A status as nobody who means well would say it.
fn absurd(part: &str, number: u64) -> Status {
    let at = Micros(number);
    let listening = Listening {
        since: at,
        until: at,
    };
    let tally = ChecksummedCount {
        count: number,
        sum: number,
    };
    Status {
        from: part.parse().expect("a part"),
        parts: vec![part.parse().expect("a part")],
        progress: Progress {
            at,
            links_wanted: number,
            links_up: number,
            links_untried: number,
            links_refused: number,
            links_failed: number,
            links_declined: number,
            consumers_wanted: number,
            consumers_up: number,
            consumers_refused: number,
            listening,
            open: number,
            stranded: number,
            behind: number,
            completing: number,
        },
        windows: Windows {
            finals: number,
            sent: number,
            expected: tally,
            arrived: vec![tally],
            last_arrival: vec![Some(at)],
            ..Windows::default()
        },
        sent: at,
        last_received: Some((at, Micros(u64::MAX / 2 - number / 2))),
        ..blank()
    }
}

#[test]
fn words_with_numbers_that_cannot_be_are_borne() {
    let numbers = [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX];
    for (mine, theirs) in numbers
        .into_iter()
        .flat_map(|at| numbers.map(|of| (at, of)))
    {
        let [mut hear, _] = ends(["backend", "devices:1/2"]);
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        for status in [absurd("devices:1/2", mine), absurd("devices:2/2", theirs)] {
            let bytes = status.encoded().expect("it fits");
            hear.peers.receive(at, &bytes, Micros(mine / 2));
        }
        assert_eq!((hear.peers.peers.len(), hear.peers.ignored), (2, 0));
        let (progress, windows) = hear.peers.others(Micros(theirs), None);
        let sum = mine.saturating_add(theirs);
        let heard = progress.len();
        if heard == 2 {
            assert_eq!(Progress::united(progress).open, sum);
            assert_eq!(windows.sent, sum);
        }
        let status = hear
            .peers
            .status_for(Some(0), &own(1, 1, false), Micros(mine));
        assert!(status.encoded().is_some());
    }
}

#[test]
fn instants_that_cannot_be_measure_nothing() {
    let most = i64::MAX.unsigned_abs();
    for at in [0, 1, most - 1, most, u64::MAX] {
        for (asked, heard, sent) in [(0, most, 0), (most, 0, most), (at, 0, most), (0, at, at)] {
            let status = Status {
                sent: Micros(sent),
                last_received: Some((Micros(asked), Micros(heard))),
                ..blank()
            };
            if let Some(offset) = Offset::from_status(&status, Micros(at)) {
                assert!(offset.bound_us <= most, "{offset:?}");
            }
        }
    }
}

#[test]
fn a_word_that_a_later_one_has_overtaken_changes_nothing() {
    let [mut hear, _] = ends(["backend", "devices"]);
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    for (sent, open) in [(2, 5), (1, 9)] {
        let progress = own(open, 0, false).progress;
        let sent = Micros(sent);
        let status = Status {
            sent,
            progress,
            ..blank()
        };
        let bytes = status.encoded().expect("it fits");
        hear.peers.receive(at, &bytes, Micros(10));
    }
    assert_eq!(hear.peers.peers[0].status.progress.open, 5);
}

#[test]
fn a_datagram_longer_than_any_word_is_none() {
    let mut status = blank();
    status.clock = "x".repeat(STATUS_MAX);
    let long = postcard::to_stdvec(&status).expect("memory for it");
    let bytes = [&b"muster-line-3\0"[..], &long].concat();
    assert_eq!(Status::decoded(&bytes), None);
    assert_eq!(status.encoded(), None);
}

proptest! {
    /// Any bytes, and statuses of which any byte was altered, are a status or none; what is one can be
    /// taken in and answered.
    #[test]
    fn no_datagram_panics(
        any in proptest::collection::vec(any::<u8>(), 0..200),
        altered in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..6),
        number in any::<u64>(),
        now in any::<u64>(),
    ) {
        let [mut hear, _] = ends(["backend", "devices:1/2"]);
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let mut bytes = absurd("devices:1/2", number).encoded().expect("it fits");
        hear.peers.receive(at, &bytes, Micros(now));
        for (place, byte) in altered {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for bytes in [&bytes, &any] {
            hear.peers.receive(at, bytes, Micros(now));
        }
        let all = hear.peers.others(Micros(now), None).0;
        let _ = Progress::united(all);
        let _ = hear.peers.status_for(Some(0), &own(1, 1, false), Micros(now)).encoded();
    }
}

fn blank() -> Status {
    let [_, tell] = ends(["backend", "devices"]);
    tell.peers.status_for(None, &own(0, 0, false), Micros::ZERO)
}
