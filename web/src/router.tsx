import { createRootRoute, createRoute, createRouter, type RouteComponent } from "@tanstack/react-router";
import { browserHistory, pathOf } from "./parts/history";
import { Broken, later } from "./parts/later";
import { Shell } from "./parts/shell";
import { Jobs } from "./pages/jobs";
import { Overview } from "./pages/overview";

const rootRoute = createRootRoute({
  component: Shell,
  notFoundComponent: () => <p className="empty">There is no such page.</p>,
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

const filtered = <P extends string>(path: P, component: RouteComponent) =>
  createRoute({ getParentRoute: () => rootRoute, path, component, validateSearch: words });

const routeTree = rootRoute.addChildren([
  at("/", Overview),
  filtered("/jobs", Jobs),
  at("/jobs/$id", later(() => import("./pages/job").then((page) => page.JobPage))),
  filtered("/runs", later(() => import("./pages/runs").then((page) => page.Runs))),
  filtered("/runs/$id", later(() => import("./pages/run").then((page) => page.RunPage))),
  at("/workers", later(() => import("./pages/workers").then((page) => page.Workers))),
  at("/workers/$name", later(() => import("./pages/workers").then((page) => page.WorkerPage))),
  at("/definitions", later(() => import("./pages/definitions").then((page) => page.Definitions))),
  at("/definitions/$name", later(() => import("./pages/definition").then((page) => page.DefinitionPage))),
  at("/items", later(() => import("./pages/items").then((page) => page.Items))),
  at("/items/$part", later(() => import("./pages/items").then((page) => page.ItemPage))),
  at("/schedules", later(() => import("./pages/schedules").then((page) => page.Schedules))),
  at("/schedules/$name", later(() => import("./pages/schedules").then((page) => page.SchedulePage))),
  filtered("/events", later(() => import("./pages/events").then((page) => page.Events))),
  at("/tokens", later(() => import("./pages/tokens").then((page) => page.Tokens))),
  at("/settings", later(() => import("./pages/server").then((page) => page.Settings))),
  at("/dialects", later(() => import("./pages/server").then((page) => page.Dialects))),
  at("/audit", later(() => import("./pages/audit").then((page) => page.Audit))),
]);

/** The pages of one namespace. All namespaces share the tab's history. */
export const routerOf = (namespace: string) =>
  createRouter({
    routeTree,
    history: browserHistory,
    basepath: pathOf(namespace),
    caseSensitive: true,
    defaultErrorComponent: Broken,
    // Plain words, so that addresses can be read and typed.
    parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
    stringifySearch: (search) => {
      const text = new URLSearchParams(words(search)).toString();
      return text && `?${text}`;
    },
  });

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof routerOf>;
  }
}
