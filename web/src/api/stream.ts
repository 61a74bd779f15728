// A stream of server-sent events that comes back by itself, whatever ended it.
const AGAIN_MS = 2000;

type Follow = {
  url: () => string;
  kinds: string[];
  hear: (event: MessageEvent, close: () => void) => void;
  /** A stream begins, the first or another one. */
  begin?: () => void;
  state: (state: "open" | "down") => void;
};

export function follow({ url, kinds, hear, begin, state }: Follow): () => void {
  let source: EventSource;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const close = () => {
    clearTimeout(timer);
    source.close();
  };
  const open = () => {
    begin?.();
    source = new EventSource(url());
    source.onopen = () => state("open");
    // What was a refusal the browser does not try again; a lost connection it does.
    source.onerror = () => {
      state("down");
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, AGAIN_MS);
    };
    for (const kind of kinds) source.addEventListener(kind, (event) => hear(event, close));
  };
  open();
  return close;
}
