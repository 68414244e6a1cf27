// Messages as they are stored, drawn again after a reload.
import { Answer, aside, guardNotice, Mine, problemNotice, textOf, Thought } from "./bubbles.js";
import { ToolCard } from "./toolcard.js";
import { t } from "./words.js";

function toolPart(part) {
  const call = part.toolInvocation ?? {};
  const card = new ToolCard(call.toolName, call.args);
  if (call.state === "result") card.done(call.result);
  else if (call.state === "error") card.fail(call.errorText ?? t("failed"));
  else if (call.state === "denied") card.fail(t("declined"));
  else card.set(t("not finished"));
  return card.node;
}

function partNode(part, message, facts) {
  switch (part.type) {
    case "text": {
      if (!part.text.trim()) return null;
      const answer = new Answer();
      answer.text = part.text;
      answer.end();
      if (message.status === "blocked") answer.block();
      return answer.node;
    }
    case "reasoning": {
      const thought = new Thought();
      thought.add(part.text);
      return thought.node;
    }
    case "tool-invocation": return toolPart(part);
    case "notice": return guardNotice(part.reason, { runId: message.runId, processorId: part.processorId, canAudit: facts.canAudit });
    case "error": return problemNotice(part.error);
    default: return null;
  }
}

export function drawStored(log, message, facts) {
  if (message.role === "user") {
    const mine = new Mine(textOf(message));
    if (message.status === "blocked") mine.block();
    if (message.withheld) mine.withhold();
    log.append(mine.node);
    return mine;
  }
  if (message.role !== "assistant") return null;
  log.append(...message.parts.map((part) => partNode(part, message, facts)).filter(Boolean));
  if (message.status === "cancelled") log.append(aside(t("Stopped.")));
  return null;
}
