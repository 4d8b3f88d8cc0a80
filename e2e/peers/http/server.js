// Answers each POST to a path below /api/ with 201 and an id, in chunks, and says at its end how many there were.
const http = require("node:http");

let count = 0;
let bytes = 0;
const server = http.createServer((request, response) => {
  request.on("data", (chunk) => { bytes += chunk.length; });
  request.on("end", () => {
    if (request.method !== "POST" || !request.url.startsWith("/api/")) {
      response.writeHead(404).end();
      return;
    }
    count += 1;
    response.writeHead(201, { "Content-Type": "application/json" });
    response.write('{"reading":');
    response.end(`{"id":"${count}"}}`);
  });
});
process.on("SIGTERM", () => {
  console.log(`${count} ${bytes}`);
  process.exit(0);
});
server.listen(Number(process.argv[2]), "127.0.0.1");
