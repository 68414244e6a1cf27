// The REST API, as the signed-in person.
import { t } from "./words.js";

export class ApiError extends Error {
  constructor(status, error) {
    super(error?.message ?? t("The server cannot be reached. Check your connection and try again."));
    this.status = status;
    this.code = error?.code ?? "unreachable";
  }
}

const token = () => document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1] ?? "";

export async function api(path, { method = "GET", body } = {}) {
  let answer;
  try {
    answer = await fetch(path.startsWith("http") || path.startsWith("/") ? path : `/api/v1/${path}`, {
      method,
      headers: { Accept: "application/json", "X-CSRFToken": token(), ...(body ? { "Content-Type": "application/json" } : {}) },
      body: body && JSON.stringify(body),
    });
  } catch {
    throw new ApiError(0);
  }
  if (answer.status === 204) return null;
  const data = await answer.json().catch(() => null);
  if (answer.status === 401 || data?.error?.code === "not_authenticated") location.reload();
  if (!answer.ok) throw new ApiError(answer.status, data?.error);
  return data;
}

// All messages of a conversation after a position, however many there are.
export async function messagesAfter(thread, after) {
  const found = [];
  let activeRun = null;
  for (let page = 0; page < 40; page++) {
    const query = new URLSearchParams({ limit: "500", ...(after === null ? {} : { after }) });
    const data = await api(`threads/${thread}/messages?${query}`);
    found.push(...data.results);
    activeRun = data.activeRun;
    if (data.results.length < 500) break;
    after = data.results.at(-1).position;
  }
  return { messages: found, activeRun };
}
