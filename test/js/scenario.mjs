// Attaches, follows, resumes after cuts, decides and executes a tool, and demands of each
// what the protocol owes. It prints what it has seen as one line of JSON.
//
//   node scenario.mjs BASE DIR     the token is in MAHATI_TOKEN

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { EventSource, EventStreamParser } from './eventsource.mjs';
import { Client, Executor, Problem, Session, version } from './narad.mjs';
import { wire } from './proxy.mjs';

const [base, dir] = process.argv.slice(2);
const client = new Client(base, process.env.MAHATI_TOKEN);
const patience = 30_000;

async function until(what, holds) {
  for (const end = Date.now() + patience; !(await holds()); ) {
    assert.ok(Date.now() < end, `${what} does not come`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The rules of parsing, piece by piece: the rest depends on them. */
function parsing() {
  const read = (text, size) => {
    const parser = new EventStreamParser();
    const bytes = new TextEncoder().encode(text);
    const messages = [];
    for (let i = 0; i < bytes.length; i += size) messages.push(...parser.push(bytes.subarray(i, i + size)));
    return { messages, parser };
  };
  const stream = '\uFEFFid: 1.a\r\ndata: one\r\ndata:two\r\r: comment\n\nid: 2.b\0\ndata: ⚓\n\nretry: 7\nretry: x\nid\ndata\ndata\n\ndata: cut';
  for (let size = 1; size < 40; size++) {
    const { messages, parser } = read(stream, size);
    assert.deepEqual(
      messages.map((m) => [m.data, m.lastEventId]),
      [['one\ntwo', '1.a'], ['⚓', '1.a'], ['\n', '']],
      `in pieces of ${size}`,
    );
    assert.equal(parser.retry, 7);
  }
}

async function attaching() {
  const capabilities = await client.capabilities();
  assert.equal(capabilities.protocolVersion, version);
  const session = { sessionId: 'js', cwd: dir, clientExecutorId: 'js' };
  assert.equal((await client.createSession(session)).status, 201);
  assert.equal((await client.createSession(session)).status, 200, 'the same session again is found');
  const attached = await client.attach('js');
  assert.equal(attached.capabilities.protocolVersion, version);
  assert.equal(attached.capabilities.activeRootRunId, undefined);
  assert.equal(attached.boundarySessionSequence, (await client.history('js')).length);
  await assert.rejects(client.attach('nobody'), (e) => e instanceof Problem && e.status === 404 && e.code === 'not_found');
  await assert.rejects(new Client(base, 'mht_wrong').attach('js'), (e) => e.status === 401);
  return attached;
}

/** A source whose answer is no stream is closed for good, as in a browser. */
async function refused() {
  const source = client.follow('nobody', 0);
  await until('the end of a source that is refused', () => source.readyState === EventSource.CLOSED);
  assert.equal(source.connections, 0);
}

parsing();
const attached = await attaching();
await refused();

const line = await wire(base);
const session = new Session();
const records = new Map(); // by sequence: the record's text
const heartbeats = { seen: 0 };
let broken;
const source = client.follow('js', 0, line.base);
source.onmessage = (message) => {
  try {
    const record = JSON.parse(message.data);
    if (record.type === 'server.heartbeat') {
      heartbeats.seen++;
      assert.equal(message.lastEventId, source.lastEventId, 'a heartbeat moves no cursor');
      return;
    }
    assert.equal(message.lastEventId, record.eventId, 'a frame has the id of its event');
    records.set(record.sessionSequence, message.data);
    session.apply(record, message.data);
  } catch (error) {
    broken ??= error;
  }
};
source.onerror = ({ message }) => (broken ??= message && new Error(message));
const see = (what, holds) =>
  until(what, () => {
    if (broken) throw broken;
    return holds();
  });

// The command is sent twice, as a client does that got no answer: it takes effect once.
const go = { sessionId: 'js', content: 'go', commandId: 'go-1' };
const [first, again] = [await client.command('message', go), await client.command('message', go)];
assert.equal(first.status, 'accepted');
assert.equal(again.runId, first.runId);

// Three cuts in the middle of what comes, wherever that is.
for (const bytes of [2000, 7001, 11_003]) {
  const before = line.cuts;
  line.cutAfter(bytes);
  await see('a cut', () => line.cuts > before);
}
const openInterrupt = () => [...session.interrupts].find(([, i]) => i.open);
await see('an interrupt', openInterrupt);
await see('its pause', () => session.runs.get(first.runId) === 'paused');
assert.ok(source.connections >= 4, `${source.connections} connections after 3 cuts`);

const [interruptId, interrupt] = openInterrupt();
assert.deepEqual(interrupt.actions, ['approve', 'deny']);
const inbox = await client.get('/interrupts?state=open');
assert.ok(inbox.items.some((i) => i.interruptId === interruptId && i.sessionId === 'js'));
const refusedDecision = await client.command('resolve-interrupt', { interruptId, decision: 'maybe' });
assert.deepEqual([refusedDecision.code, refusedDecision.status], [422, 'rejected']);
const decided = await client.command('resolve-interrupt', { interruptId, decision: 'approve', reason: 'read it' });
assert.deepEqual([decided.code, decided.status, decided.decision], [202, 'accepted', 'approve']);
const same = await client.command('resolve-interrupt', { interruptId, decision: 'approve' });
assert.deepEqual([same.code, same.status], [200, 'already_applied']);
const other = await client.command('resolve-interrupt', { interruptId, decision: 'deny' });
assert.deepEqual([other.code, other.status, other.decision], [409, 'conflict', 'approve']);
await see('the decision', () => session.interrupts.get(interruptId).decision === 'approve');

// The call is seen by everybody and executed by nobody until the executor comes.
await see('a client tool', () => [...session.tools.values()].some((t) => t.executor === 'client'));
const ledger = path.join(dir, 'accepted');
const accept = (token) => {
  const file = fs.openSync(ledger, 'a+');
  try {
    if (fs.readFileSync(ledger, 'utf8').split('\n').includes(token)) return false;
    fs.writeSync(file, token + '\n');
    fs.fsyncSync(file); // durably, before anything is done
    return true;
  } finally {
    fs.closeSync(file);
  }
};
let acts = 0;
const executor = new Executor(client, 'js', accept, {
  'note.take': (args) => {
    acts++;
    return { noted: args.text.length, args };
  },
});
await executor.attach();
await see('the end of the run', () => session.runs.get(first.runId) === 'finished');
await executor.heartbeat();
await until('the answer to the finish', () => executor.answers.length === 1);
assert.equal(acts, 1);
assert.deepEqual([executor.answers[0].status, executor.answers[0].body.status], [202, 'accepted']);
const repeated = await executor.control(executor.last);
assert.deepEqual([repeated.status, repeated.body.status], [200, 'already_applied']);
const differs = await executor.control({ ...executor.last, outcome: 'error' });
assert.deepEqual([differs.status, differs.body.status], [409, 'conflict']);
const [call] = executor.ran;
const fact = session.tools.get(call.toolCallId);
assert.deepEqual([fact.name, fact.args], [call.toolName, call.args], 'the control says what the fact says');
assert.deepEqual([fact.outcome, fact.response], ['success', executor.last.response]);

// Silence is filled, and what was seen is what history has.
await see('a heartbeat', () => heartbeats.seen > 0);
const facts = await client.history('js', 0, 37);
await see('the last fact', () => session.last === facts.length);
assert.equal(session.applied, facts.length);
for (const f of facts) assert.deepEqual(JSON.parse(records.get(f.sessionSequence)), f);
for (const secret of [executor.leaseId, call.executionToken]) {
  for (const text of records.values()) assert.ok(!text.includes(secret), 'a secret is on the stream of the session');
}

// A client that knows the last id alone goes on right behind it.
const resumed = [];
const later = new EventSource(`${base}/sessions/js/stream?afterSessionSequence=0`, {
  headers: { ...client.headers, 'last-event-id': facts.at(-3).eventId },
});
later.onmessage = (m) => m.lastEventId && resumed.push(JSON.parse(m.data).sessionSequence);
await until('the last two facts', () => resumed.length >= 2);
later.close();
assert.deepEqual(resumed.slice(0, 2), [facts.length - 1, facts.length]);

source.close();
executor.close();
line.close();
console.log(
  JSON.stringify({
    last: session.last,
    applied: session.applied,
    repeated: session.repeated,
    cuts: line.cuts,
    connections: source.connections,
    executed: acts,
    profiles: attached.capabilities.activeProfiles.length,
    texts: Object.fromEntries(session.texts),
  }),
);
