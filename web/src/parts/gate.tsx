// Nothing is shown before it is known who is asking.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type FormEvent, type ReactNode, useContext, useEffect, useState } from "react";
import { call, Refused, type Session, setPageKey, useNamespace, whenSignedOut } from "../api/client";
import { connect, disconnect, setClock, useLiveState } from "../api/live";
import { goTo, listShown, wasNamed } from "./history";
import { loadAll } from "./later";
import { say } from "./said";

const SessionContext = createContext<Session | null>(null);
export const useSession = () => useContext(SessionContext)!;
export const useMay = () => {
  const { role } = useSession();
  return { edit: role === "editor" || role === "admin", admin: role === "admin" };
};

/** A session of some namespaces only sees no others. */
export const maySee = (session: Session, namespace: string) => session.namespaces.length === 0 || session.namespaces.includes(namespace);

/** The code of a one-time link is behind the `#`, so that no server and no log sees it. */
function takeCode(): string | undefined {
  const code = /^#code=(.+)$/.exec(location.hash)?.[1];
  if (code) history.replaceState(history.state, "", location.pathname + location.search);
  return code && decodeURIComponent(code);
}
let code = takeCode();

async function session(): Promise<Session | null> {
  if (code) {
    const used = code;
    code = undefined;
    return await call<Session>("POST", "session", { body: { code: used }, anywhere: true });
  }
  try {
    return await call<Session>("GET", "session", { anywhere: true });
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return null;
    throw error;
  }
}

export function Gate({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [ended, setEnded] = useState(false);
  const found = useQuery({ queryKey: ["session"], queryFn: session, staleTime: Infinity, retry: 2 });
  const known = found.data ?? null;
  const namespace = useNamespace();
  const endSession = () => {
    setEnded(true);
    disconnect();
  };
  useEffect(() => whenSignedOut(endSession), []);
  useEffect(() => {
    if (!known) return;
    setPageKey(known.page_key ?? null);
    setClock(known.now);
    if (!maySee(known, namespace) && !wasNamed) return goTo(known.namespaces[0], listShown(), true);
    if (maySee(known, namespace)) connect();
    return disconnect;
  }, [known, namespace]);
  const isKnown = known !== null;
  useEffect(() => {
    if (isKnown) void loadAll();
  }, [isKnown]);
  const live = useLiveState();
  useEffect(() => {
    if (live !== "down" || !known || ended) return;
    // A stream that is refused does not say why: it may be that the session is over.
    const look = () => void session().then((now) => now ?? endSession()).catch(() => {});
    const timer = setInterval(look, 3000);
    look();
    return () => clearInterval(timer);
  }, [live, known, ended]);
  const signedIn = (next: Session) => {
    // Before anything below asks with it.
    setPageKey(next.page_key ?? null);
    client.setQueryData(["session"], next);
    setEnded(false);
    void client.invalidateQueries({ predicate: (query) => query.queryKey[0] !== "session" });
  };
  if (found.isPending) return <p className="center" aria-busy="true">Connecting…</p>;
  if (found.isError && !(found.error instanceof Refused && found.error.status === 401)) {
    return (
      <main className="center">
        <h1>Windlass</h1>
        <p className="bad-text" role="alert">{found.error.message}</p>
        <button onClick={() => void found.refetch()}>Try again</button>
      </main>
    );
  }
  if (!known) return <SignIn done={signedIn} why={found.error?.message} />;
  setPageKey(known.page_key ?? null);
  return (
    <SessionContext.Provider value={known}>
      {children}
      {ended && (
        <div className="veil">
          <SignIn done={signedIn} why="The session has ended. Sign in again to go on where you were." />
        </div>
      )}
    </SessionContext.Provider>
  );
}

function SignIn({ done, why }: { done: (session: Session) => void; why?: string }) {
  const [fault, setFault] = useState(why ?? "");
  const [busy, setBusy] = useState(false);
  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get("token") ?? "");
    setBusy(true);
    try {
      done(await call<Session>("POST", "session", { body: { token }, anywhere: true }));
    } catch (error) {
      setFault((error as Error).message);
      setBusy(false);
    }
  }
  return (
    <main className="center">
      <form className="card sign-in" onSubmit={submit}>
        <h1>Windlass</h1>
        <label htmlFor="token">Token</label>
        <input id="token" name="token" type="password" autoComplete="current-password" autoFocus required />
        <button className="primary" disabled={busy}>
          Sign in
        </button>
        <p role="alert" className="bad-text">
          {fault}
        </p>
        <p className="quiet">
          The first start of a server writes an admin's token to <code>admin.token</code> in its data folder.
          <br />
          <code>windlass token create NAME --role viewer</code> makes another.
        </p>
      </form>
    </main>
  );
}

export async function signOut() {
  try {
    await call("DELETE", "session", { anywhere: true });
    location.reload();
  } catch (error) {
    say(`You are still signed in. ${(error as Error).message}`, "bad");
  }
}
