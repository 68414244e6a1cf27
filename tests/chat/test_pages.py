"""The pages around the socket."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils.translation import gettext, override

import chat
from accounts.models import User
from chat.samples import GENERAL, samples_for
from chat.words import ENGLISH
from tests.agents.conftest import Scripts, published

pytestmark = pytest.mark.django_db(transaction=True)


def facts_on(page: bytes) -> dict[str, object]:
    found = re.search(rb'<script id="facts" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    facts: dict[str, object] = json.loads(found[1])
    return facts


def test_the_chat_is_for_people_who_are_signed_in(client: Client) -> None:
    answer = client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (302, "/accounts/login/?next=/")
    login = client.get("/accounts/login/?next=/")
    assert b"Sign in" in login.content and b'name="next" value="/"' in login.content


def test_it_offers_only_agents_that_one_may_chat_with(alice: User, script: Scripts, client: Client) -> None:
    published("open", description="Ask “How late is it?”.")
    published("closed", access="groups")
    published("off", is_active=False)
    client.force_login(alice)
    page = client.get("/")
    agents = facts_on(page.content)["agents"]
    assert [agent["slug"] for agent in agents] == ["open"]  # type: ignore[attr-defined]
    assert agents[0]["samples"] == [{"text": "How late is it?", "about": ""}]  # type: ignore[index]
    assert facts_on(page.content)["canApprove"] is False


def test_an_agents_name_cannot_break_out_of_the_page(alice: User, script: Scripts, client: Client) -> None:
    agent = published("evil", description="</script><script>alert(1)</script>")
    assert agent.published is not None
    client.force_login(alice)
    page = client.get("/").content
    assert b"<script>alert" not in page
    assert facts_on(page)["agents"][0]["description"] == agent.description  # type: ignore[index]


def test_the_pages_carry_no_inline_script_and_ask_nobody_else(alice: User, client: Client) -> None:
    client.force_login(alice)
    for address in ("/", "/accounts/login/", "/nowhere"):
        page = client.get(address)
        text = page.content.decode()
        scripts = re.findall(r"<script(?![^>]*(?:src=\"/|application/json))[^>]*>", text)
        assert scripts == [] and "style=" not in text and " onclick=" not in text and "://" not in text, (
            address
        )
        assert "default-src 'self'" in page.headers["Content-Security-Policy"]


def test_agents_without_samples_get_general_ones() -> None:
    assert [one["text"] for one in samples_for({"model": "local/x"})] == [one["text"] for one in GENERAL]


def test_every_word_of_the_scripts_has_a_translation(alice: User, client: Client) -> None:
    scripts = Path(chat.__file__).parent / "static" / "chat"
    asked = {
        word
        for file in scripts.glob("*.js")
        for word in re.findall(r'\bt\("([^"]+)"', file.read_text("utf-8"))
    }
    assert asked == set(ENGLISH)
    client.force_login(alice)
    page = client.get("/", headers={"Accept-Language": "de"})
    assert 'lang="de"' in page.content.decode() and "Neues Gespräch" in page.content.decode()
    german = facts_on(page.content)["words"]
    assert set(ENGLISH) - set(german) == set()  # type: ignore[call-overload]


def test_every_word_of_the_templates_has_a_translation() -> None:
    templates = Path(settings.BASE_DIR) / "templates"
    files = [
        *templates.glob("*.html"),
        *(templates / "chat").glob("*.html"),
        *(templates / "registration").glob("*.html"),
    ]
    asked = {
        a or b
        for file in files
        for a, b in re.findall(r"{% translate (?:\"([^\"]+)\"|'([^']+)') %}", file.read_text("utf-8"))
    }
    with override("de"):
        assert {word for word in asked if gettext(word) == word} <= {"Agent", "Chat", "Name"}
