"""How log lines look: JSON for machines, plain lines for people; never the text of a message.

Exceptions are written as their type and the places in the code, without their own words: those may quote what a person
or a model said (a validation error shows its input, a database error shows the row).
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path
from types import TracebackType
from typing import Any

import structlog

ROOT = Path(__file__).resolve().parents[2]
Event = MutableMapping[str, Any]


def exception_places(_logger: Any, _method: str, event: Event) -> Event:
    """Replace an exception by its type and the lines it passed, innermost last."""
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()
    elif isinstance(info, BaseException):
        info = (type(info), info, info.__traceback__)
    if info and info[0] is not None:
        event["exception"] = info[0].__qualname__
        event["places"] = places_of(info[2])
    return event


def places_of(trace: TracebackType | None) -> list[str]:
    """`file:line function` of each frame; files of this repository relative to it."""
    found = []
    while trace is not None:
        code = trace.tb_frame.f_code
        file = code.co_filename.removeprefix(f"{ROOT}{os.sep}")
        found.append(f"{file}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return found


def logging_settings(*, readable: bool) -> dict[str, Any]:
    """Django's LOGGING. readable: for a person's terminal; otherwise one JSON object a line."""
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        exception_places,
    ]
    last = structlog.dev.ConsoleRenderer(colors=False) if readable else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        "foreign_pre_chain": shared,
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatter},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": "WARNING"},
        "loggers": {
            "gatehouse": {"level": "INFO"},
            # Its debug and info lines print whole requests.
            "LiteLLM": {"level": "ERROR"},
            # Repeats in words what the request line says, with a traceback.
            "django.channels.server": {"level": "WARNING"},
        },
    }
