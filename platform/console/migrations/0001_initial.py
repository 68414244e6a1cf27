from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = [("processors", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="Example",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField(max_length=20000, verbose_name="text")),
                (
                    "used_as",
                    models.CharField(
                        choices=[
                            ("input", "a person's message"),
                            ("output", "an agent's answer"),
                            ("tool", "a tool's result"),
                        ],
                        default="input",
                        max_length=8,
                        verbose_name="as",
                    ),
                ),
                (
                    "expected",
                    models.CharField(
                        choices=[("catch", "must be caught"), ("pass", "must pass")],
                        default="catch",
                        max_length=8,
                        verbose_name="expected",
                    ),
                ),
                (
                    "processor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="examples",
                        to="processors.processor",
                        verbose_name="guardrail",
                    ),
                ),
            ],
            options={
                "verbose_name": "saved example",
                "verbose_name_plural": "saved examples",
                "ordering": ["pk"],
            },
        ),
    ]
