"""A real browser in front of the real application."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.living_database import living_database
from tests.living_server import living_server

__all__ = ["living_database", "living_server"]
PASSWORD = "practice makes perfect"
SCREENSHOTS = Path(__file__).resolve().parents[2] / "var" / "screenshots"


@pytest.fixture(scope="module", autouse=True)
def orm_beside_the_browser() -> Iterator[None]:
    """Playwright's event loop occupies this thread, but these tests are no coroutines: the ORM may be used."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    yield
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def demo(db: None, settings: Any) -> None:
    """What a new installation begins with, at full speed."""
    from agents.services.demo import demo_make

    settings.GATEHOUSE_PRACTICE_PACE = 0
    demo_make(admin_password=PASSWORD)


@pytest.fixture
def page(browser: Any, living_server: str, demo: None) -> Iterator[Any]:
    """A fresh page. The test fails if the page raised, asked another server, or broke its content policy."""
    context = browser.new_context(base_url=living_server, viewport={"width": 1200, "height": 800})
    context.set_default_timeout(10_000)
    opened, faults = context.new_page(), []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    opened.on(
        "request",
        lambda one: (
            None if one.url.startswith((living_server, "ws:", "data:", "blob:")) else faults.append(one.url)
        ),
    )
    yield opened
    context.close()
    assert faults == []


@pytest.fixture
def shot(page: Any) -> Callable[[str], None]:
    """Keeps a screenshot for whoever looks at the results."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return lambda name: page.screenshot(path=str(SCREENSHOTS / f"{name}.png"))


def sign_in(page: Any, name: str = "admin") -> None:
    """Over the sign-in page."""
    page.goto("/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("#threads li", state="attached")


def say(page: Any, text: str) -> None:
    """Write a message and send it with the keyboard."""
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")
