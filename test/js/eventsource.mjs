// An EventSource as browsers have it (WHATWG HTML, "Server-sent events"): its parsing
// rules, its reconnecting with Last-Event-ID, its states. It differs in one thing: header
// fields may be given, since a program has a token where a browser has a cookie.

/** The parsing rules. Each call takes a piece of the stream and returns its messages. */
export class EventStreamParser {
  #decoder = new TextDecoder('utf-8'); // takes a byte order mark away, as the rules say
  #rest = '';
  #afterCR = false;
  #data = '';
  #hasData = false;
  #type = '';
  #id;
  retry = undefined; // milliseconds

  /** A stream that goes on after a break goes on with the last id, as in browsers. */
  constructor(lastEventId = '') {
    this.lastEventId = this.#id = lastEventId;
  }

  push(bytes) {
    const messages = [];
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return messages;
    if (this.#afterCR && text[0] === '\n') text = text.slice(1);
    this.#afterCR = text.endsWith('\r');
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop(); // what has no end yet; a message without a blank line is never dispatched
    for (const line of lines) {
      if (line === '') this.#dispatch(messages);
      else this.#field(line);
    }
    return messages;
  }

  #field(line) {
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    switch (name) {
      case 'event':
        this.#type = value;
        break;
      case 'data':
        this.#data += value + '\n';
        this.#hasData = true;
        break;
      case 'id':
        if (!value.includes('\0')) this.#id = value;
        break;
      case 'retry':
        if (/^[0-9]+$/.test(value)) this.retry = Number(value);
        break;
    }
  }

  #dispatch(messages) {
    this.lastEventId = this.#id; // it stays for what comes without one
    if (this.#hasData && this.#data !== '') {
      messages.push({ type: this.#type || 'message', data: this.#data.slice(0, -1), lastEventId: this.lastEventId });
    }
    this.#data = '';
    this.#hasData = false;
    this.#type = '';
  }
}

export class EventSource {
  static CONNECTING = 0;
  static OPEN = 1;
  static CLOSED = 2;

  readyState = EventSource.CONNECTING;
  onopen = null;
  onmessage = null;
  onerror = null;
  connections = 0; // how often it has connected, for tests

  #stop = new AbortController();
  #lastEventId = '';
  #retry;

  constructor(url, { headers = {}, retry = 100 } = {}) {
    this.url = url;
    this.headers = headers;
    this.#retry = retry;
    this.#run();
  }

  get lastEventId() {
    return this.#lastEventId;
  }

  close() {
    this.readyState = EventSource.CLOSED;
    this.#stop.abort();
  }

  async #run() {
    while (this.readyState !== EventSource.CLOSED) {
      this.readyState = EventSource.CONNECTING;
      const fatal = await this.#connect();
      if (this.readyState === EventSource.CLOSED) return;
      if (fatal) {
        this.readyState = EventSource.CLOSED;
        this.onerror?.({ type: 'error', message: fatal });
        return;
      }
      this.readyState = EventSource.CONNECTING;
      this.onerror?.({ type: 'error' });
      await new Promise((resolve) => setTimeout(resolve, this.#retry));
    }
  }

  /** One connection. It returns why there must be no other, or nothing. */
  async #connect() {
    const headers = { accept: 'text/event-stream', ...this.headers };
    if (this.#lastEventId !== '') headers['last-event-id'] = this.#lastEventId;
    let answer;
    try {
      answer = await fetch(this.url, { headers, cache: 'no-store', redirect: 'error', signal: this.#stop.signal });
    } catch {
      return; // the network: try again
    }
    const kind = (answer.headers.get('content-type') ?? '').split(';')[0].trim();
    if (answer.status !== 200 || kind !== 'text/event-stream') {
      await answer.body?.cancel();
      return `the answer is ${answer.status} ${kind}`;
    }
    this.connections++;
    this.readyState = EventSource.OPEN;
    this.onopen?.({ type: 'open' });
    const parser = new EventStreamParser(this.#lastEventId);
    try {
      for await (const bytes of answer.body) {
        for (const message of parser.push(bytes)) {
          if (this.readyState === EventSource.CLOSED) return;
          this.#lastEventId = message.lastEventId;
          if (message.type === 'message') this.onmessage?.(message);
        }
        this.#lastEventId = parser.lastEventId;
        if (parser.retry !== undefined) this.#retry = parser.retry;
      }
    } catch {
      // it broke: try again
    }
  }
}
