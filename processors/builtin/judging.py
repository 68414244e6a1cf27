"""What guardrails that ask a model have in common: what they read, when they ask, and what they do about a refusal.

A subclass brings a question (`opinion`); this class asks it about every new message, every window of a streamed answer, tool
arguments and tool results, and acts by its strategy:

    block    stops the run; nothing of the refused text is delivered
    retry    like block, but asks the model for another reply first
    filter   withholds the message, the window, the call or the result
    rewrite  puts the judge's own wording in its place (for questions that ask for one)
    warn     reports and lets everything pass

A judge that fails is an error, never a pass: the exception reaches the engine, which ends the run or records `not_scanned`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from processors.builtin.detectors.findings import keyed_hash
from processors.builtin.judge import DEFAULT_MAX_CHARS, DEFAULT_TIMEOUT, JudgeError, ModelName, windows
from processors.builtin.stream_windows import StreamWindows, Window
from processors.engine.chunks import REASONING_DELTA, TEXT_DELTA, Chunk
from processors.engine.hooks import (
    HookArgs,
    ProcessInputArgs,
    ProcessOutputStepArgs,
    ProcessOutputStreamArgs,
    ProcessToolResultArgs,
    Usage,
)
from processors.engine.messages import Message
from processors.engine.ports import AbortSignal, BuildContext
from processors.engine.processor import OnError, Processor
from processors.engine.registry import Options

Strategy = Literal["block", "retry", "filter", "rewrite", "warn"]
STRATEGY_LABELS: Final = {"block": "Stop the run", "retry": "Ask for another answer", "filter": "Withhold the refused part", "rewrite": "Reword the refused part", "warn": "Only report"}  # fmt: skip
WITHHELD: Final = "[withheld]"
READ_ONLY: Final = "judges"
"""Name of the group in which judges that change nothing stand beside each other."""
_STATE: Final = "judging"
_ADVANCED: Final[dict[str, Any]] = {"x-advanced": True}


def _main_settings_first(schema: dict[str, Any], options: type[BaseModel]) -> None:
    """Forms begin with the model and with what a kind adds; what all kinds have in common follows."""
    properties: dict[str, Any] = schema.get("properties", {})
    first = [name for name in ("model", *options.__annotations__) if name in properties]
    schema["properties"] = {name: properties[name] for name in dict.fromkeys([*first, *properties])}


class ReadingOptions(Options):
    """What is read, and when a streamed answer is shown."""

    model_config = ConfigDict(json_schema_extra=_main_settings_first)

    message: SkipJsonSchema[str] = Field("", title="Message to the person", description="Shown instead of the built-in reason when a run is stopped. In the console this is the guardrail's own setting.", max_length=500)  # fmt: skip
    last_message_only: bool = Field(False, title="Only the last message", description="Judge only the last of several new messages. Off: all of them are judged.", json_schema_extra=_ADVANCED)  # fmt: skip
    files: Literal["fail", "skip"] = Field("fail", title="Files in a message", description="The judge reads text only. Fail: a message with a file counts as an error. Skip: the file passes unread and that is reported.", json_schema_extra={**_ADVANCED, "x-labels": {"fail": "Count as an error", "skip": "Let pass and report"}})  # fmt: skip
    reasoning: bool = Field(True, title="Judge reasoning", description="Also judge what the model thinks aloud.", json_schema_extra={"x-group": "Where"})  # fmt: skip
    tool_arguments: bool = Field(True, title="Judge tool arguments", description="Also judge what the model hands to tools; one more question per call.", json_schema_extra={"x-group": "Where"})  # fmt: skip
    tool_results: bool = Field(False, title="Judge tool results", description="Also judge what tools return, before the model reads it; one more question per call.", json_schema_extra={"x-group": "Where"})  # fmt: skip
    release: Literal["safe", "fast"] = Field("safe", title="Release of streamed text", description="Safe: text waits until it is judged. Fast: text is shown at once and withdrawn when it is refused; only for block and warn.", json_schema_extra={"x-group": "Streaming", **_ADVANCED, "x-labels": {"safe": "Safe: show when judged", "fast": "Fast: show at once, withdraw later"}})  # fmt: skip
    window_chars: int = Field(300, title="First window", description="Characters after which the judge is asked for the first time; each further window is twice as long, up to eight times.", ge=40, le=8000, json_schema_extra={"x-group": "Streaming", **_ADVANCED})  # fmt: skip
    window_seconds: float = Field(5.0, title="Longest wait", description="Seconds after which held text is judged although its window is not full.", ge=0.5, le=120, json_schema_extra={"x-group": "Streaming", **_ADVANCED})  # fmt: skip
    error_strategy: SkipJsonSchema[OnError] = Field("block", title="When the judge fails", description="Block, or allow the text to pass unread. In the console this is the guardrail's own setting.")  # fmt: skip

    @field_validator("error_strategy", mode="before")
    @classmethod
    def _names_of_the_reference(cls, value: Any) -> Any:
        return {"strict": "block", "warn": "allow"}.get(value, value)

    @model_validator(mode="after")
    def _fast_cannot_change_text(self) -> ReadingOptions:
        strategy = getattr(self, "strategy", "block")
        if self.release == "fast" and strategy not in ("block", "warn"):
            raise ValueError(f"Fast release shows text before it is judged, so {strategy} can't work; choose safe release, or block or warn.")  # fmt: skip
        return self


class JudgeOptions(ReadingOptions):
    """The judge and its limits."""

    model: ModelName = Field(title="Model that judges", description="provider/name, as in the agent's own form. A small, fast model is enough.")  # fmt: skip
    instructions: str = Field("", title="Further instructions", description="What the judge should know about your house, in plain words.", max_length=4000, json_schema_extra={"x-widget": "textarea"})  # fmt: skip
    timeout: float = Field(DEFAULT_TIMEOUT, title="Time-out", description="Seconds that one verdict may take.", gt=0, le=300, json_schema_extra={"x-group": "Limits", **_ADVANCED})  # fmt: skip
    max_chars: int = Field(DEFAULT_MAX_CHARS, title="Longest text", description="Characters of one question; longer texts are judged in overlapping pieces.", ge=200, le=200_000, json_schema_extra={"x-group": "Limits", **_ADVANCED})  # fmt: skip
    max_calls: int = Field(40, title="Questions per run", description="When they are used up the guardrail fails instead of letting text pass unread.", ge=1, le=1000, json_schema_extra={"x-group": "Limits", **_ADVANCED})  # fmt: skip
    budget: int = Field(600, title="Length of a verdict", description="Tokens that the judge may answer with.", ge=50, le=8000, json_schema_extra={"x-group": "Limits", **_ADVANCED})  # fmt: skip
    native_schema: bool = Field(True, title="Force the shape", description="Hand the shape of the verdict to the provider. Switch off if the provider refuses it.", json_schema_extra=_ADVANCED)  # fmt: skip
    include_reason: bool = Field(False, title="Keep the judge's words", description="Put the judge's reason into the audit. It may quote the refused text.", json_schema_extra=_ADVANCED)  # fmt: skip


@dataclass(slots=True)
class Refusal:
    """The judge says no. types: what it is, worst first. words: the judge's reason. replacement: for `rewrite`."""

    types: list[str]
    score: float | None = None
    rule: str = ""
    words: str = ""
    replacement: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Inquiry:
    """One text on its way to the judge. where: input, text, reasoning, tool-args or tool-result."""

    text: str
    where: str
    context: str
    signal: AbortSignal
    usage: list[Usage]
    args: HookArgs


