"""Brings the database up to date and fills in the demo data, in one process.

    python -m embedded.prepare

Run by the supervisor before the web server starts, and by an operator before a new version is rolled out. It says in one
sentence what is wrong with a database or a Redis that it cannot use, and exits with 1.
"""

from __future__ import annotations

import os
import sys

import django

OTHERWISE = "or leave DATABASE_URL out to use the embedded database."


class ServiceUnusable(Exception):
    """The database or Redis cannot be used; the message says why and what to do."""


def database_check() -> None:
    """Raises ServiceUnusable when the database does not answer, refuses us, or has no pgvector."""
    import psycopg
    from django.conf import settings

    database = settings.DATABASES["default"]
    address = {"host": database["HOST"], "port": database["PORT"], "user": database["USER"]}
    options = {
        name: value for name, value in database["OPTIONS"].items() if name not in {"pool", "connect_timeout"}
    }
    known = {name: value for name, value in {**address, "password": database["PASSWORD"]}.items() if value}
    try:
        with psycopg.connect(dbname=database["NAME"], connect_timeout=10, **known, **options) as connection:
            offered = connection.execute(
                "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
            ).fetchone()
    except psycopg.Error as error:
        raise ServiceUnusable(
            f"The database cannot be used: {reason_of(error)}. Check DATABASE_URL (host, port, user, password, database), "
            f"{OTHERWISE}"
        ) from error
    if not offered:
        raise ServiceUnusable(
            "This Postgres has no pgvector. Install the extension there (Debian: postgresql-NN-pgvector; image: "
            f"pgvector/pgvector), {OTHERWISE}"
        )


def redis_check() -> None:
    """Raises ServiceUnusable when Redis does not answer."""
    import redis
    from django.conf import settings

    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=10, socket_timeout=10) as client:
            client.ping()
    except (redis.RedisError, ValueError, OSError) as error:
        raise ServiceUnusable(
            f"Redis cannot be used: {reason_of(error)}. Check REDIS_URL (redis://:password@host:6379/0), "
            "or leave it out to use the embedded server."
        ) from error


def reason_of(error: Exception) -> str:
    """The driver's own words in one line, without the address, which may hold a password."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    telling = next((line for line in lines if "FATAL" in line or "failed:" in line), lines[0])
    return telling.rsplit("failed: ", 1)[-1].removeprefix("FATAL:").strip().rstrip(".")


def prepare() -> None:
    """Check, migrate, demo data. Raises ServiceUnusable."""
    from django.core.management import call_command
    from django.db import DatabaseError

    database_check()
    redis_check()
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except DatabaseError as error:
        raise ServiceUnusable(
            f"The database could not be brought up to date: {reason_of(error)}. "
            f"Let DATABASE_URL name a user who may create tables and extensions, {OTHERWISE}"
        ) from error
    if os.environ.get("GATEHOUSE_DEMO", "1") not in {"0", "no", "false"}:
        call_command("demo")


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    try:
        prepare()
    except ServiceUnusable as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
