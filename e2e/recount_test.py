#!/usr/bin/env python3
"""Shows which messages `recount.py` takes for lost in the air when the gateway cuts a link.

Each case is a facts file and a gateway's account, written by hand: two devices, whose links are cut once
each. The first has a session that is resumed, the second has not.
"""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import recount

RUN = 0x5EED
STREAM = {"name": "t", "topic": "t/${id}"}
RESULT = {
    "run": f"{RUN:x}",
    "phases": [
        {"phase": "measure", "from_s": 0.0, "until_s": 5.0},
        {"phase": "settle", "from_s": 5.0, "until_s": 9.0},
    ],
    "ledger": {"uplink": {"residue": 0}},
    "scenario": {
        "phases": {"settle": {"quiet": "1s"}},
        "platform": {"backend": [{"name": "backend"}]},
        "fleet": [{"name": "d", "first": 0, "count": 2, "streams": [STREAM]}],
    },
}
# What each device's gateway counts apart from its messages: two links and the consumer's, cut and back.
ACCOUNT = {"connected": 5, "commands": 0, "replies": 0, "rejected": 0, "redelivered": 0, "unanswered": 0, "misbehaved": {}}
LINKS = [(0, 0, "connected", "1"), (1, 0, "connected", "1"), (0, 100, "disconnected", "closed")]
LINKS += [(1, 100, "disconnected", "closed"), (0, 200, "connected", "1"), (1, 200, "connected", "1")]


def attempt(device, seq, state="accepted", resent=0):
    code = "closed" if state == "broken" else "-"
    return "attempt", RUN, device, 0, seq, 10, 11, 12, 300, state, code, resent, 0


def copy(device, seq):
    return "arrival", RUN, device, 0, seq, 10, 250, 0, 0, "intact", 0


class Air(unittest.TestCase):
    def differences(self, facts, **account):
        """What differs between these facts and an account of these counts."""
        links = [("link", *link, 0) for link in LINKS]
        lines = ["\t".join(map(str, fact)) + "\n" for fact in [*facts, *links]]
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            at = Path(folder)
            (at / "facts").write_text("# muster-facts/2\n" + "".join(lines))
            (at / "result.json").write_text(json.dumps(RESULT))
            (at / "gateway.json").write_text(json.dumps(ACCOUNT | account))
            recount.complaints.clear()
            facts, result = recount.Facts(at / "facts"), recount.Result(folder)
            backends = [recount.Backend(facts, result, 0)]
            whole = recount.Recount(facts, backends, result, lambda m, a: True)
            recount.compare_gateway(whole, facts, result, folder)
        return sorted(text.split(":")[0] for text in recount.complaints)

    def test_what_was_lost_in_the_air_and_came_again_is_not_absent(self):
        facts = [attempt(0, 0), attempt(0, 1, resent=1), copy(0, 0), copy(0, 1)]
        told = {"received": 1, "received-again": 1, "accepted": 2, "delivered": 2}
        self.assertEqual(self.differences(facts, **told), [])
        # Nor is any other message then: one that nobody saw is lost by somebody.
        unseen = [*facts, attempt(1, 0)]
        told |= {"received": 2, "accepted": 3, "delivered": 3}
        self.assertIn("absent, without those whose id cannot be read", self.differences(unseen, **told))

    def test_what_was_lost_in_the_air_for_good_is_absent(self):
        facts = [attempt(0, 0), attempt(1, 0, "broken"), copy(0, 0)]
        told = {"received": 1, "received-again": 0, "accepted": 1, "delivered": 1}
        self.assertEqual(self.differences(facts, **told), [])
        # It cannot have come all the same.
        seen = [*facts, copy(1, 0)]
        self.assertIn("absent, without those whose id cannot be read", self.differences(seen, **told | {"delivered": 2}))

    def test_both_are_told_apart_in_one_run(self):
        facts = [attempt(0, 0, resent=1), copy(0, 0), attempt(1, 0, "broken")]
        told = {"received": 0, "received-again": 1, "accepted": 1, "delivered": 1}
        self.assertEqual(self.differences(facts, **told), [])
        # Neither stands for the other: each one more or less is a difference.
        for other in ({"received": 1}, {"received-again": 0}, {"received-again": 2}, {"accepted": 2}):
            self.assertNotEqual(self.differences(facts, **told | other), [], other)

    def test_what_came_twice_since_its_answer_was_lost_was_accepted_twice(self):
        facts = [attempt(0, 0, resent=1), copy(0, 0), copy(0, 0)]
        told = {"received": 1, "received-again": 1, "accepted": 2, "delivered": 2}
        self.assertEqual(self.differences(facts, **told), [])
        self.assertEqual(self.differences(facts, **told | {"accepted": 1}), ["accepted"])

    def test_what_came_twice_and_is_lost_both_times_is_lost_by_the_gateway(self):
        facts = [attempt(0, 0, resent=1)]
        told = {"received": 1, "received-again": 1, "accepted": 2, "delivered": 0}
        lost = told | {"misbehaved": {"lose-after-accept": ["00"]}}
        self.assertEqual(self.differences(facts, **lost), [])
        self.assertEqual(self.differences(facts, **told), ["absent, without those whose id cannot be read"])


if __name__ == "__main__":
    unittest.main()