class _Run:
    """What one run keeps in `state`."""

    __slots__ = ("calls", "refusal", "usage", "windows")

    def __init__(self, options: ReadingOptions) -> None:
        self.windows = StreamWindows(options.window_chars, options.window_seconds)
        self.refusal: tuple[str, dict[str, Any]] | None = (
            None  # waits until the text before it has been shown
        )
        self.calls = 0
        self.usage: list[Usage] = []


class JudgedGuardrail(Processor):
    """Base of the guardrails that ask a model. Subclasses give `opinion` and the sentences."""

    subject = "Refused"
    """Begins the reason: "Content flagged for moderation: hate." """

    def __init__(
        self, id: str, options: ReadingOptions, context: BuildContext, *, strategy: Strategy
    ) -> None:
        super().__init__(id)
        self.options, self.strategy = options, strategy
        limits = options if isinstance(options, JudgeOptions) else None
        self._max_chars = limits.max_chars if limits is not None else DEFAULT_MAX_CHARS
        self._max_calls = limits.max_calls if limits is not None else None
        self._include_reason = limits is not None and limits.include_reason
        self.on_error = options.error_strategy
        self.redacts = self.strategy in ("filter", "rewrite")
        self.group = None if self.redacts else READ_ONLY
        self._hash_key = context.hash_key
        self._at_once = options.release == "fast" or self.strategy == "warn"
        self.holds_back = not self._at_once
        """In the output chain it stands alone, whatever its group."""

    async def opinion(self, inquiry: Inquiry) -> Refusal | None:
        """Ask the judge about one text. None: it may pass. Raises JudgeError."""
        raise NotImplementedError

    # Input

    async def process_input(self, args: ProcessInputArgs) -> list[Message] | None:
        judged = args.messages[-1:] if self.options.last_message_only else args.messages
        gone: set[str] = set()
        for message in judged:
            if any(part.get("type") == "file" for part in message.content.parts):
                self._unread(args)
            refusal = await self._verdict_on(args, message.text, "input")
            if refusal is None:
                continue
            report = self._report(refusal, message.text, "input", 0, None)
            if self._act(args, refusal, report, "input") is not None:
                self._change(message, refusal, gone)
        return [message for message in args.messages if message.id not in gone] if gone else None

    def _unread(self, args: HookArgs) -> None:
        if self.options.files == "fail":
            raise JudgeError("The message holds a file, which this judge can't read. Set “Files in a message” to let files pass unread.")  # fmt: skip
        args.report_violation(
            "A file passed unread.", {"type": "not-scanned", "strategy": "warn", "where": "input"}
        )

    def _change(self, message: Message, refusal: Refusal, gone: set[str]) -> None:
        if self.strategy == "rewrite":
            message.set_text(refusal.replacement or "")
            return
        rest = [part for part in message.content.parts if part.get("type") not in ("text", "reasoning")]
        if not rest:
            gone.add(message.id)
        message.content.parts[:] = rest
        message.content.legacy = None

    # Stream

    def process_output_stream(
        self, args: ProcessOutputStreamArgs
    ) -> Chunk | list[Chunk] | Awaitable[Any] | None:
        part, kind, run = args.part, args.part.type, self._run(args)
        held = run.windows
        if run.refusal is not None and kind != "step-start":
            self._refuse(args, *run.refusal)
        if kind == TEXT_DELTA or (kind == REASONING_DELTA and self.options.reasoning):
            if held.belongs(part):
                held.take(part)
                ready = held.full()
                return self._judged(args, ready, None) if ready else self._shown(part)
            ending = held.rest()
            held.open(part)
            ready = [*ending, *held.full()]
            return self._judged(args, ready, None) if ready else self._shown(part)
        if kind == "step-start":
            held.forget()
            run.refusal = None
            return part
        ending = held.rest()
        if kind == "tool-call-delta" and self.options.tool_arguments and not self._at_once:
            return self._judged(args, ending, None) if ending else None
        if ending or (kind == "tool-call" and self.options.tool_arguments):
            return self._judged(args, ending, part)
        return part

    def _shown(self, part: Chunk) -> Chunk | None:
        return part if self._at_once else None

    async def _judged(
        self, args: ProcessOutputStreamArgs, ready: list[Window], after: Chunk | None
    ) -> Chunk | list[Chunk] | None:
        """Judge windows, and the tool call that follows them; what may be shown now."""
        run = self._run(args)
        held = run.windows
        out: list[Chunk] = []
        try:
            for window in ready:
                if not await self._window(args, window, out):
                    return out
            if after is not None and after.type == "tool-call" and self.options.tool_arguments:
                passed = await self._tool_call(args, after, out)
                if run.refusal is not None:
                    return out
                after = passed
        except JudgeError as error:
            if not self._at_once:
                waiting = [*out, *(chunk for window in ready if not window.done for chunk in window.chunks)]
                error.held = waiting if after is not None else [*waiting, *held.give_up()]
                error.takes_part = after is None
            raise
        if after is None:
            return args.part if self._at_once else out
        return [*out, after] if out else after

    async def _window(self, args: ProcessOutputStreamArgs, window: Window, out: list[Chunk]) -> bool:
        """Judge a window and add to `out` what may be shown. False: it is refused, as soon as `out` has been shown."""
        where = "text" if window.chunks[0].type == TEXT_DELTA else "reasoning"
        refusal = await self._verdict_on(args, window.text, where, window.context)
        window.done = True
        if refusal is not None:
            report = self._report(refusal, window.text, where, window.start, None)
            if self._refused_later(args, refusal, report, where, out):
                return False
            shown = self._act(args, refusal, report, where)
            if shown is not None:
                if shown:
                    out.append(window.chunks[-1].with_text(shown))
                return True
        if not self._at_once:
            out += window.chunks
        return True

    async def _tool_call(self, args: ProcessOutputStreamArgs, part: Chunk, out: list[Chunk]) -> Chunk | None:
        payload = part.payload or {}
        given = payload.get("invalidArgs") or payload.get("args")
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
        refusal = await self._verdict_on(args, text, "tool-args") if given else None
        if refusal is None:
            return part
        report = self._report(refusal, text, "tool-args", 0, payload.get("toolName"))
        if self._refused_later(args, refusal, report, "tool-args", out):
            return None
        return part if self._act(args, refusal, report, "tool-args") is None else None

    def _refused_later(
        self,
        args: HookArgs,
        refusal: Refusal,
        report: tuple[str, dict[str, Any]],
        where: str,
        out: list[Chunk],
    ) -> bool:
        """Keep a refusal until the text judged before it has been shown, so that every cut shows the same."""
        if self._at_once or not out or not self._stops(refusal, where):
            return False
        self._run(args).refusal = report
        return True

    def process_output_step(self, args: ProcessOutputStepArgs) -> None:
        refusal = self._run(args).refusal
        if refusal is not None:
            self._refuse(args, *refusal)

    # Results of tools

    async def process_tool_result(self, args: ProcessToolResultArgs) -> None:
        if not self.options.tool_results:
            return
        text = (
            args.result
            if isinstance(args.result, str)
            else json.dumps(args.result, ensure_ascii=False, default=str)
        )
        refusal = await self._verdict_on(args, text, "tool-result")
        if refusal is None:
            return
        report = self._report(refusal, text, "tool-result", 0, args.tool_name)
        shown = self._act(args, refusal, report, "tool-result")
        if shown is not None:
            args.message_list.update_tool_invocation(tool_call_id=args.tool_call_id, result=shown or WITHHELD)

    # Judging and acting

    def _run(self, args: HookArgs) -> _Run:
        run = args.state.get(_STATE)
        if run is None:
            run = args.state[_STATE] = _Run(self.options)
        return run  # type: ignore[no-any-return]

    async def _verdict_on(self, args: HookArgs, text: str, where: str, context: str = "") -> Refusal | None:
        """The first refusal of a text's pieces. Raises JudgeError, also when the run's questions are used up."""
        run = self._run(args)
        if not text.strip():
            return None
        if self.strategy == "rewrite" and len(text) > self._max_chars:
            raise JudgeError(
                f"The text has {len(text)} characters; at most {self._max_chars} can be reworded at once."
            )
        for start, end in windows(text, self._max_chars):
            if self._max_calls is not None and run.calls >= self._max_calls:
                raise JudgeError(f"The judge was asked {run.calls} times in this run, which is all it may. Raise “Questions per run”.")  # fmt: skip
            run.calls += 1
            inquiry = Inquiry(text[start:end], where, context, args.abort_signal, run.usage, args)
            refusal = await self.opinion(inquiry)
            if refusal is not None:
                return refusal
        return None

    def _stops(self, refusal: Refusal, where: str) -> bool:
        """Whether a refusal ends the run: also where there is nothing to show instead."""
        if self.strategy == "rewrite":
            return refusal.replacement is None or where == "tool-args"
        return self.strategy in ("block", "retry")

    def _act(
        self, args: HookArgs, refusal: Refusal, report: tuple[str, dict[str, Any]], where: str
    ) -> str | None:
        """Stop the run, or report. None: the text stays; otherwise what stands in its place, empty for nothing."""
        if self._stops(refusal, where):
            self._refuse(args, *report)
        args.report_violation(*report)
        if self.strategy == "warn":
            return None
        return (refusal.replacement or "") if self.strategy == "rewrite" else ""

    def _refuse(self, args: HookArgs, reason: str, detail: dict[str, Any]) -> NoReturn:
        args.abort(self.options.message or reason, retry=self.strategy == "retry", metadata=detail)

    def _report(
        self, refusal: Refusal, text: str, where: str, start: int, tool: Any
    ) -> tuple[str, dict[str, Any]]:
        """The sentence and the violation's detail. Neither holds the judged text."""
        first = refusal.types[0] if refusal.types else "refused"
        detail: dict[str, Any] = {
            "type": first, "types": refusal.types, "rule": refusal.rule or first, "strategy": self.strategy, "where": where,
            "matches": [{"type": first, "rule": refusal.rule or first, "start": start, "end": start + len(text)}],
            "excerpt": f"‹{first}›", "hash": keyed_hash(self._hash_key, text), "score": refusal.score, **refusal.extra,
        }  # fmt: skip
        if tool:
            detail["tool"] = str(tool)
        if self._include_reason and refusal.words:
            detail["judge"] = refusal.words[:300]
        return self.reason(refusal), detail

    def reason(self, refusal: Refusal) -> str:
        """The sentence that is shown; it names categories only."""
        return f"{self.subject}: {', '.join(refusal.types)}." if refusal.types else f"{self.subject}."
