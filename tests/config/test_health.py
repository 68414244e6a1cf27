"""Operators' addresses: alive, ready, and figures that only those see who may."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import User

pytestmark = pytest.mark.django_db


def test_it_is_alive_under_any_name(client: Client) -> None:
    assert client.get("/healthz", headers={"host": "10.1.2.3:8000"}).json() == {"status": "ok"}


def test_it_is_ready_when_both_services_answer(client: Client) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (
        200,
        {"status": "ok", "parts": {"database": True, "redis": True}},
    )


def test_it_is_not_ready_without_redis_and_says_which_part(client: Client, settings: Settings) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"] == {"database": True, "redis": False}


def test_another_host_name_is_refused_elsewhere(client: Client) -> None:
    assert client.get("/accounts/login/", headers={"host": "evil.example"}).status_code == 400


def test_this_machine_reads_figures(client: Client) -> None:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert 'gatehouse_runs_unfinished{status="queued"} 0.0' in answer.content.decode()


def test_a_stranger_reads_no_figures(client: Client) -> None:
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.7").status_code == 403
    assert client.get("/metrics", headers={"x-forwarded-for": "192.0.2.7"}).status_code == 403


def test_with_a_token_only_the_token_or_staff_reads_figures(client: Client, settings: Settings) -> None:
    settings.GATEHOUSE_METRICS_TOKEN = "letters"
    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"authorization": "Bearer other"}).status_code == 403
    assert client.get("/metrics", headers={"authorization": "Bearer letters"}).status_code == 200
    client.force_login(User.objects.create_user("charlie", is_staff=True))
    assert client.get("/metrics").status_code == 200


@pytest.mark.parametrize(
    ("path", "relaxed"),
    [("/", False), ("/accounts/login/", False), ("/metrics", False), ("/admin/login/", True)],
)
def test_only_the_console_relaxes_the_content_policy(client: Client, path: str, relaxed: bool) -> None:
    policy = client.get(path).headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert ("unsafe" in policy) is relaxed
