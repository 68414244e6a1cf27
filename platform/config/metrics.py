"""Figures for Prometheus, read from the tables that every process writes: they are right with any number of processes."""

from __future__ import annotations

import hmac
from collections.abc import Iterator

from django.conf import settings
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from agents.models import Run, ToolCall
from audit.models import ProcessorHour, Violation

LOOPBACK = frozenset({"127.0.0.1", "::1", "", None})
UNFINISHED = ("queued", "running", "waiting")


class Tables(Collector):
    """The numbers of one scrape."""

    def collect(self) -> Iterator[Metric]:
        runs = GaugeMetricFamily(
            "gatehouse_runs_unfinished", "Runs that have not ended, by status", labels=["status"]
        )
        counts = dict(Run.objects.filter(status__in=UNFINISHED).values_list("status").annotate(Count("id")))
        for status in UNFINISHED:
            runs.add_metric([status], counts.get(status, 0))
        yield runs
        calls = GaugeMetricFamily("gatehouse_tool_calls", "Tool calls, by status", labels=["status"])
        for status, count in ToolCall.objects.values_list("status").annotate(Count("id")):
            calls.add_metric([status], count)
        yield calls
        yield from self._guardrails()
        rows = CounterMetricFamily(
            "gatehouse_audit_rows", "Rows in the audit trail, by outcome", labels=["outcome"]
        )
        for outcome, count in Violation.objects.values_list("outcome").annotate(Count("id")):
            rows.add_metric([outcome], count)
        yield rows

    def _guardrails(self) -> Iterator[Metric]:
        words = {
            "evaluated": "Times a guardrail was asked",
            "passed": "Times it let pass",
            "violations": "Times it objected",
            "errors": "Times it failed",
            "seconds": "Seconds it took in all",
        }
        families = {
            name: CounterMetricFamily(f"gatehouse_guardrail_{name}", text, labels=["guardrail"])
            for name, text in words.items()
        }
        sums = (Sum(name) for name in families)
        for guardrail, *totals in ProcessorHour.objects.values_list("processor_id").annotate(*sums):
            for family, total in zip(families.values(), totals, strict=True):
                family.add_metric([guardrail], total or 0)
        yield from families.values()


def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus' text format, for this machine, for staff, or with `Authorization: Bearer GATEHOUSE_METRICS_TOKEN`."""
    if not may_read(request):
        return HttpResponse(
            "Send the metrics token, or sign in as staff.\n", status=403, content_type="text/plain"
        )
    registry = CollectorRegistry()
    registry.register(Tables())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def may_read(request: HttpRequest) -> bool:
    """With a token set, only the token or staff; without one, this machine too (a proxy on it is somebody else)."""
    token = settings.GATEHOUSE_METRICS_TOKEN
    if token and hmac.compare_digest(
        request.headers.get("Authorization", "").encode(), f"Bearer {token}".encode()
    ):
        return True
    forwarded = "X-Forwarded-For" in request.headers or "Forwarded" in request.headers
    if not token and not forwarded and request.META.get("REMOTE_ADDR") in LOOPBACK:
        return True
    return bool(request.user.is_active and request.user.is_staff)
