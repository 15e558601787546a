// Documents that are saved: fetched with the key, since a link cannot show one.
import { response } from "./api";

/** Fetches a document and lets the browser save it under the name that the server gives. */
export async function download(url: string): Promise<void> {
  const answer = await response(url);
  const name = /filename="([\w.-]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1];
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name ?? "session";
  link.click();
  // The browser has begun to save it by then.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
