// Carries lines of standard input to an address of AMQP 1.0, each line one message: in turns as a section of data, as
// text, as bytes and as two sections of data. Prints `sent N` once the peer has settled all of them.
//
//     node bridge.mjs PORT USER PASSWORD ADDRESS

import readline from "node:readline";
import rhea from "rhea";

const [port, username, password, address] = process.argv.slice(2);
const connection = rhea.connect({ host: "127.0.0.1", port: Number(port), username, password });
const sender = connection.open_sender({ target: address });
const waiting = [];
let [sent, settled, ended] = [0, 0, false];

// body: the payload in the form of that number.
function body(payload, number) {
  const bytes = Buffer.from(payload);
  const half = bytes.length >> 1;
  switch (number % 4) {
    case 0: return rhea.message.data_section(bytes);
    case 1: return payload;
    case 2: return rhea.types.wrap_binary(bytes);
    default: return rhea.message.data_sections([bytes.subarray(0, half), bytes.subarray(half)]);
  }
}

function flush() {
  while (waiting.length > 0 && sender.sendable()) {
    sender.send({ to: address, body: body(waiting.shift(), sent) });
    sent += 1;
  }
  if (ended && waiting.length === 0 && settled === sent) {
    console.log(`sent ${sent}`);
    connection.close();
  }
}

connection.on("sendable", flush);
connection.on("settled", () => { settled += 1; flush(); });
connection.on("disconnected", (context) => { console.error(`disconnected: ${context.error ?? ""}`); });
const lines = readline.createInterface({ input: process.stdin });
lines.on("line", (line) => { waiting.push(line); flush(); });
lines.on("close", () => { ended = true; flush(); });
