"""Keeps a conversation on its subject: topics told by their words, denied or the only ones allowed, with exceptions."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field, model_validator

from processors.builtin.detectors.findings import Finding, keyed_hash
from processors.builtin.detectors.holdback import HoldBack
from processors.builtin.detectors.words import WordMatcher
from processors.engine.chunks import TEXT_DELTA, Chunk
from processors.engine.hooks import HookArgs, ProcessInputArgs, ProcessOutputStreamArgs
from processors.engine.messages import Message
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "topic-rules"


class Topic(Options):
    """A subject."""

    name: str = Field(title="Name", description="Shown to people: “This agent does not talk about …”.", min_length=1, max_length=60)  # fmt: skip
    words: list[str] = Field(title="Words", description="Words and phrases that tell the topic, one per line.", min_length=1, max_length=5000)  # fmt: skip
    exceptions: list[str] = Field(default_factory=list, title="Exceptions", description="Phrases in which such a word means something else: “kill a process”.", max_length=5000)  # fmt: skip
    at_least: int = Field(1, title="Different words", description="So many different words of the topic must occur in a text.", ge=1, le=20)  # fmt: skip


class TopicRulesOptions(Options):
    """Denied topics, or the only ones allowed."""

    mode: Literal["deny", "allow-only"] = Field("deny", title="Rule", description="Refuse these topics, or refuse everything that is about none of them (messages only).", json_schema_extra={"x-labels": {"deny": "Refuse these topics", "allow-only": "Refuse everything else"}})  # fmt: skip
    topics: list[Topic] = Field(
        title="Topics", description="Each with its words.", min_length=1, max_length=100
    )
    min_words: int = Field(4, title="Shortest message judged", description="Refusing everything else: shorter messages such as “thanks” always pass. In words.", ge=0, le=100, json_schema_extra={"x-show-if": {"mode": ["allow-only"]}})  # fmt: skip
    strategy: Literal["block", "filter", "warn"] = Field("block", title="What to do", description="Block the run, withhold the message (or the rest of the answer), or only report.")  # fmt: skip

    @model_validator(mode="after")
    def _words_exist(self) -> TopicRulesOptions:
        for topic in self.topics:
            words = len([word for word in topic.words if word.strip()])
            if words < topic.at_least:
                raise ValueError(f"The topic {topic.name!r} has {words} words but asks for {topic.at_least} different ones; add words or ask for fewer.")  # fmt: skip
        return self


class TopicRules(Processor):
    """Counts different words per topic; in a stream the text stops before the word that makes the topic."""

    def __init__(self, id: str, options: TopicRulesOptions, context: BuildContext) -> None:
        super().__init__(id)
        self.options, self._hash_key = options, context.hash_key
        self._topics = [
            (topic, WordMatcher({word: f"{number}:{at}" for at, word in enumerate(topic.words)}, type=topic.name, allowed=topic.exceptions))
            for number, topic in enumerate(options.topics)
        ]  # fmt: skip

    def process_input(self, args: ProcessInputArgs) -> list[Message] | None:
        kept = [message for message in args.messages if self._may_stay(args, message)]
        return kept if len(kept) < len(args.messages) else None

    def _may_stay(self, args: HookArgs, message: Message) -> bool:
        text = message.text
        about = [(topic, found) for topic, matcher in self._topics if (found := self._telling(topic, matcher.find(text, 0)))]  # fmt: skip
        if self.options.mode == "deny":
            if not about:
                return True
            self._act(args, about[0][0].name, about[0][1], text, "input")
        elif about or len(text.split()) < max(1, self.options.min_words):
            return True
        else:
            self._act(args, "", [], text, "input")
        if self.options.strategy != "filter":
            return True
        message.content.parts[:] = [part for part in message.content.parts if part.get("type") != "text"]
        message.content.legacy = None
        return bool(message.content.parts)

    @staticmethod
    def _telling(topic: Topic, found: list[Finding]) -> list[Finding]:
        """The findings if they are enough different words."""
        return found if len({finding.rule for finding in found}) >= topic.at_least else []

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk] | None:
        part, state = args.part, args.state
        if self.options.mode != "deny":
            return part
        if state.get("refusal"):
            self._act(args, *state.pop("refusal"))
        if part.type == "step-start":
            state.clear()
        if part.type == TEXT_DELTA:
            if state.get("dropping"):
                return None
            hold: HoldBack = state.setdefault("hold", HoldBack(_AllTopics(self._topics)))
            state["last"] = part
            return self._shown(args, part, hold, hold.feed(part.text))
        hold_now = state.pop("hold", None)
        if hold_now is None or part.is_data:
            if hold_now is not None:
                state["hold"] = hold_now
            return part
        rest = self._shown(args, state["last"], hold_now, hold_now.finish())
        state["dropping"] = False
        if state.get("refusal"):
            self._act(args, *state.pop("refusal"))
        return [rest, part] if rest is not None else part

    def _shown(self, args: ProcessOutputStreamArgs, part: Chunk, hold: HoldBack, ready: str) -> Chunk | None:
        """The delta with what may be shown; the verdict follows with the next chunk, behind the text before the word."""
        state = args.state
        counts: dict[str, set[str]] = state.setdefault("counts", {})
        regions, hold.regions = hold.regions, []
        for region in regions:
            for member in region.members:
                words = counts.setdefault(member.type, set())
                words.add(member.rule)
                topic = next(topic for topic, _ in self._topics if topic.name == member.type)
                if len(words) == topic.at_least and member.type not in state.setdefault("told", set()):
                    state["told"].add(member.type)
                    text, base = hold.excerpt_text
                    moved = Finding(member.start - base, member.end - base, member.type, member.rule)
                    clean = ready[: max(0, member.start - (hold.released - len(ready)))]
                    if self.options.strategy == "warn":
                        self._act(args, topic.name, [moved], text, "text")
                        continue
                    if self.options.strategy == "filter":
                        self._act(args, topic.name, [moved], text, "text")
                        state["dropping"] = True
                    elif not clean:
                        self._act(args, topic.name, [moved], text, "text")
                    else:
                        state["refusal"] = (topic.name, [moved], text, "text")
                    return part.with_text(clean) if clean else None
        if not ready:
            return None
        return part if ready == part.text else part.with_text(ready)

    def _act(self, args: HookArgs, topic: str, found: list[Finding], text: str, where: str) -> None:
        message = (
            f"This agent does not talk about {topic}."
            if topic
            else "This is outside the subjects of this agent."
        )
        detail = {
            "type": "topic", "rule": topic or "allow-only", "strategy": self.options.strategy, "where": where,
            "matches": [{"type": "topic", "rule": topic, "start": f.start, "end": f.end} for f in found[:50]],
            "excerpt": f"‹{topic or 'other subject'}›",
            "hash": keyed_hash(self._hash_key, text[found[0].start : found[0].end] if found else text),
        }  # fmt: skip
        if self.options.strategy == "block":
            args.abort(message, metadata=detail)
        args.report_violation(message, detail)


class _AllTopics:
    """The topics' words as one matcher."""

    look_back = WordMatcher.look_back

    def __init__(self, topics: list[tuple[Topic, WordMatcher]]) -> None:
        self._matchers = [matcher for _, matcher in topics]

    def find(self, text: str, start: int) -> list[Finding]:
        return [finding for matcher in self._matchers for finding in matcher.find(text, start)]

    def open_from(self, text: str, start: int) -> int:
        return min(matcher.open_from(text, start) for matcher in self._matchers)


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> TopicRules:
        return TopicRules(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Topics", description="Refuses topics by their words, with exceptions, or everything that is about none of the allowed ones.",
        options=TopicRulesOptions, factory=build, stages=frozenset({"input", "output"}), redacts=True, group="Words and patterns",
    ))  # fmt: skip
