"""The tools that come with Gatehouse."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from agents.tools.calculator import calculate
from agents.tools.clock import tell_time
from agents.tools.kinds import ToolKind
from agents.tools.practice_data import look_up_order, refund_order, write_report

KINDS: Final = (
    ToolKind(
        "calculator", _("Calculator"), "Calculates an arithmetic expression such as (3 + 4) * 2.",
        {"type": "object", "properties": {"expression": {"type": "string", "maxLength": 200, "description": "Numbers and + - * / % ** ( )"}},
         "required": ["expression"], "additionalProperties": False}, calculate,
    ),
    ToolKind(
        "clock", _("Clock"), "Tells the date and time in a time zone.",
        {"type": "object", "properties": {"zone": {"type": "string", "maxLength": 60, "description": "Such as Europe/Berlin; UTC if left out"}},
         "additionalProperties": False}, tell_time,
    ),
    ToolKind(
        "order-lookup", _("Order look-up (practice data)"), "Looks up an order of the practice shop by its number.",
        {"type": "object", "properties": {"number": {"type": "string", "pattern": "^[0-9]{1,10}$"}}, "required": ["number"], "additionalProperties": False},
        look_up_order,
    ),
    ToolKind(
        "order-refund", _("Refund (practice data)"), "Refunds an order of the practice shop. Nothing really happens.",
        {"type": "object", "properties": {"number": {"type": "string", "pattern": "^[0-9]{1,10}$"}, "amount": {"type": "number", "exclusiveMinimum": 0}},
         "required": ["number", "amount"], "additionalProperties": False}, refund_order,
    ),
    ToolKind(
        "slow-report", _("Slow report (practice data)"), "Makes a report on the practice shop; takes some seconds and tells how far it is.",
        {"type": "object", "properties": {"topic": {"type": "string", "maxLength": 100}, "seconds": {"type": "number", "minimum": 0, "maximum": 600}},
         "additionalProperties": False}, write_report,
    ),
)  # fmt: skip
"""Kinds offered by every installation."""
