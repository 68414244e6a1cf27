"""Stops attempts to overrule the agent's instructions, in what people write, in tool results and in tool descriptions."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from pydantic import Field

from processors.builtin.detectors.findings import Finding, keyed_hash, merge, replace_regions
from processors.builtin.detectors.injection import Verdict, judge
from processors.builtin.detectors.injection_rules import AttackType
from processors.builtin.detectors.json_text import change_texts
from processors.engine.hooks import HookArgs, ProcessInputArgs, ProcessInputStepArgs, ProcessToolResultArgs
from processors.engine.messages import Message
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "prompt-injection-detector"
REMOVED: Final = "[removed]"
MOST_ROUNDS: Final = 5
WITHHELD: Final = "[withheld: this text tried to give instructions]"
_TYPES: Final[tuple[AttackType, ...]] = ("injection", "jailbreak", "tool-exfiltration", "data-exfiltration", "system-override", "role-manipulation")  # fmt: skip
_TITLES: Final = {
    "injection": "Instructions hidden in content", "jailbreak": "Jailbreaks", "tool-exfiltration": "Misuse of tools", "data-exfiltration": "Requests for secrets and other people's data",
    "system-override": "Overruling the instructions", "role-manipulation": "False authority and pressure",
}  # fmt: skip


class PromptInjectionOptions(Options):
    """What counts as an attack, where to look and what happens."""

    detection_types: list[AttackType] = Field(list(_TYPES), title="Kinds of attack", description="Which kinds count.", min_length=1, json_schema_extra={"x-labels": _TITLES})  # fmt: skip
    threshold: float = Field(0.7, title="Threshold", description="Score from which a text is refused. Lower catches more and stops more harmless texts.", ge=0.1, le=1.0)  # fmt: skip
    strategy: Literal["block", "warn", "filter", "redact"] = Field(
        "block", title="What to do",
        description="Block the run, only report, withhold the message or the tool's result, or take out the sentences that give the instructions.",
        json_schema_extra={"x-labels": {"redact": "Take out the sentences"}},
    )  # fmt: skip
    decode: bool = Field(True, title="See through disguises", description="Also read base64, hex, Morse, rot13, leet, letters set apart, look-alike and hidden characters.")  # fmt: skip
    tool_results: bool = Field(True, title="Screen tool results", description="Web pages and documents that tools fetch are where injected instructions usually come from.", json_schema_extra={"x-group": "Where"})  # fmt: skip
    tool_descriptions: bool = Field(True, title="Screen tool descriptions", description="Hide tools whose description gives the model instructions of its own.", json_schema_extra={"x-group": "Where"})  # fmt: skip


class PromptInjectionDetector(Processor):
    """Rules over all readings of a text; signs that stand together add up to a score."""

    def __init__(self, id: str, options: PromptInjectionOptions, context: BuildContext) -> None:
        super().__init__(id)
        self.options = options
        self.redacts = options.strategy in ("filter", "redact")
        self._hash_key = context.hash_key

    # Hooks

    def process_input(self, args: ProcessInputArgs) -> list[Message] | None:
        kept = [message for message in args.messages if self._may_stay(args, message)]
        return kept if len(kept) < len(args.messages) else None

    def _may_stay(self, args: HookArgs, message: Message) -> bool:
        """False: the message was withheld as a whole. The text is judged as the model reads it, all parts together."""
        text = message.text
        shown = self._screened(args, text, "input")
        if shown == text:
            return True
        if shown != WITHHELD:
            message.set_text(shown)
            return True
        message.content.parts[:] = [part for part in message.content.parts if part.get("type") not in ("text", "reasoning")]  # fmt: skip
        message.content.legacy = None
        return bool(message.content.parts)

    def process_tool_result(self, args: ProcessToolResultArgs) -> None:
        if not self.options.tool_results:
            return
        changed = change_texts(
            args.result, lambda text: self._screened(args, text, "tool-result", args.tool_name)
        )
        if changed is not args.result:
            args.message_list.update_tool_invocation(tool_call_id=args.tool_call_id, result=changed)

    def process_input_step(self, args: ProcessInputStepArgs) -> dict[str, Any] | None:
        """Hide tools whose description attacks the model. Each description is judged once per run."""
        if not self.options.tool_descriptions:
            return None
        seen: dict[str, bool] = args.state.setdefault("descriptions", {})
        hidden = []
        for name, tool in args.tools.items():
            text = str(getattr(tool, "description", "") or "")
            if text not in seen:
                verdict = self._verdict(text, "tool-description")
                seen[text] = verdict is not None
                if verdict is not None:
                    message, detail = self._report(verdict, text, "tool-description", name)
                    args.report_violation(f"The tool {name} was hidden: its description gives instructions.", {**detail, "strategy": "filter", "message": message})  # fmt: skip
            if seen[text]:
                hidden.append(name)
        if not hidden or self.options.strategy == "warn":
            return None
        return {"tools": {name: tool for name, tool in args.tools.items() if name not in hidden}}

    # Judging

    def _verdict(self, text: str, where: str) -> Verdict | None:
        """The verdict if it is a refusal."""
        verdict = judge(
            text,
            decode=self.options.decode,
            types=self.options.detection_types,
            from_tool=where == "tool-result",
        )
        return verdict if verdict.score >= self.options.threshold else None

    def _screened(self, args: HookArgs, text: str, where: str, tool: str = "") -> str:
        """The text as it may go on: itself, without the sentences of the attack, or `WITHHELD`."""
        verdict = self._verdict(text, where)
        if verdict is None:
            return text
        message, detail = self._report(verdict, text, where, tool)
        if self.options.strategy == "block":
            args.abort(message, metadata=detail)
        args.report_violation(message, detail)
        if self.options.strategy == "warn":
            return text
        return self._cleaned(text, verdict, where) if self.options.strategy == "redact" else WITHHELD

    def _cleaned(self, text: str, verdict: Verdict | None, where: str) -> str:
        """The text without the sentences that hold signs. What still reads like an attack is withheld as a whole."""
        for _ in range(MOST_ROUNDS):
            if verdict is None:
                return text
            spans = [_sentence_around(text, sign.start, sign.end) for sign in verdict.signs]
            regions = merge(Finding(start, end, "injection", "injection") for start, end in spans)
            text = replace_regions(text, regions, lambda region, _: REMOVED)
            verdict = self._verdict(text, where)
        return text if verdict is None else WITHHELD

    def _report(self, verdict: Verdict, text: str, where: str, tool: str = "") -> tuple[str, dict[str, Any]]:
        """The violation's message and detail. The matched words are masked: they may be somebody's data."""
        first = max(verdict.signs, key=lambda sign: sign.weight)
        detail: dict[str, Any] = {
            "type": first.type, "types": verdict.types, "rule": first.rule, "strategy": self.options.strategy, "where": where,
            "matches": [{"type": s.type, "rule": s.rule, "start": s.start, "end": s.end, "view": s.view} for s in verdict.signs[:50]],
            "views": list(dict.fromkeys(sign.view for sign in verdict.signs)), "excerpt": f"‹{first.rule}›",
            "hash": keyed_hash(self._hash_key, text[first.start : first.end]), "score": verdict.score,
        }  # fmt: skip
        if tool:
            detail["tool"] = tool
        return f"Prompt injection detected: {', '.join(verdict.types)}.", detail


_SENTENCE_END: Final = re.compile(r"[.!?\n。！？]")


def _sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The sentence that holds this span."""
    first = start
    while first > 0 and not _SENTENCE_END.match(text, first - 1):
        first -= 1
    last = _SENTENCE_END.search(text, max(start, end - 1))
    return first, max(end, last.end() if last is not None else len(text))


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> PromptInjectionDetector:
        return PromptInjectionDetector(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Prompt injection", description="Stops attempts to overrule the agent's instructions, also encoded or hidden, in many languages. A help, not a guarantee: limit what tools may do.",
        options=PromptInjectionOptions, factory=build, stages=frozenset({"input", "output"}), group="Attacks",
    ))  # fmt: skip
