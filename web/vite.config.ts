import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: '../src/coterie/web',
    emptyOutDir: true,
    target: 'es2022',
    // The service forbids inline scripts, styles and data: every asset is a file of its own.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { output: { codeSplitting: false } },
  },
})
