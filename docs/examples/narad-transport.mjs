// A transport from the public TypeScript client of narad/v1 to a Mahati host: attach,
// history and the live stream, over fetch. It runs in Node 20 and in browsers, and needs
// nothing else. docs/narad.md says why it is as it is.

const maxFrame = 1 << 20; // bytes of one frame, as the host promises

/** An error whose code the client's coordinator knows: some of them end it for good. */
export class TransportError extends Error {
  constructor(code, message, status = 0) {
    super(message);
    this.name = 'TransportError';
    this.code = code;
    this.status = status;
  }
}

/**
 * @param {string} base the binding, such as http://127.0.0.1:7717/api/narad/v1
 * @param {{token?: string, settleMs?: number}} [options] token: a Mahati token; in a browser
 *   leave it out and sign in with POST /login. settleMs: how long the stream is left unread
 *   after history has answered null, so that the client is done with attaching (100).
 */
export function createTransport(base, options = {}) {
  const { token, settleMs = 100 } = options;
  const ended = new AbortController();
  const sessions = new Map(); // what is known of each session that was attached

  const headers = (more) => (token ? { ...more, authorization: `Bearer ${token}` } : more);

  async function call(path, { accept, signal } = {}) {
    const answer = await fetch(base + path, {
      headers: headers({ accept: accept ?? 'application/json' }),
      credentials: token ? 'omit' : 'include',
      redirect: 'error',
      cache: 'no-store',
      signal: signal ?? ended.signal,
    });
    if (!answer.ok) throw await refusal(answer);
    return answer;
  }

  const pathOf = (sessionId, tail) => `/sessions/${encodeURIComponent(sessionId)}${tail}`;

  /** What to know before following. Claim nothing: all profiles are active then. */
  async function attach(sessionId, { claimedProfiles = [] } = {}) {
    const query = claimedProfiles.length > 0 ? `?profiles=${encodeURIComponent(claimedProfiles.join(','))}` : '';
    const answer = await (await call(pathOf(sessionId, `/attach${query}`))).json();
    let release;
    const caughtUp = new Promise((resolve) => (release = resolve));
    sessions.set(sessionId, {
      epoch: answer.epoch,
      silenceMs: 3 * (answer.capabilities.heartbeatIntervalMs || 15000),
      last: 0, // the last sequence that history gave
      subscribed: false,
      caughtUp,
      release: () => setTimeout(release, settleMs),
    });
    return { capabilities: answer.capabilities, boundarySessionSequence: answer.boundarySessionSequence };
  }

  /** One page of facts after a sequence; null as the next one says that there are no more. */
  async function history(sessionId, { afterSessionSequence = 0, limit = 100 } = {}) {
    const page = await (
      await call(pathOf(sessionId, `/events?afterSessionSequence=${afterSessionSequence}&limit=${limit}`))
    ).json();
    const session = sessions.get(sessionId);
    if (session) {
      session.last = Math.max(session.last, page.events.at(-1)?.sessionSequence ?? 0);
      if (page.nextSessionSequence === null) session.release();
    }
    return { events: page.events, nextSessionSequence: page.nextSessionSequence };
  }

  /** The facts after a sequence, as they come. It returns at once and asks nothing yet. */
  function subscribeLive(sessionId, { afterSessionSequence = 0, signal } = {}) {
    return live(sessionId, afterSessionSequence, signal);
  }

  // begin: quoted in docs/narad.md
  async function* live(sessionId, after, signal) {
    const session = sessions.get(sessionId);
    if (!session) throw new TransportError('not_attached', 'attach to the session first');
    const stop = new AbortController();
    const over = () => stop.abort();
    for (const s of [signal, ended.signal]) s?.addEventListener('abort', over, { once: true });
    let silence;
    try {
      // The client puts what is live into 256 places while it reads history. So nothing is
      // read before history has answered null; the host keeps it, however much it is.
      await Promise.race([session.caughtUp, aborted(stop.signal)]);
      if (session.subscribed) await sameStore(sessionId, session);
      session.subscribed = true;
      const from = Math.max(after, session.last);
      const answer = await call(pathOf(sessionId, `/stream?afterSessionSequence=${from}`), {
        accept: 'text/event-stream',
        signal: stop.signal,
      });
      const heard = () => {
        clearTimeout(silence);
        silence = setTimeout(over, session.silenceMs); // a dead connection says nothing
      };
      heard();
      for await (const { id, data } of frames(answer.body, heard)) {
        const record = parse(data);
        if (isControl(record)) continue; // no part of the journal: the reducer refuses it
        if (id !== record.eventId) throw new TransportError('frame_id_mismatch', 'a frame has the id of another event');
        yield record;
      }
    } catch (error) {
      // The end of a stream says nothing about the session: the client catches up and
      // comes back. What cannot get better by that is thrown.
      if (error instanceof TransportError) throw error;
    } finally {
      clearTimeout(silence);
      stop.abort();
      for (const s of [signal, ended.signal]) s?.removeEventListener('abort', over);
    }
  }
  // end

  /** After a break the host may have another store, in which no sequence of the old one holds. */
  async function sameStore(sessionId, session) {
    const { epoch } = await (await call(pathOf(sessionId, '/attach'))).json();
    if (epoch !== session.epoch) throw new TransportError('unauthorized', 'the host has another store: attach anew, from 0');
  }

  return { attach, history, subscribeLive, dispose: () => ended.abort() };
}

const isControl = (record) => record.type === 'server.heartbeat' || record.type.startsWith('client.');

const aborted = (signal) =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(new Error('left'));
    signal.addEventListener('abort', () => reject(new Error('left')), { once: true });
  });

/** What a refusal means to the coordinator: unauthorized is for good, all else is tried again. */
async function refusal(answer) {
  const problem = await answer.json().catch(() => ({}));
  const wait = Number(answer.headers.get('retry-after')) || 1;
  const final = [401, 403, 404, 410].includes(answer.status);
  if (!final) await new Promise((resolve) => setTimeout(resolve, Math.min(wait, 30) * 1000));
  const code = final ? 'unauthorized' : (problem.code ?? 'refused');
  return new TransportError(code, `the host answers ${answer.status} ${problem.code ?? ''}`, answer.status);
}

function parse(data) {
  try {
    const record = JSON.parse(data);
    if (typeof record.type === 'string') return record;
  } catch {
    // no JSON, or no object
  }
  throw new TransportError('invalid_frame', 'a frame is no record');
}

/** The frames of an event stream: lines that end at LF, one data line each. */
async function* frames(body, heard) {
  const decoder = new TextDecoder();
  let rest = '';
  let id = '';
  let data;
  for await (const chunk of body) {
    heard();
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop();
    if (rest.length > maxFrame) throw new TransportError('invalid_frame', 'a frame is too large');
    for (const line of lines) {
      if (line.startsWith('id:')) id = line.slice(3).trimStart();
      else if (line.startsWith('data:')) data = line.slice(5).trimStart();
      else if (line === '' && data !== undefined) {
        yield { id, data };
        id = '';
        data = undefined;
      }
    }
  }
}
