// Follows a session through the documented transport as the attach coordinator of the
// public client does, and writes what it has seen as one line of JSON.
//
//   node consumer.mjs TRANSPORT BASE SESSION     the token is in MAHATI_TOKEN

import { pathToFileURL } from 'node:url';

const [file, base, sessionId] = process.argv.slice(2);
const { createTransport } = await import(pathToFileURL(file));
const transport = createTransport(base, { token: process.env.MAHATI_TOKEN });

const places = 256; // for live records that cannot be applied yet
const pageSize = 100;
const fatal = new Set(['invalid_frame', 'unauthorized', 'frame_id_mismatch', 'pending_overflow']);
const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A reducer: the order of facts, the states of runs and the texts of messages.
const seen = { last: 0, applied: 0, repeated: 0, runs: {}, texts: {}, tools: {}, subscriptions: 0, failures: 0, mostBuffered: 0 };

function apply(record) {
  const n = record.sessionSequence;
  if (!Number.isInteger(n)) throw new Error(`the reducer got a ${record.type}`);
  if (n <= seen.last) {
    seen.repeated++;
    return true;
  }
  if (n !== seen.last + 1) return false;
  seen.last = n;
  seen.applied++;
  if (record.type === 'run.started') seen.runs[record.runId] = 'running';
  if (/^run\.(finished|error|cancelled)$/.test(record.type)) seen.runs[record.runId] = record.type;
  if (record.type === 'tool.call.finished') seen.tools[record.toolCallId] = record.outcome;
  if (record.type === 'message.text.delta') seen.texts[record.messageId] = (seen.texts[record.messageId] ?? '') + record.delta;
  return true;
}

const over = () => {
  const states = Object.values(seen.runs);
  return states.length > 0 && !states.includes('running');
};

const buffer = [];
let phase = 'attaching';

async function backfill() {
  for (let after = seen.last; ; ) {
    const page = await transport.history(sessionId, { afterSessionSequence: after, limit: pageSize });
    page.events.forEach(apply);
    if (page.nextSessionSequence === null) return;
    after = page.nextSessionSequence;
  }
}

function drain() {
  while (buffer.length > 0 && apply(buffer[0])) buffer.shift();
}

function take(record) {
  if (phase === 'live' && apply(record)) return;
  if (phase === 'live') throw Object.assign(new Error(`a hole after ${seen.last}`), { code: 'invalid_frame' });
  if (buffer.length === places) throw Object.assign(new Error('no place is left'), { code: 'pending_overflow' });
  buffer.push(record);
  seen.mostBuffered = Math.max(seen.mostBuffered, buffer.length);
}

async function consume(after, subscribed) {
  for (;;) {
    try {
      const records = transport.subscribeLive(sessionId, { afterSessionSequence: Math.max(after, seen.last) });
      seen.subscriptions++;
      subscribed();
      for await (const record of records) {
        take(record);
        if (over()) return;
      }
    } catch (error) {
      if (fatal.has(error.code)) throw error;
    }
    phase = 'backfilling';
    try {
      await backfill();
      drain();
    } catch {
      seen.failures++; // the host is away: what is missing comes with the next catching up
    }
    phase = 'live';
    if (over()) return;
    await delay(250);
  }
}

const { boundarySessionSequence } = await transport.attach(sessionId, { claimedProfiles: [] });
let finished;
await new Promise((resolve, reject) => {
  finished = consume(boundarySessionSequence, resolve);
  finished.catch(reject);
});
await backfill();
for (let tick = 0; tick < 32; tick++) {
  drain();
  await delay(0);
}
drain();
phase = 'live';
await finished;
transport.dispose();
console.log(JSON.stringify(seen));
