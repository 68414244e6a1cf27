"""The real guardrail on a text: tried alone, in the playground's walk, and by its saved examples."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from console.models import Example
from console.trial import run_trial
from processors.engine.processor import ChainEntry
from processors.engine.processor import Processor as EngineProcessor
from processors.models import Processor
from tests.console.conftest import guardrail_data, person


class Hider(EngineProcessor):
    """Takes “secret” out of answers, also when it comes in pieces."""

    def process_output_stream(self, args: Any) -> Any:
        if args.part.type != "text-delta":
            held = args.state.pop("held", "")
            return (
                [args.state["last"].with_text(held.replace("secret", "…")), args.part] if held else args.part
            )
        args.state["held"] = args.state.get("held", "") + args.part.text
        args.state["last"] = args.part
        return None


class Bouncer(EngineProcessor):
    def process_input(self, args: Any) -> Any:
        if "password" in args.messages[-1].text:
            args.abort("No passwords here.")
        if "maybe" in args.messages[-1].text:
            args.report_violation("Hesitation", {"type": "maybe", "excerpt": "may••"})
        return args.messages


class Breaker(EngineProcessor):
    def process_input(self, args: Any) -> Any:
        raise RuntimeError("out of order")


def test_an_answer_is_tried_in_small_pieces() -> None:
    trial = run_trial([ChainEntry(Hider("hider"))], "This is a secret plan.", "output")
    assert (trial.verdict, trial.after_text) == ("changed", "This is a … plan.")
    assert ("gone", "secret") in trial.before
    assert ("new", "…") in trial.after


@pytest.mark.parametrize(
    ("text", "verdict"), [("Hello", "passed"), ("my password", "blocked"), ("maybe later", "reported")]
)
def test_a_message_is_judged_as_in_a_real_run(text: str, verdict: str) -> None:
    trial = run_trial([ChainEntry(Bouncer("bouncer"))], text, "input")
    assert trial.verdict == verdict


def test_a_finding_shows_the_masked_excerpt_only() -> None:
    trial = run_trial([ChainEntry(Bouncer("bouncer"))], "maybe later", "input")
    assert [(finding.type, finding.excerpt) for finding in trial.findings] == [("maybe", "may••")]


def test_a_guardrail_that_fails_is_no_pass() -> None:
    trial = run_trial([ChainEntry(Breaker("breaker"))], "Hello", "input")
    assert trial.verdict == "error"
    assert trial.after_text is None


@pytest.mark.django_db
def test_the_panel_runs_the_settings_on_the_screen_and_stores_nothing(alice, signed_in, guardrail) -> None:
    data = {
        **guardrail_data(name="Other"),
        "try-kind": "stranger",
        "try-object": guardrail.pk,
        "try-text": "hello",
        "try-as": "input",
    }
    page = signed_in(alice).post(reverse("admin:processors_processor_try"), data).content.decode()
    assert "HELLO" in page
    guardrail.refresh_from_db()
    assert guardrail.name == "No swearing"


@pytest.mark.django_db
def test_the_panel_says_what_is_wrong_with_the_settings(alice, signed_in, stranger_kind) -> None:
    data = {**guardrail_data(**{"option-threshold": "7"}), "try-kind": "stranger", "try-text": "hello"}
    page = signed_in(alice).post(reverse("admin:processors_processor_try"), data).content.decode()
    assert "Threshold" in page


@pytest.mark.django_db
def test_a_reader_tries_only_what_is_stored(signed_in, guardrail) -> None:
    reader = signed_in(person("rita", "processors.view_processor"))
    data = {
        **guardrail_data(**{"option-threshold": "7"}),
        "try-object": guardrail.pk,
        "try-text": "hello",
        "try-as": "input",
    }
    assert "HELLO" in reader.post(reverse("admin:processors_processor_try"), data).content.decode()
    assert reader.post(reverse("admin:processors_processor_try"), {"try-kind": "stranger"}).status_code == 403


@pytest.mark.django_db
def test_a_pattern_is_tried_on_a_sample(alice, signed_in) -> None:
    url = reverse("admin:processors_processor_try")
    page = signed_in(alice).post(url, {"try-pattern": "a+b", "try-text": "xx aab <i>"}).content.decode()
    assert "<mark>aab</mark>" in page
    assert "&lt;i&gt;" in page
    assert "gh-error" in signed_in(alice).post(url, {"try-pattern": "(", "try-text": "x"}).content.decode()


@pytest.mark.django_db
def test_the_walk_shows_each_guardrail_in_order_and_what_the_model_gets(
    alice, signed_in, agent, guardrail
) -> None:
    Processor.objects.create(slug="house", name="House rule", kind="stranger", mandatory="input")
    agent.chain.create(stage="input", processor=guardrail)
    url = reverse("admin:agents_agent_walk", args=[agent.pk])
    response = signed_in(alice).post(url, {"text": "hello", "as": "input"})
    assert [step["link"].processor.name for step in response.context["steps"]] == [
        "House rule",
        "No swearing",
    ]
    assert [step["trial"].verdict for step in response.context["steps"]] == ["changed", "passed"]
    assert response.context["outcome"] == "HELLO"
    assert "Help." in response.content.decode()


@pytest.mark.django_db
def test_examples_that_fail_stop_the_publish_until_somebody_says_why(
    alice, signed_in, agent, guardrail
) -> None:
    agent.chain.create(stage="input", processor=guardrail)
    Example.objects.create(processor=guardrail, text="hello", expected="pass")
    client, url = signed_in(alice), reverse("admin:agents_agent_publish", args=[agent.pk])
    data = {"note": "New", "expected_revision": agent.revision, "override": ""}
    assert "It caught the text, but must let it pass." in client.post(url, data).content.decode()
    agent.refresh_from_db()
    assert agent.published is None
    client.post(url, {**data, "override": "The example is wrong"})
    agent.refresh_from_db()
    assert "The example is wrong" in agent.published.note


@pytest.mark.django_db
def test_examples_are_saved_with_their_guardrail(alice, signed_in, guardrail) -> None:
    rows = {
        "examples-TOTAL_FORMS": 1,
        "examples-0-text": " darn ",
        "examples-0-used_as": "input",
        "examples-0-expected": "catch",
    }
    data = guardrail_data(expected_revision=guardrail.revision, **rows)
    response = signed_in(alice).post(reverse("admin:processors_processor_change", args=[guardrail.pk]), data)
    assert response.status_code == 302
    assert guardrail.examples.get().text == " darn "
