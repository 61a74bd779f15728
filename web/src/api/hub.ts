export type Pulse = {
  jobs?: Record<string, string>;
  runs?: Record<string, string>;
  counts?: Record<string, number>;
  more?: boolean;
};
export type Message = { hello: { version: string; now: string } } | { pulse: Pulse } | { down: true };
type Send = (message: Message) => void;

const AGAIN_MS = 2000;

class Stream {
  readonly sends = new Set<Send>();
  private source?: EventSource;
  private timer?: ReturnType<typeof setTimeout>;
  private last?: Message;

  constructor(private readonly url: string) {
    this.open();
  }

  private open() {
    this.source = new EventSource(this.url);
    this.source.addEventListener("hello", (event) => this.tell({ hello: JSON.parse(event.data) }));
    this.source.addEventListener("pulse", (event) => this.tell({ pulse: JSON.parse(event.data) }));
    this.source.onerror = () => {
      this.tell({ down: true });
      // A refusal ends the source for good; a lost connection it mends itself.
      if (this.source?.readyState === EventSource.CLOSED) this.timer = setTimeout(() => this.open(), AGAIN_MS);
    };
  }

  private tell(message: Message) {
    if (!("pulse" in message)) this.last = message;
    for (const send of this.sends) send(message);
  }

  add(send: Send) {
    this.sends.add(send);
    if (this.last) send(this.last);
  }

  close() {
    this.source?.close();
    clearTimeout(this.timer);
  }
}

/** Who listens to which stream. A stream is open while somebody does. */
export class Hub {
  private readonly streams = new Map<string, Stream>();

  join(url: string, send: Send) {
    this.leave(send);
    let stream = this.streams.get(url);
    if (!stream) this.streams.set(url, (stream = new Stream(url)));
    stream.add(send);
  }

  leave(send: Send) {
    for (const [url, stream] of this.streams) {
      if (stream.sends.delete(send) && stream.sends.size === 0) {
        stream.close();
        this.streams.delete(url);
      }
    }
  }
}
