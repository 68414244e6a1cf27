"""A published version never changes: the database refuses it. Only its author may become unknown, when the person is deleted."""

from __future__ import annotations

from django.db import migrations

FUNCTION = """
CREATE FUNCTION agents_version_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.agent_id, NEW.number, NEW.snapshot, NEW.note, NEW.created_at)
     IS DISTINCT FROM (OLD.agent_id, OLD.number, OLD.snapshot, OLD.note, OLD.created_at)
     OR (NEW.author_id IS DISTINCT FROM OLD.author_id AND NEW.author_id IS NOT NULL) THEN
    RAISE EXCEPTION 'A published version cannot be changed. Publish a new one.' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN NEW;
END $$
"""
TRIGGER = "CREATE TRIGGER agents_version_stays BEFORE UPDATE ON agents_agentversion FOR EACH ROW EXECUTE FUNCTION agents_version_refuse()"


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_initial")]
    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION agents_version_refuse()"),
        migrations.RunSQL(TRIGGER, "DROP TRIGGER agents_version_stays ON agents_agentversion"),
    ]
