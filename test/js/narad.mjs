// A client of narad/v1, written from the protocol and from docs/http.md. It needs nothing
// but what browsers and Node have.

import { EventSource } from './eventsource.mjs';

export const version = 'narad/v1';

/** A refusal that is no answer to a command: a problem document. */
export class Problem extends Error {
  constructor(status, document) {
    super(`${status} ${document.code}: ${document.detail ?? ''}`);
    this.status = status;
    this.code = document.code;
  }
}

export class Client {
  constructor(base, token) {
    this.base = base;
    this.headers = { authorization: `Bearer ${token}` };
  }

  async request(method, path, body, headers = {}) {
    const answer = await fetch(this.base + path, {
      method,
      headers: { ...this.headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
      redirect: 'error',
    });
    const kind = (answer.headers.get('content-type') ?? '').split(';')[0];
    const read = await answer.json();
    if (kind === 'application/problem+json') throw new Problem(answer.status, read);
    return { status: answer.status, body: read };
  }

  async get(path) {
    return (await this.request('GET', path)).body;
  }

  capabilities() {
    return this.get('/capabilities');
  }

  async createSession(session) {
    return this.request('POST', '/sessions', session);
  }

  attach(sessionId) {
    return this.get(`/sessions/${sessionId}/attach`);
  }

  /** All facts after a sequence, page by page. */
  async history(sessionId, after = 0, limit = 100) {
    const facts = [];
    for (let next = after; next !== null; ) {
      const page = await this.get(`/sessions/${sessionId}/events?afterSessionSequence=${next}&limit=${limit}`);
      facts.push(...page.events);
      next = page.nextSessionSequence;
    }
    return facts;
  }

  /** Follows a session through an address that may be another one, such as a proxy's. */
  follow(sessionId, after, base = this.base) {
    return new EventSource(`${base}/sessions/${sessionId}/stream?afterSessionSequence=${after}`, { headers: this.headers });
  }

  async command(name, body) {
    const { status, body: answer } = await this.request('POST', `/commands/${name}`, body);
    return { code: status, ...answer };
  }
}

const terminals = new Set(['run.finished', 'run.error', 'run.cancelled']);

/** What a session's facts tell: each is applied once, in the order of the session. */
export class Session {
  last = 0;
  applied = 0;
  repeated = 0;
  runs = new Map(); // by id: its state
  tools = new Map();
  interrupts = new Map();
  texts = new Map();
  #ids = new Map(); // by event id: its bytes, as they came

  apply(fact, text) {
    if (fact.protocolVersion !== version) throw new Error(`the protocol is ${fact.protocolVersion}`);
    const known = this.#ids.get(fact.eventId);
    if (known !== undefined) {
      if (known !== text) throw new Error(`the event ${fact.eventId} came with two contents`);
      this.repeated++;
      return;
    }
    if (fact.sessionSequence !== this.last + 1) throw new Error(`after ${this.last} comes ${fact.sessionSequence}`);
    this.#ids.set(fact.eventId, text);
    this.last = fact.sessionSequence;
    this.applied++;
    this.#reduce(fact);
  }

  #reduce(fact) {
    switch (fact.type) {
      case 'run.started':
      case 'run.resumed':
        this.runs.set(fact.runId, 'running');
        break;
      case 'run.paused':
        this.runs.set(fact.runId, 'paused');
        break;
      case 'interrupt.requested':
        this.interrupts.set(fact.interruptId, { open: true, actions: fact.actions, waitId: fact.waitId, title: fact.title });
        break;
      case 'interrupt.resolved':
        Object.assign(this.interrupts.get(fact.interruptId), { open: false, decision: fact.decision });
        break;
      case 'tool.call.started':
        this.tools.set(fact.toolCallId, { name: fact.toolName, executor: fact.executor, args: fact.args });
        break;
      case 'tool.call.finished':
        Object.assign(this.tools.get(fact.toolCallId), { outcome: fact.outcome, response: fact.response, code: fact.code });
        break;
      case 'message.text.started':
        this.texts.set(fact.messageId, '');
        break;
      case 'message.text.delta':
        this.texts.set(fact.messageId, this.texts.get(fact.messageId) + fact.delta);
        break;
    }
    if (terminals.has(fact.type)) this.runs.set(fact.runId, fact.type.slice('run.'.length));
  }
}

/** An executor: it attaches, and runs what the host sends to it alone, once (§11). */
export class Executor {
  ran = []; // the calls that were executed
  answers = []; // what the host said to each finish
  #client;
  #source;
  #beat;

  /**
   * @param {(token: string) => boolean} accept keeps a token durably; false if it was kept before
   * @param {Record<string, (args: unknown) => unknown>} tools
   */
  constructor(client, id, accept, tools) {
    this.#client = client;
    this.id = id;
    this.accept = accept;
    this.tools = tools;
  }

  async attach() {
    const { body } = await this.#client.request('POST', `/executors/${this.id}/attach`);
    if (body.type !== 'client.attached' || body.clientExecutorId !== this.id) throw new Error(`attach gave a ${body.type}`);
    this.leaseId = body.leaseId;
    this.leaseExpiresAt = Date.parse(body.leaseExpiresAt);
    this.#source = new EventSource(`${this.#client.base}/executors/${this.id}/stream`, {
      headers: { ...this.#client.headers, 'narad-lease': this.leaseId },
    });
    this.#source.onmessage = (message) => this.#take(JSON.parse(message.data), message);
    this.#beat = setInterval(() => this.heartbeat().catch(() => {}), body.heartbeatIntervalMs);
  }

  close() {
    clearInterval(this.#beat);
    this.#source.close();
  }

  control(message) {
    return this.#client.request('POST', `/executors/${this.id}/controls`, { protocolVersion: version, clientExecutorId: this.id, ...message });
  }

  async heartbeat() {
    const { body } = await this.control({ type: 'client.heartbeat', leaseId: this.leaseId });
    if (body.leaseId !== this.leaseId) throw new Error('a heartbeat gave another lease');
    this.leaseExpiresAt = Date.parse(body.leaseExpiresAt);
  }

  async #take(message, frame) {
    if (frame.lastEventId !== '') throw new Error('a control has an id');
    if (message.type === 'client.attached' && message.leaseId === this.leaseId) {
      this.leaseExpiresAt = Date.parse(message.leaseExpiresAt);
    }
    if (message.type !== 'client.tool.execute' || message.clientExecutorId !== this.id) return;
    if (message.leaseId !== this.leaseId || Date.parse(message.executionTokenExpiresAt) <= Date.now()) return;
    if (!this.accept(message.executionToken)) return; // it was accepted before: it never runs twice
    this.ran.push(message);
    let outcome = 'success';
    let response;
    try {
      response = await this.tools[message.toolName](message.args);
    } catch (error) {
      [outcome, response] = ['error', { code: 'execution_failed', message: String(error.message) }];
    }
    this.last = { type: 'client.tool.finish', leaseId: message.leaseId, executionToken: message.executionToken, toolCallId: message.toolCallId, outcome, response };
    this.answers.push(await this.control(this.last));
  }
}
