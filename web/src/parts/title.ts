// What the browser's tab is called: the page and its state, then where it is.
import { useEffect } from "react";
import { here } from "../api/client";
import { brief } from "./text";

export function useTitle(page: string, state?: string | null) {
  const title = `${brief(page, 80)}${state ? ` (${brief(state, 40)})` : ""} · ${here()} · Windlass`;
  useEffect(() => {
    document.title = title;
  }, [title]);
}
