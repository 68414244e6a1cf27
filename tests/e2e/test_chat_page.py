"""The walk that matters most: sign in, chat, see a guardrail at work, find its row in the audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents.models import Run
from agents.providers.catalog import register_script
from agents.providers.scripted import Pause, ScriptedModel, says
from audit.models import Violation
from tests.agents.conftest import published
from tests.e2e.conftest import say, sign_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.browser,
    pytest.mark.filterwarnings(
        "ignore:StreamingHttpResponse must consume synchronous iterators"
    ),  # static files
]
Shot = Callable[[str], None]


def test_from_signing_in_to_the_violations_page(page: Any, shot: Shot) -> None:
    page.goto("/")
    shot("1-sign-in")
    sign_in(page)
    page.locator("#agent").select_option("practice")
    shot("2-empty-chat")
    page.get_by_text("look up order 1001").click()

    page.wait_for_selector(".tool.done")
    page.wait_for_selector(".message.agent .redacted")
    page.wait_for_selector("#stop", state="hidden")
    assert "alice.ash@example.org" not in page.locator("#log").inner_text().lower()
    shot("3-redacted-answer")
    row = Violation.objects.filter(processor_id="personal-data").latest("sequence")
    page.goto(f"/admin/audit/violation/?q={row.run_id}")
    shot("4-violations")
    page.goto(f"/admin/audit/violation/{row.pk}/change/")
    assert "Personal data" in page.locator("body").inner_text()
    shot("5-violation")


def test_a_blocked_answer_is_a_notice_and_stays_grey(page: Any, shot: Shot) -> None:
    sign_in(page)
    page.locator("#agent").select_option("practice")
    say(page, "say the word bananas")
    notice = page.locator(".guard")
    notice.wait_for()
    assert "This conversation touches something that we do not talk about here." in notice.inner_text()
    said = "".join(page.locator(".message.agent .body").all_inner_texts())
    assert "As you wish".startswith(said.strip()[:11]) and "banana" not in said
    page.reload()
    page.locator(".guard").wait_for()
    assert page.locator(".message.user.blocked").count() == 1
    assert "banana" not in "".join(page.locator(".message.agent").all_inner_texts())
    shot("6-blocked-after-reload")


def test_a_tool_is_approved_in_the_chat(page: Any, shot: Shot) -> None:
    sign_in(page)
    page.locator("#agent").select_option("practice")
    say(page, "refund order 1001")
    page.get_by_label("Reason").wait_for()
    page.reload()
    page.get_by_label("Reason").fill("paid twice")
    shot("7-approval")
    page.get_by_role("button", name="Approve").click()
    page.locator("#log").get_by_text("the receipt is").wait_for()
    assert Run.objects.get().status == "completed"


def test_an_answer_goes_on_without_its_page_and_can_be_stopped_after_a_reload(page: Any) -> None:
    register_script(
        "test", lambda: ScriptedModel("scripted/test", [[*says("Still here. "), Pause(30), *says("Late.")]])
    )
    published("slow", description="It takes its time.")
    sign_in(page)
    page.locator("#agent").select_option("slow")
    say(page, "Hi")
    page.locator("#log").get_by_text("Still here.").wait_for()
    page.reload()
    page.locator("#log").get_by_text("Still here.").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.locator("#log").get_by_text("Stopped.").wait_for()
    page.reload()
    page.locator("#log").get_by_text("Still here.").wait_for()
    assert Run.objects.get().status == "cancelled"


def test_a_lost_connection_loses_and_doubles_nothing(page: Any) -> None:
    text = " ".join(str(number) for number in range(300))
    register_script("test", lambda: ScriptedModel("scripted/test", [says(text)], cut=5, pace=0.012))
    published("slow")
    sockets: list[Any] = []

    def take(route: Any) -> None:
        sockets.append(route)
        route.connect_to_server()

    page.route_web_socket("**/ws/chat/", take)
    sign_in(page)
    page.locator("#agent").select_option("slow")
    say(page, "Count")
    for count in (1, 2):
        while len(sockets) < count:
            page.wait_for_timeout(20)
        page.wait_for_timeout(200)
        sockets[-1].close(code=1012)
    page.wait_for_selector("#stop", state="hidden", timeout=20_000)
    assert page.locator(".message.agent .body").inner_text() == text
    assert len(sockets) >= 2 and Run.objects.count() == 1


def test_a_second_tab_shows_the_same(page: Any) -> None:
    register_script(
        "test", lambda: ScriptedModel("scripted/test", [says("Seen in both tabs.")], cut=3, repeat_last=True)
    )
    published("helper")
    sign_in(page)
    page.locator("#agent").select_option("helper")
    say(page, "First")
    page.locator("#log").get_by_text("Seen in both tabs.").wait_for()
    page.wait_for_selector("#stop", state="hidden")
    other = page.context.new_page()
    other.goto(page.url)
    other.locator("#log").get_by_text("Seen in both tabs.").wait_for()
    say(page, "Second")
    other.locator(".message.user").get_by_text("Second").wait_for()
    other.locator(".message.agent:not(.answering)").nth(1).wait_for()
    assert other.locator(".message.agent .body").all_inner_texts() == ["Seen in both tabs."] * 2


def test_an_answer_cannot_bring_images_scripts_or_strange_links(page: Any) -> None:
    evil = (
        "**Bold** ![x](https://evil.example/log?d=1) <img src=https://evil.example/i> <script>alert(1)</script> "
        "[run](javascript:alert(1)) [data](data:text/html,x) [good](https://example.org/a) <b onclick=x()>b</b>\n\n"
        "mail a***e@****.com"
    )
    register_script("test", lambda: ScriptedModel("scripted/test", [says(evil)], cut=7))
    published("evil")
    sign_in(page)
    page.locator("#agent").select_option("evil")
    say(page, "Hi")
    page.wait_for_selector("#stop", state="hidden")
    body = page.locator(".message.agent .body")
    assert body.locator("strong").inner_text() == "Bold"
    assert body.locator("img, script, iframe, style, form, [onclick]").count() == 0
    assert [link.get_attribute("href") for link in body.locator("a").all()] == ["https://example.org/a"]
    assert body.locator("a").get_attribute("rel") == "noopener noreferrer nofollow"
    assert body.locator(".redacted").inner_text() == "a***e@****.com"


def test_words_that_could_not_be_sent_are_kept(page: Any) -> None:
    published("helper")
    sign_in(page)
    page.locator("#agent").select_option("helper")
    page.evaluate("document.querySelector('#text').value = 'a'.repeat(100001)")
    page.locator("#text").press("Enter")
    failed = page.locator(".message.user.failed")
    failed.wait_for()
    assert "at most 100,000" in failed.inner_text()
    failed.get_by_role("button", name="Edit").click()
    assert len(page.locator("#text").input_value()) == 100_001


def test_conversations_are_renamed_and_deleted(page: Any, shot: Shot) -> None:
    sign_in(page)
    page.locator("#agent").select_option("practice")
    say(page, "hello")
    page.locator("#log").get_by_text("Say “help” and I tell you").wait_for()
    page.get_by_role("button", name="Rename “hello”").click()
    page.get_by_label("Title of the conversation").fill("A greeting")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="A greeting", exact=False).first.wait_for()
    page.get_by_role("button", name="Delete “A greeting”").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_text("Your conversations will stand here.").wait_for()


def test_it_works_on_a_phone(page: Any, shot: Shot) -> None:
    page.set_viewport_size({"width": 375, "height": 700})
    sign_in(page)
    page.locator("#agent").select_option("practice")
    say(page, "hello")
    page.locator("#log").get_by_text("Say “help” and I tell you").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.get_by_role("button", name="Conversations").click()
    page.get_by_role("button", name="New conversation").wait_for()
    shot("8-phone")
