// Parts of the page that are loaded when somebody wants them, or when there is time.

/** Loads once; what failed is tried again by who asks next. */
function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

export const pages = {
  home: once(() => import("../pages/Home.svelte")),
  usage: once(() => import("../pages/Usage.svelte")),
  search: once(() => import("../pages/Search.svelte")),
};

/** What stands around a transcript. */
export const beside = once(() => import("../parts/beside"));

/** Loads everything, so that the page does not need the server to go anywhere. */
export function loadAll(): void {
  for (const load of [...Object.values(pages), beside]) void load().catch(() => {});
}
