"""The one bridge between async code and the database (see audit.bridge, where lower layers find it too)."""

from audit.bridge import in_database as in_database

__all__ = ["in_database"]
