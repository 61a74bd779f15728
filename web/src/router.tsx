import { createRootRoute, createRoute, createRouter, lazyRouteComponent, type RouteComponent } from "@tanstack/react-router";
import { base } from "./api/client";
import { Shell } from "./parts/shell";
import { Jobs } from "./pages/jobs";
import { Overview } from "./pages/overview";

const rootRoute = createRootRoute({
  component: Shell,
  notFoundComponent: () => <p className="empty">There is no such page.</p>,
  errorComponent: ({ error }) => <p className="fault" role="alert">This page failed: {(error as Error).message}</p>,
});
const at = <P extends string>(path: P, component: RouteComponent) =>
  createRoute({ getParentRoute: () => rootRoute, path, component });

/** Filters of lists are words in the address. */
export const words = (search: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(search)
      .filter(([, value]) => value !== undefined && value !== "")
      .map(([name, value]) => [name, String(value)]),
  ) as Record<string, string>;

const jobs = createRoute({ getParentRoute: () => rootRoute, path: "/jobs", component: Jobs, validateSearch: words });
const runs = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs",
  component: lazyRouteComponent(() => import("./pages/runs"), "Runs"),
  validateSearch: words,
});
const events = createRoute({
  getParentRoute: () => rootRoute,
  path: "/events",
  component: lazyRouteComponent(() => import("./pages/events"), "Events"),
  validateSearch: words,
});
const routeTree = rootRoute.addChildren([
  at("/", Overview),
  jobs,
  at("/jobs/$id", lazyRouteComponent(() => import("./pages/job"), "JobPage")),
  runs,
  at("/runs/$id", lazyRouteComponent(() => import("./pages/run"), "RunPage")),
  at("/workers", lazyRouteComponent(() => import("./pages/workers"), "Workers")),
  at("/workers/$name", lazyRouteComponent(() => import("./pages/workers"), "WorkerPage")),
  at("/definitions", lazyRouteComponent(() => import("./pages/definitions"), "Definitions")),
  at("/definitions/$name", lazyRouteComponent(() => import("./pages/definition"), "DefinitionPage")),
  at("/items", lazyRouteComponent(() => import("./pages/items"), "Items")),
  at("/items/$part", lazyRouteComponent(() => import("./pages/items"), "ItemPage")),
  at("/schedules", lazyRouteComponent(() => import("./pages/schedules"), "Schedules")),
  at("/schedules/$name", lazyRouteComponent(() => import("./pages/schedules"), "SchedulePage")),
  events,
  at("/tokens", lazyRouteComponent(() => import("./pages/tokens"), "Tokens")),
  at("/settings", lazyRouteComponent(() => import("./pages/server"), "Settings")),
  at("/dialects", lazyRouteComponent(() => import("./pages/server"), "Dialects")),
  at("/audit", lazyRouteComponent(() => import("./pages/audit"), "Audit")),
]);

export const router = createRouter({
  routeTree,
  basepath: base.pathname.replace(/\/$/, ""),
  defaultPreload: "intent",
  // Plain words, so that addresses can be read and typed.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const text = new URLSearchParams(words(search)).toString();
    return text && `?${text}`;
  },
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
