import { MutationCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Refused } from "./api/client";
import { keepFresh } from "./api/live";
import { say, Said } from "./parts/said";
import { Gate } from "./parts/gate";
import { applyTheme } from "./parts/theme";
import { router } from "./router";
import "./style.css";

const lost = (error: unknown) => error instanceof Refused && error.status === 0;
const client = new QueryClient({
  mutationCache: new MutationCache({ onError: (error) => say(error.message, "bad") }),
  defaultOptions: {
    queries: {
      staleTime: 2000,
      retry: (count, error) => lost(error) && count < 3,
      retryDelay: 1000,
      refetchOnWindowFocus: true,
    },
  },
});
keepFresh(client);
applyTheme();

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <Gate>
        <RouterProvider router={router} />
      </Gate>
      <Said />
    </QueryClientProvider>
  </StrictMode>,
);
