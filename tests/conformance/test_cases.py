"""Each recorded case runs through the engine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agents.loop.agent import Agent
from processors.engine.chunks import Chunk
from processors.engine.hooks import RequestContext
from processors.engine.messages import Message
from tests.conformance.builtins import built_in
from tests.conformance.facets import (
    check_chunks,
    check_hooks,
    check_llm_calls,
    check_stored,
    check_violations,
    delivered_text,
    same,
)  # fmt: skip
from tests.conformance.outcome import check_result
from tests.conformance.probes import Case, act, log_entry, probe_of, schema_of
from tests.conformance.scripted import (
    AuxModel,
    CaseMemory,
    ListeningAudit,
    Script,
    ScriptedModel,
    message_of,
    tool_of,
)  # fmt: skip

CASES = sorted(Path(__file__).with_name("cases").glob("*.json"))


class Runner:
    """One case: one agent, its requests one after the other."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.case, self.script = Case(), Script(scenario["model"])
        self.runs: list[dict[str, Any]] = []
        self.list_calls: dict[str, int] = {}
        agent = scenario["agent"]
        tools = {
            value["name"]: tool_of(value, self.runs)
            for value in agent.get("tools", []) + scenario.get("extra_tools", [])
        }
        self.case.model = lambda id: ScriptedModel(id, self.script)
        self.case.tool = tools.__getitem__
        aux = {name: AuxModel(name, calls) for name, calls in scenario.get("aux_models", {}).items()}
        self.processors = {
            key: built_in(self.case, value, aux, scenario.get("cost_report"))
            if "builtin" in value
            else probe_of(self.case, key, value)
            for key, value in scenario.get("processors", {}).items()
        }
        memory = scenario.get("memory", {})
        self.memory = (
            CaseMemory(memory.get("seed", []), memory.get("last_messages", 20))
            if memory.get("enabled")
            else None
        )
        self.agent = Agent(
            "agent", model=ScriptedModel(agent.get("model", "model-a"), self.script),
            instructions=agent.get("instructions", ""), max_steps=agent.get("max_steps", 5),
            max_processor_retries=agent.get("max_processor_retries"),
            tools=[tools[value["name"]] for value in agent.get("tools", [])],
            **{name: self.listed(agent[name], name) for name in ("input_processors", "output_processors", "error_processors")
               if name in agent},
        )  # fmt: skip

    def listed(self, spec: Any, name: str) -> Any:
        if not isinstance(spec, dict):
            return [self.processors[key] for key in spec]

        def choose(context: RequestContext) -> list[Any]:
            self.list_calls[name] = self.list_calls.get(name, 0) + 1
            keys = spec["cases"].get(context.get(spec["fn"]), spec.get("default", []))
            return [self.processors[key] for key in keys]

        return choose

    def prepare_step(self, actions: list[dict[str, Any]]) -> Any:
        def prepare(args: Any) -> Any:
            self.case.hooks.append(log_entry("prepare_step", "", args))
            return act(self.case, "process_input_step", args, actions, 0)

        return prepare

    def overrides(self, given: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in given.items():
            if name.endswith("_processors"):
                made[name] = self.listed(value, name)
            elif name == "prepare_step":
                made[name] = self.prepare_step(value["do"])
            elif name == "structured_output":
                made[name] = schema_of(value)
            else:
                made[name] = value
        return made

    def request(self, request: dict[str, Any], want: dict[str, Any]) -> list[str]:
        self.case.hooks, self.case.args, self.case.counts = [], {}, {}
        before = list(self.case.states.values())
        self.case.states, self.case.callbacks, self.case.strange = {}, [], []
        self.refused = refused_words(self.memory.rows if self.memory else [])
        self.runs.clear()
        self.list_calls.clear()
        self.script.log, audit = [], ListeningAudit()
        text = request["input"]
        messages = text if isinstance(text, str) else [message_of(value) for value in text]
        call = {**self.overrides(request.get("call_overrides", {})), "memory": self.memory, "audit": audit,
                "request_context": RequestContext(request.get("request_context", {}))}  # fmt: skip
        chunks: list[Chunk] = []

        async def run() -> Any:
            if request.get("mode", self.scenario["mode"]) == "generate":
                result = await self.agent.generate(messages, **call)
            else:
                stream = self.agent.stream(messages, **call)
                async for chunk in stream:
                    chunks.append(
                        chunk.replace(payload=dict(chunk.payload) if chunk.payload is not None else None)
                    )
                result = await stream.result()
            assert len(asyncio.all_tasks()) == 1, "background work is left"
            return result

        result = asyncio.run(run())
        wrong = ["a model call beyond the end of the script"] if self.script.exhausted else []
        wrong += ["a provider stream was left open"] if self.script.open else []
        calling = {p.id for p in self.processors.values() if getattr(p, "on_violation", None) is not None}
        checks = {
            "hooks": lambda w: check_hooks(w, self.case.hooks), "llm_calls": lambda w: check_llm_calls(w, self.script.log),
            "tool_runs": lambda w: [] if same(w, self.runs) else [f"tool_runs: {self.runs!r} instead of {w!r}"],
            "violations": lambda w: check_violations(w, audit.violations, self.case.callbacks, calling),
            "chunks": lambda w: check_chunks(w, chunks), "result": lambda w: check_result(w, result),
            "stored": lambda w: check_stored(w, self.memory.rows if self.memory else []),
            "delivered": lambda w: self.check_delivered(w, delivered_text(chunks)),
            "state": lambda w: [f"state of {k}: {self.case.states.get(k, {})!r} instead of {v!r}" for k, v in w.items()
                                if not same(v, self.case.states.get(k, {})) or (not v and self.case.states.get(k))],
            "list_calls": lambda w: [] if same(w, self.list_calls) else [f"list_calls: {self.list_calls!r}"],
            "args": lambda w: [f"{hook} lacks {name}" for hook, names in w.items() for args in self.case.args.get(hook, [None])
                               for name in names if not hasattr(args, name)],
        }  # fmt: skip
        for facet, check in checks.items():
            if facet in want:
                wrong += check(want[facet])
        return wrong + self.always(chunks, result, before)

    @staticmethod
    def check_delivered(want: dict[str, Any], text: str) -> list[str]:
        wrong = [f"delivered {text!r}"] if "equals" in want and want["equals"] != text else []
        for key, bad in (("contains", False), ("not_containing", True)):
            words = want.get(key, [])
            wrong += [f"delivered {text!r} ({key} {w!r})" for w in ([words] if isinstance(words, str) else words)
                      if (w in text) == bad]  # fmt: skip
        return wrong

    def always(self, chunks: list[Chunk], result: Any, before: list[Any]) -> list[str]:
        """What holds in every case."""
        seen = {e["chunk"] for e in self.case.hooks if e["hook"] == "process_output_stream"}
        wrong = [f"a stream hook saw {kind}" for kind in seen & {"start", "tripwire", "error"}]
        if chunks:
            trips = [chunk for chunk in chunks if chunk.type == "tripwire"]
            wrong += [] if len(trips) == (result.status == "blocked") else [f"{len(trips)} tripwire chunks"]
        for entry in self.script.log:
            prompt = repr(entry["request"].prompt)
            wrong += [
                f"a refused or failed run is sent again: {word!r}" for word in self.refused if word in prompt
            ]
            wrong += ["a data part is sent to the model"] if "'type': 'data-" in prompt else []
        wrong += [f"{key} has a state of an earlier request" for key, state in self.case.states.items()
                  if any(state is one for one in before)]  # fmt: skip
        wrong += self.case.strange
        return wrong


def refused_words(rows: list[Message]) -> list[str]:
    """What no model may be sent again: words of blocked and failed runs, notices and errors."""
    words: list[str] = []
    for row in rows:
        if row.blocked or row.content.metadata.get("failed"):
            words.append(row.text)
        for part in row.content.parts:
            words.append(
                part["reason"] if part["type"] == "notice" else (part.get("error") or {}).get("message", "")
            )
    return [word for word in words if word]


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_it_behaves_as_recorded(file: Path) -> None:
    case = json.loads(file.read_text(encoding="utf-8"))
    runner = Runner(case["scenario"])
    wrong: list[str] = []
    for number, (request, want) in enumerate(
        zip(case["scenario"]["requests"], case["expect"]["requests"], strict=True)
    ):
        wrong += [f"request {number}: {line}" for line in runner.request(request, want)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_it_behaves_the_same_in_the_other_mode(file: Path) -> None:
    case = json.loads(file.read_text(encoding="utf-8"))
    scenario = case["scenario"]
    other = {"stream": "generate", "generate": "stream"}
    scenario["mode"] = other[scenario["mode"]]
    for request in scenario["requests"]:
        if "mode" in request:
            request["mode"] = other[request["mode"]]
    runner = Runner(scenario)
    wrong: list[str] = []
    for number, (request, want) in enumerate(
        zip(scenario["requests"], case["expect"]["requests"], strict=True)
    ):
        facets = {name: facet for name, facet in want.items() if name not in ("chunks", "delivered")}
        wrong += [f"request {number}: {line}" for line in runner.request(request, facets)]
    assert not wrong, "\n".join(wrong)
