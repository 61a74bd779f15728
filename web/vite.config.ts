import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Addresses in the page are relative to its <base>, so that the dashboard works behind any prefix.
export default defineConfig({
  base: "./",
  plugins: [react()],
  build: { outDir: "out", target: "es2022", sourcemap: false, assetsInlineLimit: 0, chunkSizeWarningLimit: 700 },
  server: { proxy: { "/api": "http://127.0.0.1:3000" } },
});
