// How the dashboard is built: one script, one style sheet, names that change with their content.
import { defineConfig } from "vite";
import { svelte } from "@sveltejs/vite-plugin-svelte";

export default defineConfig({
  plugins: [svelte({ compilerOptions: { runes: true } })],
  build: {
    outDir: "dist",
    target: "es2022",
    sourcemap: false,
    modulePreload: false,
    // The policy of the page allows no inline script or style, so nothing is inlined.
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: true,
  },
});
