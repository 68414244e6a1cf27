// One run on the screen: chunks become answers, tool cards and notices. Whatever a step has shown can be withdrawn.
import { aside, Answer, guardNotice, problemNotice, Thought } from "./bubbles.js";
import { make } from "./dom.js";
import { ToolCard } from "./toolcard.js";
import { t } from "./words.js";

export class Run {
  constructor(id, mine, hooks) {
    Object.assign(this, { id, mine, hooks, seq: 0, ended: false, waiting: false, failed: false, tools: new Map(), step: [], answer: null, thought: null });
    this.typing = make("div", { class: "typing", text: "" }, make("i"), make("i"), make("i"), make("span", { class: "hidden", text: t("The agent is writing") }));
    this.place = make("div", { class: "hidden" }); // what a run shows stands before this mark
    this.all = [];
    hooks.log.append(this.typing, this.place);
  }

  add(node) {
    this.place.before(node);
    this.step.push(node);
    this.all.push(node);
    this.place.before(this.typing);
    return node;
  }

  take(chunk) {
    const payload = chunk.payload ?? {};
    switch (chunk.type) {
      case "text-delta": return this.text(payload.text);
      case "reasoning-delta": return this.think(payload.text);
      case "text-end": return this.close();
      case "reasoning-end": this.thought = null; return;
      case "step-start": return this.typing.hidden = false;
      case "tool-call": return this.card(payload);
      case "tool-result": return this.card(payload).done(payload.result);
      case "tool-error": return this.card(payload).fail(payload.error);
      case "tool-call-approval": return this.ask(payload);
      case "data-tool-progress": return this.progress(chunk.data ?? {});
      case "step-finish": this.close(); this.step = []; return;
      case "step-retry": return this.withdraw(t("What stood here was withdrawn; the answer is written anew."));
      case "log-reset": return this.reset();
      case "tripwire": return this.stopped(payload);
      case "error": return this.broken(payload.error);
      case "abort": return this.say(t("Stopped."));
      default: return; // chunks that a newer server may send
    }
  }

  text(text) {
    if (!this.answer) {
      this.answer = new Answer();
      this.add(this.answer.node);
      this.typing.hidden = true;
    }
    this.answer.add(text);
  }

  think(text) {
    if (!this.thought) {
      this.thought = new Thought();
      this.add(this.thought.node);
    }
    this.thought.add(text);
  }

  close() {
    if (this.answer) {
      this.answer.end();
      this.said = this.answer.text;
      (this.answers ??= []).push(this.answer);
    }
    this.answer = this.thought = null;
  }

  withdraw(words) {
    clearTimeout(this.answer?.timer);
    for (const node of this.step) node.remove();
    for (const [id, card] of this.tools) if (!card.node.isConnected) this.tools.delete(id);
    this.answers = this.answers?.filter((answer) => answer.node.isConnected);
    this.step = [];
    this.answer = this.thought = null;
    this.typing.hidden = false;
    if (words) this.note = this.note?.isConnected ? this.note : this.addQuietly(aside(words));
  }

  addQuietly(node) {
    this.place.before(node);
    this.all.push(node);
    this.place.before(this.typing);
    return node;
  }

  reset() {
    this.step = this.all;
    this.withdraw("");
    this.all = [];
  }

  card({ toolCallId, toolName, args }) {
    let card = this.tools.get(toolCallId);
    if (!card) {
      this.close();
      card = new ToolCard(toolName, args);
      this.tools.set(toolCallId, card);
      this.add(card.node);
    }
    return card;
  }

  progress(data) { this.tools.get(data.toolCallId)?.progress(data); }

  ask(call) {
    this.card(call).ask((approved, reason) => this.hooks.decide(this, call.toolCallId, approved, reason), this.hooks.canApprove);
    this.typing.hidden = true;
    this.hooks.said(t("The tool %s waits for approval.", call.toolName));
  }

  stopped({ reason, processorId }) {
    this.close();
    for (const answer of this.answers ?? []) answer.block();
    this.mine?.block();
    this.addQuietly(guardNotice(reason, { runId: this.id, processorId, canAudit: this.hooks.canAudit }));
    this.hooks.said(`${t("Stopped by a guardrail")}: ${reason}`);
  }

  broken(error) {
    this.close();
    this.failed = true;
    for (const node of this.step) if (node.matches(".message")) node.classList.add("blocked"); // half an answer
    this.addQuietly(problemNotice(error, ...this.hooks.again(this.mine)));
  }

  say(words) { this.close(); this.addQuietly(aside(words)); }

  // The end of a stretch. A run that waits for a decision goes on afterwards.
  end(status) {
    this.close();
    this.typing.hidden = true;
    this.waiting = status === "waiting";
    this.ended = !this.waiting;
    if (this.waiting) { this.hooks.pending(this); return; }
    for (const card of this.tools.values()) if (card.open) card.settle(t("stopped"), "wrong");
    if (status === "interrupted" && !this.failed) this.broken({ name: "Interrupted" });
    if (status === "failed" && !this.failed) this.broken({});
    if (status === "completed" && this.said) this.hooks.said(this.said);
  }
}
