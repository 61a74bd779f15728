import { MutationCache, QueryClient, QueryClientProvider, useQueryClient } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode, useMemo } from "react";
import { createRoot } from "react-dom/client";
import { Refused, useNamespace } from "./api/client";
import { keepFresh } from "./api/live";
import { say, Said } from "./parts/said";
import { Gate } from "./parts/gate";
import { NotLoaded } from "./parts/later";
import { applyTheme } from "./parts/theme";
import { routerOf } from "./router";
import "./style.css";

const lost = (error: unknown) => error instanceof Refused && error.status === 0;
/** Where the server was away, or what is in front of it says so. */
const away = (error: unknown) => lost(error) || (error instanceof Refused && error.status >= 502 && error.status <= 504);
const AGAIN_MS = 4000;
const client: QueryClient = new QueryClient({
  mutationCache: new MutationCache({
    onError: (error) => say(error.message, "bad"),
    // What was done shows at once, also where no event tells of it.
    onSuccess: () => void client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind !== "session" }),
  }),
  defaultOptions: {
    queries: {
      staleTime: 2000,
      retry: (count, error) => lost(error) && count < 3,
      retryDelay: 1000,
      refetchOnWindowFocus: true,
      refetchInterval: ({ state }) => (away(state.error) ? AGAIN_MS : false),
    },
  },
});
keepFresh(client);
applyTheme();

/** What was read in one namespace is not shown in another. */
function App() {
  const namespace = useNamespace();
  const client = useQueryClient();
  const router = useMemo(() => {
    client.removeQueries({ predicate: ({ queryKey: [kind] }) => kind !== "session" && kind !== "namespaces" });
    return routerOf(namespace);
  }, [namespace, client]);
  return <RouterProvider key={namespace} router={router} />;
}

// What could not be loaded comes later, and the page says so.
const onCaughtError = (error: unknown) => error instanceof NotLoaded || console.error(error);
createRoot(document.getElementById("root")!, { onCaughtError }).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <Gate>
        <App />
      </Gate>
      <Said />
    </QueryClientProvider>
  </StrictMode>,
);
