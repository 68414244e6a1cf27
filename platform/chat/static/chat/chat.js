// The chat page. A run lives on the server; this page asks, watches, and can come back to it at any time.
import { api, messagesAfter } from "./api.js";
import { Mine, problemNotice } from "./bubbles.js";
import { $, button, make, say } from "./dom.js";
import { drawStored } from "./history.js";
import { Link } from "./link.js";
import { Run } from "./run.js";
import { Threads } from "./threads.js";
import { t } from "./words.js";

const facts = JSON.parse($("facts").textContent);
const log = $("log"), field = $("text"), picker = $("agent");
const state = { thread: null, runs: new Map(), sent: new Map(), position: null, opening: 0 };
const agentOf = (slug) => facts.agents.find((agent) => agent.slug === slug);

// ── the view ────────────────────────────────────────────────────────────────
let follows = true;
const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 80;
function toEnd(force = false) {
  if (force) follows = true;
  if (follows) log.scrollTop = log.scrollHeight;
  $("latest").hidden = follows || atEnd();
}
log.addEventListener("scroll", () => { follows = atEnd(); $("latest").hidden = follows; });
log.addEventListener("drawn", () => toEnd());
$("latest").onclick = () => toEnd(true);

const running = () => [...state.runs.values()].find((run) => !run.ended && !run.waiting);
const unfinished = () => [...state.runs.values()].findLast((run) => !run.ended);
function buttons() {
  const busy = Boolean(unfinished()) || state.sent.size > 0;
  $("stop").hidden = !busy;
  $("send").hidden = busy && !field.value.trim();
  log.setAttribute("aria-busy", String(Boolean(running())));
}

function problem(error, ...more) { log.append(problemNotice(error, ...more)); toEnd(); }

function greet() {
  const agent = agentOf(picker.value);
  const empty = make("div", { class: "empty" });
  if (!agent) {
    empty.append(make("h2", { text: t("No agent is published yet") }), make("p", { text: t("An editor can publish one in the console. Then it stands here.") }));
  } else {
    empty.append(make("div", {}, make("h2", { text: agent.name }), make("p", { text: agent.description || t("Ask something.") })),
      make("div", { class: "samples" }, ...agent.samples.map(({ text, about }) =>
        make("button", { type: "button", onclick: () => ask(text) }, make("span", { text }), about ? make("small", { text: about }) : null))));
  }
  log.append(empty);
}

function clear() {
  log.replaceChildren();
  state.runs.clear();
  state.sent.clear();
  state.position = null;
  follows = true;
  buttons();
}

function show(thread) {
  state.thread = thread?.id ?? null;
  threads.current = state.thread;
  threads.draw();
  $("title").textContent = thread?.title || t("New conversation");
  document.title = `${thread?.title || "Chat"} · Gatehouse`;
  history.replaceState(null, "", thread ? `#${thread.id}` : location.pathname);
  side(false);
}

function side(shown) {
  $("side").classList.toggle("shown", shown);
  $("shade").hidden = !shown;
  $("open-side").setAttribute("aria-expanded", String(shown));
  if (shown) $("close-side").focus();
}

