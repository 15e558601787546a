// How the dashboard is built: a small script that begins, one for the transcript, and one for
// each other page; one style sheet; names that change with their content.
import { defineConfig, type Plugin } from "vite";
import { svelte } from "@sveltejs/vite-plugin-svelte";

/** Lets the browser fetch the frame of every page beside the script that asks for it. */
function together(): Plugin {
  return {
    name: "together",
    transformIndexHtml: {
      order: "post",
      handler(_, { bundle }) {
        const chunks = Object.values(bundle ?? {}).filter((one) => one.type === "chunk");
        const main = chunks.find((one) => one.name === "main");
        if (!main) throw new Error("the page has no frame");
        const files = [main.fileName, ...main.imports].filter((file) => !chunks.find((one) => one.fileName === file)?.isEntry);
        return files.map((file) => ({ tag: "link", attrs: { rel: "modulepreload", href: `/${file}`, crossorigin: true }, injectTo: "head" }));
      },
    },
  };
}

export default defineConfig({
  plugins: [svelte({ compilerOptions: { runes: true } }), together()],
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
