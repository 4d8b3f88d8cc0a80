// MQTT.js as `sub` or `pub`; the arguments are those of every client here (interop.sh).
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectAsync } from 'mqtt'

const [command, ...rest] = process.argv.slice(2)
const told = {}
for (let at = 0; at < rest.length; at += 2) told[rest[at].slice(2)] = rest[at + 1]
const count = Number(told.count ?? 1)
const qos = Number(told.qos ?? 0)
const version = told.version === '3.1.1' ? 4 : 5

const options = { protocolVersion: version, reconnectPeriod: 0, clean: true }
if (told.pki) {
  const read = name => readFileSync(join(told.pki, name))
  Object.assign(options, { ca: read('ca.pem'), cert: read('client.pem'), key: read('client.key') })
}
if (told['receive-maximum']) options.properties = { receiveMaximum: Number(told['receive-maximum']) }
if (told.will) options.will = { topic: told.will, payload: 'gone', qos: 1, retain: false }

const client = await connectAsync(told.url, options)
if (command === 'sub') {
  let seen = 0
  client.on('message', (topic, payload, packet) => {
    console.log(`${topic} ${packet.qos} ${packet.retain} ${payload}`)
    seen += 1
    if (seen === count) client.end()
  })
  await client.subscribeAsync(told.topic, { qos })
  console.log('subscribed')
} else {
  const body = n => (told.payload ?? 'm') + (count === 1 ? '' : `-${n}`)
  for (let n = 0; n < count; n++) await client.publishAsync(told.topic, body(n), { qos, retain: 'retain' in told })
  console.log(`accepted ${count}`)
  await client.endAsync()
}
