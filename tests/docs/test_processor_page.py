"""The author's page cannot lie: every hook and argument stands on it and every example runs."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from processors.engine import hooks

PAGE = Path(__file__).parents[2].joinpath("docs", "processors.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ARGS_OF = {
    "process_input": hooks.ProcessInputArgs,
    "process_input_step": hooks.ProcessInputStepArgs,
    "process_llm_request": hooks.ProcessLLMRequestArgs,
    "process_llm_response": hooks.ProcessLLMResponseArgs,
    "process_output_stream": hooks.ProcessOutputStreamArgs,
    "process_output_step": hooks.ProcessOutputStepArgs,
    "process_tool_result": hooks.ProcessToolResultArgs,
    "process_output_result": hooks.ProcessOutputResultArgs,
    "process_api_error": hooks.ProcessAPIErrorArgs,
}


def row_of(hook: str) -> str:
    return next(line for line in PAGE.splitlines() if line.startswith(f"| `{hook}` |"))


def test_the_table_knows_every_hook() -> None:
    assert set(ARGS_OF) == set(hooks.HOOKS)


@pytest.mark.parametrize("hook", hooks.HOOKS)
def test_each_hook_has_an_example_of_its_own(hook: str) -> None:
    assert f"\n### {hook}\n" in PAGE
    assert any(f"def {hook}(" in example for example in EXAMPLES)


@pytest.mark.parametrize("hook", hooks.HOOKS)
def test_the_table_names_exactly_the_arguments_of_each_hook(hook: str) -> None:
    common = {field.name for field in dataclasses.fields(hooks.HookArgs)}
    own = {field.name for field in dataclasses.fields(ARGS_OF[hook])} - common
    received = row_of(hook).split("|")[2]
    assert set(re.findall(r"`([a-z_]+)`", received)) == own


def test_the_page_names_every_common_argument() -> None:
    intro = PAGE.split("Every hook receives")[1].split("Beside these")[0]
    assert {field.name for field in dataclasses.fields(hooks.HookArgs)} <= set(
        re.findall(r"`([a-z_]+)`", intro)
    )


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_runs(number: int) -> None:
    namespace: dict[str, object] = {"__name__": f"example_{number}"}
    exec(compile(EXAMPLES[number], f"docs/processors.md example {number}", "exec"), namespace)
    assert any(isinstance(value, type) for value in namespace.values())
