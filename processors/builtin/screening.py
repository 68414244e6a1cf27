"""What guardrails that look for something in text have in common: where they look and what they do about it.

A `Screen` brings a matcher and options; this class screens user input, streamed text and reasoning, tool arguments, tool
results, data parts and the stored answer with it, and acts by its strategy:

    block    stops the run; text before the finding may have been shown, nothing of the finding
    retry    like block, but asks the model for another reply first
    redact   replaces findings and goes on
    filter   withholds what contains the finding: the message, the rest of the text block, the call, the result
    warn     reports and lets everything pass
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NoReturn

from pydantic import Field, model_validator

from processors.builtin.detectors.findings import Region, keyed_hash, masked_excerpt, merge, replace_regions
from processors.builtin.detectors.holdback import HoldBack, Matcher
from processors.builtin.detectors.json_text import change_texts
from processors.builtin.screened_parts import ToolArguments, screen_text_parts
from processors.engine.chunks import REASONING_DELTA, TEXT_DELTA, Chunk
from processors.engine.hooks import (
    HookArgs,
    ProcessInputArgs,
    ProcessOutputResultArgs,
    ProcessOutputStreamArgs,
    ProcessToolResultArgs,
)
from processors.engine.messages import Message, Part
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options

Strategy = Literal["block", "redact", "warn", "filter", "retry"]
Place = Literal["input", "text", "reasoning", "tool-args", "tool-result", "data", "result"]

WITHHELD: Final = "[withheld]"
MOST_MATCHES: Final = 50
"""Matches that one violation lists."""
_STATE: Final = "screen"
_SCREENED_PAYLOADS: Final = frozenset(
    {"tool-result", "tool-error", "tool-output", "object", "object-result", "source"}
)
_PAYLOAD_NAMES: Final = frozenset({"toolCallId", "toolName", "id", "sourceType", "args"})


class ScreenOptions(Options):
    """Where to look, beside user messages and answers."""

    reasoning: bool = Field(True, title="Screen reasoning", description="Also screen what the model thinks aloud.", json_schema_extra={"x-group": "Where"})  # fmt: skip
    tool_arguments: Literal["redact", "allow", "block", "off"] = Field(
        "redact", title="Tool arguments",
        description="When redacting: redact what the tool receives, allow the tool the original while people see it redacted, or block the run. "
        "Other strategies treat arguments like text. Off: arguments are not looked at.",
        json_schema_extra={"x-group": "Where", "x-labels": {"redact": "Redact", "allow": "Allow the tool the original", "block": "Block", "off": "Don't look"}},
    )  # fmt: skip
    tool_results: bool = Field(True, title="Screen tool results", description="Also screen what tools return, before the model reads it.", json_schema_extra={"x-group": "Where"})  # fmt: skip
    data_parts: bool = Field(True, title="Screen data parts", description="Also screen the custom data that tools and processors stream to the client.", json_schema_extra={"x-group": "Where", "x-advanced": True})  # fmt: skip
    release: Literal["safe", "fast"] = Field(
        "safe", title="Release of streamed text",
        description="Safe: text that may still become a finding waits, usually for one word. Fast: text is shown at once and withdrawn "
        "when something is found; only for block and warn.",
        json_schema_extra={"x-group": "Streaming", "x-advanced": True, "x-labels": {"safe": "Safe: show when decided", "fast": "Fast: show at once, withdraw later"}},
    )  # fmt: skip

    @model_validator(mode="after")
    def _fast_cannot_change_text(self) -> ScreenOptions:
        strategy = getattr(self, "strategy", "block")
        if self.release == "fast" and strategy not in ("block", "warn"):
            raise ValueError(f"Fast release shows text before it is decided, so {strategy} can't work; choose safe release, or block or warn.")  # fmt: skip
        return self


class _Run:
    """What one run keeps in `state`: the open block and a refusal that waits for its clean text to be shown."""

    __slots__ = ("block", "dropping", "hold", "kind", "last", "refusal", "results")

    def __init__(self) -> None:
        self.hold: HoldBack | None = None
        self.kind, self.block = "", None
        self.last: Chunk | None = None
        self.dropping = False
        self.refusal: tuple[str, dict[str, Any]] | None = None
        self.results: set[str] = set()


class Screen(Processor):
    """Base of the guardrails that search text. Subclasses give the matcher and, for redaction, `redaction`."""

    subject = "Refused content"
    """Begins the reason: "Personal data found: email." """

    def __init__(self, id: str, options: ScreenOptions, matcher: Matcher, context: BuildContext) -> None:
        super().__init__(id)
        self.options = options
        self.strategy: Strategy = getattr(options, "strategy", "block")
        self.redacts = self.strategy in ("redact", "filter")
        self.process_data_parts = options.data_parts
        self._matcher, self._hash_key = matcher, context.hash_key
        self._at_once = options.release == "fast" or self.strategy == "warn"
        self._replace: Callable[[Region, str], str] | None = (
            self.redaction if self.strategy == "redact" else None
        )
        self._hide_argument_pieces = options.tool_arguments != "off" and self.strategy != "warn"

    # What subclasses may change

    def redaction(self, region: Region, text: str) -> str:
        """What stands in place of a region."""
        return region.owner.replacement if region.owner.replacement is not None else f"[{region.owner.type.upper()}]"  # fmt: skip

    def matcher_for(self, args: HookArgs) -> Matcher:
        """The matcher of this run."""
        return self._matcher

    def screens(self, stage: Literal["input", "output"]) -> bool:
        """Whether this instance acts on this side at all."""
        return True

    # Input

    def process_input(self, args: ProcessInputArgs) -> list[Message] | None:
        if not self.screens("input"):
            return None
        matcher, kept = self.matcher_for(args), []
        for message in args.messages:
            withheld = self._screen_message(args, matcher, message, "input", joined=True)
            if not withheld or any(part.get("type") not in ("text", "reasoning") for part in message.content.parts):  # fmt: skip
                kept.append(message)
        return kept if len(kept) < len(args.messages) else None

    def _screen_message(self, args: HookArgs, matcher: Matcher, message: Message, place: Place, *, joined: bool) -> bool:  # fmt: skip
        """Screen a message's parts in place. True: its text was withheld."""
        message.text_parts()  # an older record's flat text becomes a part
        parts = message.content.parts
        withheld = False
        for kind, where in (("text", place), ("reasoning", "reasoning")):
            texts = [part for part in parts if part.get("type") == kind and isinstance(part.get("text"), str)]
            if not texts or (kind == "reasoning" and not self.options.reasoning):
                continue
            for text, regions, edited in screen_text_parts(matcher, texts, self._replace, joined=joined):
                self._act(args, self._report(regions, text, 0, where))  # type: ignore[arg-type]
                if self.strategy == "filter":
                    withheld = True
                for part, new in edited:
                    part["text"] = new
            if withheld:
                parts[:] = [part for part in parts if part.get("type") != kind]
        for part in parts:
            self._screen_invocation(args, matcher, part)
        return withheld

    def _screen_invocation(self, args: HookArgs, matcher: Matcher, part: Part) -> None:
        """Screen the arguments and the result of a tool call in a message."""
        call = part.get("toolInvocation")
        if part.get("type") != "tool-invocation" or not isinstance(call, dict):
            return
        changed = dict(call)
        if self.options.tool_arguments != "off" and "args" in call:
            changed["args"] = self._screen_value(args, matcher, call["args"], "tool-args", str(call.get("toolName", "")))  # fmt: skip
        if self.options.tool_results and "result" in call:
            changed["result"] = self._screen_value(args, matcher, call["result"], "tool-result", str(call.get("toolName", "")))  # fmt: skip
        part["toolInvocation"] = changed

    # Stream

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk] | None:
        part, kind = args.part, args.part.type
        run: _Run | None = args.state.get(_STATE)
        if run is None:
            if not self.screens("output"):
                return part
            run = args.state[_STATE] = _Run()
        if run.refusal is not None and kind != "step-start":
            self._refuse(args, *run.refusal)
        if kind == TEXT_DELTA or (kind == REASONING_DELTA and self.options.reasoning):
            payload = part.payload
            assert payload is not None
            if run.hold is None or run.kind != kind or run.block != payload.get("id"):
                return self._open_block(args, run)
            text = payload["text"]
            run.last = part
            if run.dropping:
                return None
            ready = run.hold.feed(text)
            if run.hold.regions:
                ready = self._found_in_stream(args, run, ready)
            if self._at_once:
                return part
            if not ready:
                return None
            return part if ready == text else part.with_text(ready)
        return self._other_chunk(args, run)

    def _open_block(self, args: ProcessOutputStreamArgs, run: _Run) -> Chunk | list[Chunk] | None:
        released = self._close_block(args, run)
        run.hold = HoldBack(self.matcher_for(args), self._replace)
        run.kind, run.block, run.dropping = args.part.type, (args.part.payload or {}).get("id"), False
        chunk = self.process_output_stream(args)
        if released is None:
            return chunk
        return [released, *(chunk if isinstance(chunk, list) else [chunk] if chunk is not None else [])]

    def _close_block(self, args: ProcessOutputStreamArgs, run: _Run) -> Chunk | None:
        """End the open block: the chunk with the text that was held, if any."""
        hold, run.hold = run.hold, None
        if hold is None or run.dropping:
            return None
        ready = hold.finish()
        if hold.regions:
            ready = self._found_in_stream(args, run, ready, hold=hold)
            if run.refusal is not None:
                self._refuse(args, *run.refusal)
        if self._at_once or not ready or run.last is None:
            return None
        return run.last.with_text(ready)

    def _found_in_stream(self, args: ProcessOutputStreamArgs, run: _Run, ready: str, hold: HoldBack | None = None) -> str:  # fmt: skip
        """Act on the regions just found; returns the text to show."""
        hold = hold or run.hold
        assert hold is not None
        regions, hold.regions = hold.regions, []
        text, base = hold.excerpt_text
        message, detail = self._report(regions, text, base, "text" if run.kind == TEXT_DELTA else "reasoning")
        if self.strategy in ("redact", "warn"):
            args.report_violation(message, detail)
            return ready
        clean = ready[: max(0, regions[0].start - (hold.released - len(ready)))]
        if self.strategy == "filter":
            args.report_violation(message, detail)
            run.dropping = True
            return clean
        if self._at_once or not clean:
            self._refuse(args, message, detail)
        run.refusal = (message, detail)
        return clean

    def _other_chunk(self, args: ProcessOutputStreamArgs, run: _Run) -> Chunk | list[Chunk] | None:
        part: Chunk | None = args.part
        assert part is not None
        if part.type == "step-start":  # a new attempt: what the last one left open was withdrawn
            run.hold, run.refusal = None, None
            return part
        if part.is_data:  # overtakes held text: releasing it here would let a data part split a finding
            data = self._screen_value(args, self.matcher_for(args), part.data, "data")
            return part if data is part.data else part.replace(data=data)
        released = self._close_block(args, run) if run.hold is not None else None
        if part.type == "tool-call":
            part = self._tool_call(args, part)
        elif part.type == "tool-call-delta" and self._hide_argument_pieces:
            part = None  # the whole, screened call follows
        elif part.type in _SCREENED_PAYLOADS:
            part = self._payload(args, run, part)
        if released is None:
            return part
        return [released, part] if part is not None else released

    def _tool_call(self, args: ProcessOutputStreamArgs, part: Chunk) -> Chunk | None:
        payload, policy = part.payload or {}, self.options.tool_arguments
        if policy == "off":
            return part
        name = str(payload.get("toolName", ""))
        found: list[tuple[str, list[Region]]] = []
        shown = self._change_value(self.matcher_for(args), {key: payload[key] for key in ("args", "invalidArgs") if key in payload}, found)  # fmt: skip
        if not found:
            return part
        report = self._report(found[0][1], found[0][0], 0, "tool-args", tool=name)
        if self.strategy == "redact" and policy == "block":
            self._refuse(args, *report)
        self._act(args, report)
        if self.strategy == "filter":
            return None
        if self.strategy != "redact":
            return part
        if policy == "allow" and isinstance(shown.get("args"), dict):
            shown["args"] = ToolArguments(shown["args"], for_tool=payload["args"])
        return part.replace(payload={**payload, **shown})

    def _payload(self, args: ProcessOutputStreamArgs, run: _Run, part: Chunk) -> Chunk:
        payload = part.payload or {}
        if part.type == "tool-result" and (not self.options.tool_results or payload.get("toolCallId") in run.results):  # fmt: skip
            return part
        screened = {key: value for key, value in payload.items() if key not in _PAYLOAD_NAMES}
        changed = self._screen_value(args, self.matcher_for(args), screened, "tool-result" if part.type.startswith("tool-") else "data", str(payload.get("toolName", "")))  # fmt: skip
        if changed is screened:
            return part
        if not isinstance(changed, dict):  # withheld as a whole
            changed = {key: changed for key in ("result", "error", "object", "output") if key in payload}
        return part.replace(payload={**payload, **changed})

    # Results

    def process_tool_result(self, args: ProcessToolResultArgs) -> None:
        if not self.options.tool_results or not self.screens("output"):
            return
        run: _Run = args.state.setdefault(_STATE, _Run())
        changed = self._screen_value(args, self.matcher_for(args), args.result, "tool-result", args.tool_name)
        run.results.add(args.tool_call_id)
        if changed is not args.result:
            args.message_list.update_tool_invocation(tool_call_id=args.tool_call_id, result=changed)

    def process_output_result(self, args: ProcessOutputResultArgs) -> None:
        """A second net under the stream: what other processors added to the answer afterwards."""
        if self.strategy == "warn" or not self.screens("output"):
            return
        matcher = self.matcher_for(args)
        for message in args.messages:
            if message.role == "assistant":
                self._screen_message(args, matcher, message, "result", joined=False)

    # Acting

    def _screen_value(
        self, args: HookArgs, matcher: Matcher, value: Any, where: Place, tool: str = ""
    ) -> Any:
        """Screen a JSON value: the same object if nothing was found, else what stands in its place."""
        found: list[tuple[str, list[Region]]] = []
        changed = self._change_value(matcher, value, found)
        if not found:
            return value
        regions = [region for _, regions in found for region in regions]
        message, detail = self._report(found[0][1], found[0][0], 0, where, tool=tool)
        detail["count"] = len(regions)
        self._act(args, (message, detail))
        if self.strategy == "filter":
            return WITHHELD
        return changed if self.strategy == "redact" else value

    def _change_value(self, matcher: Matcher, value: Any, found: list[tuple[str, list[Region]]]) -> Any:
        def change(text: str) -> str:
            regions = merge(matcher.find(text, 0))
            if not regions:
                return text
            found.append((text, regions))
            return replace_regions(text, regions, self._replace) if self._replace is not None else text

        return change_texts(value, change)

    def _report(self, regions: Sequence[Region], text: str, base: int, where: Place, tool: str = "") -> tuple[str, dict[str, Any]]:  # fmt: skip
        """The violation's message and detail. Neither holds a matched character."""
        members = [member for region in regions for member in region.members]
        types = list(dict.fromkeys(member.type for member in members))
        first = regions[0]
        detail: dict[str, Any] = {
            "type": first.owner.type,
            "types": types,
            "rule": first.owner.rule,
            "strategy": self.strategy,
            "where": where,
            "matches": [
                {"type": m.type, "rule": m.rule, "start": m.start, "end": m.end} for m in members[:MOST_MATCHES]
            ],
            "count": len(regions),
            "excerpt": masked_excerpt(text, regions, offset=base),
            "hash": keyed_hash(self._hash_key, text[first.start - base : first.end - base]),
            "score": max(member.score for member in members),
        }  # fmt: skip
        if tool:
            detail["tool"] = tool
        return self.reason(types, [member.rule for member in members]), detail

    def reason(self, types: Sequence[str], rules: Sequence[str]) -> str:
        """The sentence that is shown; names kinds of findings, never their text."""
        return f"{self.subject} found: {', '.join(types)}."

    def _act(self, args: HookArgs, report: tuple[str, dict[str, Any]]) -> None:
        """Report what goes on, or stop the run."""
        if self.strategy in ("block", "retry"):
            self._refuse(args, *report)
        args.report_violation(*report)

    def _refuse(self, args: HookArgs, message: str, detail: dict[str, Any]) -> NoReturn:
        args.abort(message, retry=self.strategy == "retry", metadata=detail)
