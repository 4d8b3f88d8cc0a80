// The broker Aedes on three ports of loopback: plain, TLS with client certificates, WebSocket.
import { readFileSync } from 'node:fs'
import { createServer as http } from 'node:http'
import { createServer as tcp } from 'node:net'
import { join } from 'node:path'
import { createServer as tls } from 'node:tls'
import { Aedes } from 'aedes'
import { createWebSocketStream, WebSocketServer } from 'ws'

const [plain, secure, web, pki] = process.argv.slice(2)
const read = name => readFileSync(join(pki, name))
const broker = await Aedes.createBroker()
const listening = (server, port) => new Promise(done => server.listen(Number(port), '127.0.0.1', done))

const mutual = { key: read('server.key'), cert: read('server.pem'), ca: read('ca.pem'), requestCert: true, rejectUnauthorized: true }
const upgrades = http()
new WebSocketServer({ server: upgrades }).on('connection', (socket, request) =>
  broker.handle(createWebSocketStream(socket), request))

await listening(tcp(broker.handle), plain)
await listening(tls(mutual, broker.handle), secure)
await listening(upgrades, web)
console.log('ready')
