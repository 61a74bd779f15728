export type Theme = "auto" | "light" | "dark";

export const theme = (): Theme => (localStorage.getItem("windlass.theme") as Theme) || "auto";

export function applyTheme(next: Theme = theme()) {
  localStorage.setItem("windlass.theme", next);
  const dark = next === "dark" || (next === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => applyTheme());
