// The words of the page and what they mean: shown where the pointer rests, or on a tap, and as a list at the end.

const WORDS = {
  "offered": "Messages due by the declared rate, a second of the measured phase.",
  "issued": "Messages handed to the network, a second of the measured phase.",
  "completed": "Messages that ended with an answer, a second of the measured phase.",
  "nominal": "Messages due by the rate alone, whatever a closed loop left out.",
  "scheduled": "Messages that the schedule made due.",
  "due": "Messages that the schedule made due.",
  "omitted": "Nominal less scheduled: what closed loops left out because the answer before was late.",
  "failed": "Rejected, timed out, broken, in flight, or shed for a cause that is not the generator's.",
  "shed": "Due and never sent. Each has one cause: a declared bound, a link that was down, a full queue, or the generator itself.",
  "sent": "Messages whose last byte the kernel accepted.",
  "accepted": "The platform answered yes.",
  "rejected": "The platform answered no, with a code.",
  "timed out": "No answer within the time-out of the stream, counted from sent.",
  "broken": "The link ended before the answer.",
  "unacknowledged": "Sent, and no answer exists by design.",
  "in flight": "Still open when settling ended.",
  "arrived": "First copies at the backend.",
  "lost": "Accepted, and never arrived at the backend.",
  "lost unacknowledged": "Sent without an answer by design, and never arrived.",
  "outstanding": "Not arrived when settling ended; the backend may still deliver it.",
  "not delivered": "Not accepted, and not arrived.",
  "absent": "Not arrived, and the backend had moved past it or was quiet.",
  "late": "Arrived after the deadline of the stream.",
  "duplicates": "Further copies of messages that were sent once.",
  "duplicate own": "Further copies of messages that the generator sent more than once.",
  "reordered": "Overtaken within one consumer and partition (RFC 4737).",
  "corrupted": "Copies whose bytes changed on the way.",
  "foreign": "Copies with the id of another run.",
  "unstamped": "Copies without a readable id.",
  "consumed": "Every copy, counted before it was decoded.",
  "split": "First at two consumers in processes of their own.",
  "retransmitted": "Packets that the protocol sent again. The message counts once.",
  "retried": "Further attempts of one message by the application. The message counts once.",
  "answered late": "Answers that came after the time-out. They change nothing.",
  "no subscriber": "Accepted with the word that nobody subscribes (MQTT 5, 0x10).",
  "transport acknowledged": "Acknowledged by the transport, apart from the application's answer.",
  "residue": "The sum of all differences between counts that must be equal. Anything but 0 is a counting error.",
  "response": "From due to the answer.",
  "service": "From sent to the answer.",
  "end-to-end": "From due to the arrival at the backend.",
  "held": "From taken to sent: the time that the platform, or a limit of the scenario, kept a message back.",
  "lateness": "From due to taken: the delay of the generator itself.",
  "connect": "From the first packet of a connection to the end of the protocol's handshake.",
  "censored": "Messages without an answer. Their time is known only to exceed a bound, which the percentiles of all due use.",
  "answered": "Messages with an answer, whose time is known.",
  "of all due": "The percentiles of every message that was due, with the unanswered at their lower bound.",
  "cold": "Messages that the scenario keeps apart: the first seconds, or the first of each device.",
  "warm": "The measured messages that are not cold.",
  "loss": "Accepted or unacknowledged, and absent at a backend. Counts the whole run.",
  "failure-ratio": "The failed as a share of the scheduled, due while measuring.",
  "connected": "Links up at the end of the connect phase, as a share of those wanted.",
  "disconnects": "Links that the platform ended, from the connect phase to the end of measuring.",
  "incomplete": "Messages at QoS 2 that were accepted by PUBREC and got no PUBCOMP.",
  "no-link-up": "No link was up when connecting ended.",
  "drain": "Nothing is outstanding when settling ends.",
  "stable": "Neither the backlog nor the latency grows under a constant rate.",
  "co-located": "Platform and generator share a machine, so each takes CPU from the other.",
  "not evaluated": "The run did not have what this rule needs; the evidence says what is missing.",
  "recovered": "From the begin of the event until rate and latency were back, to the length of a window.",
};

const meaning = (word) => WORDS[word] || WORDS[word.replace(/ p[\d.]+$| \(own\)$/, "")];

/// A word with its meaning, where there is one.
function term(word, shown = word) {
  const title = meaning(word);
  return title ? el("span", { class: "term", tabindex: 0, title, "data-meaning": title }, shown) : shown;
}

/// Every word with its meaning, for paper and for screens without a pointer.
function words() {
  const rows = Object.entries(WORDS).map(([word, text]) => el("div", {}, el("dt", {}, word), el("dd", {}, text)));
  return card("Words", null, details("What the words of this page mean", el("dl", { class: "words" }, rows)));
}