// ── asking ──────────────────────────────────────────────────────────────────
function ask(text) {
  if (!text.trim() || !agentOf(picker.value)) return;
  log.querySelector(".empty")?.remove();
  const mine = new Mine(text);
  log.append(mine.node);
  deliver(mine, { type: "message.send", agent: picker.value, threadId: state.thread, text, clientMessageId: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}` });
}

function deliver(mine, frame) {
  mine.node.classList.remove("failed");
  mine.note(link.open ? "" : t("Waits for the connection …"));
  state.sent.set(frame.clientMessageId, { mine, frame });
  link.deliver(frame);
  toEnd(true);
  buttons();
}

function refused(frame) {
  link.confirmed(frame.clientMessageId);
  const { mine, frame: asked } = state.sent.get(frame.clientMessageId);
  state.sent.delete(frame.clientMessageId);
  mine.node.classList.add("failed");
  mine.note(frame.message, button(t("Send again"), () => deliver(mine, { ...asked, threadId: state.thread }), { class: "plain" }),
    button(t("Edit"), () => { mine.node.remove(); field.value = asked.text; grow(); field.focus(); }, { class: "plain" }));
  say(`${t("Not sent")}: ${frame.message}`);
  buttons();
}

const again = (mine) => (mine ? [button(t("Send again"), () => ask(mine.text), { class: "quiet" })] : []);

// ── watching ────────────────────────────────────────────────────────────────
const hooks = {
  log, again, said: say, canApprove: facts.canApprove, canAudit: facts.canAudit,
  decide: (run, toolCallId, approved, reason) => {
    run.waiting = false;
    link.send({ type: "tool.decide", runId: run.id, toolCallId, approved, reason, after: run.seq });
    buttons();
  },
  // which calls wait stands with the run, also when its log is gone
  pending: async (run) => {
    const stored = await api(`runs/${run.id}`).catch(() => null);
    if (run.waiting) for (const call of stored?.approvals ?? []) run.ask(call);
    toEnd();
  },
};

function watch(id, mine) {
  const run = new Run(id, mine, hooks);
  state.runs.set(id, run);
  toEnd();
  buttons();
  return run;
}

// How the person's words are kept is known when the run has ended; a guardrail may have changed them.
async function settle(run) {
  const thread = state.thread;
  threads.load();
  try {
    const { messages } = await messagesAfter(thread, state.position);
    if (thread !== state.thread) return;
    const stored = messages.find((message) => message.runId === run.id && message.role === "user");
    if (stored && run.mine) run.mine.stored(stored);
    if (messages.length && !unfinished()) state.position = messages.at(-1).position;
    const row = threads.find(thread);
    if (row) show(row);
  } catch { /* the next one will tell */ }
}

const handlers = {
  "run.started": (frame) => {
    link.confirmed(frame.clientMessageId);
    const sent = state.sent.get(frame.clientMessageId);
    if (!sent) return;
    state.sent.delete(frame.clientMessageId);
    sent.mine.note("");
    const isNew = state.thread !== frame.threadId;
    state.thread = frame.threadId;
    watch(frame.runId, sent.mine);
    if (!isNew) return;
    show({ id: frame.threadId, title: "" }); // at once: whoever reloads now comes back to it
    threads.load().then(() => { if (state.thread === frame.threadId && threads.find(frame.threadId)) show(threads.find(frame.threadId)); });
  },
  chunk: (frame) => {
    const run = state.runs.get(frame.runId);
    if (!run || frame.seq <= run.seq) return;
    run.seq = frame.seq;
    if (run.waiting) { run.waiting = false; buttons(); }
    run.take(frame.chunk);
    toEnd();
  },
  "run.ended": (frame) => {
    const run = state.runs.get(frame.runId);
    if (!run || run.ended) return;
    run.seq = Math.max(run.seq, frame.seq);
    run.end(frame.status);
    if (run.ended) settle(run);
    buttons();
    toEnd();
  },
  "thread.run": async (frame) => {
    threads.load();
    if (frame.threadId !== state.thread || state.runs.has(frame.runId)) return;
    const { messages } = await messagesAfter(state.thread, state.position);
    if (frame.threadId !== state.thread || state.runs.has(frame.runId)) return;
    const asked = messages.find((message) => message.runId === frame.runId && message.role === "user");
    watch(frame.runId, asked ? drawStored(log, asked, facts) : null);
    link.send({ type: "run.resume", runId: frame.runId, after: 0 });
  },
  error: (frame) => {
    if (state.sent.has(frame.clientMessageId)) refused(frame);
    else if (frame.code === "rate_limited" && !frame.runId) $("link").textContent = frame.message;
    else problem(frame);
    const run = state.runs.get(frame.runId);
    if (frame.toolCallId && run) { run.waiting = true; hooks.pending(run); } // it may still wait
  },
};

async function open(thread) {
  const turn = ++state.opening;
  clear();
  if (agentOf(thread.agent)) picker.value = thread.agent;
  show(thread);
  try {
    const { messages, activeRun } = await messagesAfter(thread.id, null);
    if (turn !== state.opening) return;
    let last = null;
    for (const message of messages) {
      if (message.runId === activeRun && message.role !== "user") continue; // the run itself tells
      const drawn = drawStored(log, message, facts);
      if (message.runId === activeRun) last = drawn;
      else state.position = message.position;
    }
    if (activeRun) {
      watch(activeRun, last);
      link.send({ type: "run.resume", runId: activeRun, after: 0 });
    }
    toEnd(true);
  } catch (error) {
    if (turn === state.opening) problem(error, button(t("Try again"), () => open(thread), { class: "quiet" }));
  }
}

function fresh() {
  state.opening++;
  clear();
  show(null);
  greet();
  if (matchMedia("(hover: hover)").matches) field.focus();
}

const threads = new Threads({
  list: $("threads"), more: $("more"), agentName: (slug) => agentOf(slug)?.name ?? slug, onopen: open, onerror: problem,
  ondeleted: (thread) => { if (thread.id === state.thread) fresh(); },
});
const link = new Link({
  onframe: (frame) => handlers[frame.type]?.(frame),
  onstate: (words) => { $("link").textContent = words; },
  onopen: () => { for (const run of state.runs.values()) if (!run.ended) link.send({ type: "run.resume", runId: run.id, after: run.seq }); },
});

// ── the person ──────────────────────────────────────────────────────────────
const DRAFT = "gatehouse.draft";
function grow() {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
  buttons();
}
field.addEventListener("input", () => { grow(); sessionStorage.setItem(DRAFT, field.value); });
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); $("form").requestSubmit(); }
});
$("form").onsubmit = (event) => {
  event.preventDefault();
  if (!field.value.trim()) return;
  ask(field.value);
  field.value = "";
  sessionStorage.removeItem(DRAFT);
  grow();
};
function stop() {
  for (const run of state.runs.values()) if (!run.ended) link.send({ type: "run.stop", runId: run.id });
}
$("stop").onclick = stop;
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || $("sure").open) return;
  if ($("side").classList.contains("shown")) side(false);
  else if (unfinished()) stop();
});
$("new").onclick = fresh;
picker.onchange = fresh;
$("open-side").onclick = () => side(true);
$("close-side").onclick = $("shade").onclick = () => { side(false); $("open-side").focus(); };
addEventListener("beforeunload", (event) => { if (state.sent.size) event.preventDefault(); });

field.value = sessionStorage.getItem(DRAFT) ?? "";
grow();
const wanted = location.hash.slice(1);
threads.load().then(async () => {
  if (!wanted || state.thread) return;
  const thread = threads.find(wanted) ?? await api(`threads/${encodeURIComponent(wanted)}`).catch(() => null);
  if (thread) open(thread); else fresh();
});
if (!wanted) fresh();
buttons();
