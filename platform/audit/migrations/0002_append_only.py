"""The database itself refuses to change or remove what the audit holds.

TRUNCATE is refused too, but for databases whose name begins with `test_`: Django empties those between tests.
"""

from __future__ import annotations

from django.db import migrations

TABLES = ("audit_violation", "audit_change")

REFUSE = """
CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' AND current_database() LIKE 'test\\_%' THEN
    RETURN NULL;
  END IF;
  RAISE EXCEPTION 'The audit is append-only: % on % is refused.', TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$
"""


def triggers(table: str) -> list[migrations.RunSQL]:
    rows, whole = f"{table}_append_only", f"{table}_no_truncate"
    return [
        migrations.RunSQL(
            f"CREATE TRIGGER {rows} BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
            f"DROP TRIGGER {rows} ON {table}",
        ),
        migrations.RunSQL(
            f"CREATE TRIGGER {whole} BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
            f"DROP TRIGGER {whole} ON {table}",
        ),
    ]


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]
    operations = [
        migrations.RunSQL(REFUSE, "DROP FUNCTION audit_refuse()"),
        *(operation for table in TABLES for operation in triggers(table)),
    ]
