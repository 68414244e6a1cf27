// The playground: sends a text through the draft's chain, and chats with the draft over server-sent events.
"use strict";

(() => {
  const walkForm = document.querySelector("[data-walk]");
  walkForm?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const place = document.querySelector("[data-walk-result]");
    const button = walkForm.querySelector("button");
    button.disabled = true;
    place.textContent = "…";
    try {
      const response = await fetch(walkForm.dataset.walk, { method: "POST", body: new FormData(walkForm) });
      if (!response.ok) throw new Error(`The server answered ${response.status}. Reload the page and try again.`);
      place.innerHTML = await response.text(); // our own template, escaped by the server
    } catch (problem) {
      place.textContent = problem.message;
    } finally {
      button.disabled = false;
    }
  });

  const chatForm = document.querySelector("[data-chat]");
  if (!chatForm) return;
  const log = document.querySelector("[data-chat-log]");
  const words = JSON.parse(chatForm.dataset.words);
  let history = [];

  function show(side, who, text = "") {
    const item = document.createElement("li");
    item.className = `gh-chat__message gh-chat__message--${side}`;
    const name = document.createElement("p");
    name.className = "gh-chat__who";
    name.textContent = who;
    const body = document.createElement("p");
    body.className = "gh-text";
    body.textContent = text;
    item.append(name, body);
    log.append(item);
    item.scrollIntoView({ block: "nearest" });
    return { item, body };
  }

  function note(item, text, url) {
    const line = document.createElement("p");
    line.className = "gh-note";
    line.textContent = text;
    if (url) {
      const link = document.createElement("a");
      link.href = url;
      link.className = "gh-link";
      link.textContent = words.run;
      line.append(" ", link);
    }
    item.append(line);
  }

  function take(chunk, answer) {
    const payload = chunk.payload ?? {};
    if (chunk.type === "text-delta") answer.body.textContent += payload.text ?? "";
    if (chunk.type === "step-retry") answer.body.textContent = "";
    if (chunk.type === "tool-call") note(answer.item, `${payload.toolName} ${JSON.stringify(payload.args)}`);
    if (chunk.type === "tool-result") note(answer.item, `→ ${JSON.stringify(payload.result)}`);
    if (chunk.type === "tripwire") { answer.body.textContent = ""; note(answer.item, `${words.blocked} ${payload.reason ?? payload.tripwireReason ?? ""}`); }
    if (chunk.type === "error") note(answer.item, `${words.failed} ${payload.message ?? payload.error?.message ?? ""}`);
    if (chunk.type === "finish") note(answer.item, payload.finishReason ?? "", `${chatForm.dataset.runs}${chunk.runId}/change/`);
  }

  chatForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = new FormData(chatForm);
    const text = String(fields.get("text")).trim();
    if (!text) return;
    fields.set("history", JSON.stringify(history));
    const button = chatForm.querySelector("button");
    button.disabled = true;
    show("person", words.you, text);
    const answer = show("agent", words.agent);
    try {
      const response = await fetch(chatForm.dataset.chat, { method: "POST", body: fields });
      if (!response.ok) throw new Error((await response.json()).message);
      chatForm.elements.text.value = "";
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let held = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        held += value;
        const events = held.split("\n\n");
        held = events.pop();
        for (const one of events) if (one.startsWith("data: ")) take(JSON.parse(one.slice(6)), answer);
      }
      history.push({ role: "user", text }, { role: "assistant", text: answer.body.textContent });
    } catch (problem) {
      note(answer.item, `${words.failed} ${problem.message}`);
    } finally {
      button.disabled = false;
      chatForm.elements.text.focus();
    }
  });
  chatForm.elements.text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); chatForm.requestSubmit(); }
  });
  document.querySelector("[data-chat-clear]").addEventListener("click", () => { history = []; log.replaceChildren(); });
})();
