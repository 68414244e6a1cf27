"""Lists in pages. A page is found by its place, not by its number, so that new rows shift nothing."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class Pages(CursorPagination):
    """`limit` sets the size; the answer is {"next", "previous", "results"}, with addresses of the pages beside it."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 200
    ordering = "-pk"


class ThreadPages(Pages):
    """Conversations, the latest first."""

    ordering = "-updated_at"


class ViolationPages(Pages):
    """Violations, the latest first."""

    ordering = "-sequence"
