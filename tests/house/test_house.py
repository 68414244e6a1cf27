"""The house rules that a program can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command

ROOT = Path(__file__).parents[2]
LONGEST_FILE, LONGEST_FUNCTION = 400, 60


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def own_code() -> list[Path]:
    return [file for file in tracked("*.py") if "migrations" not in file.parts]


def test_the_standard_librarys_platform_module_is_not_hidden() -> None:
    found = subprocess.run(
        [sys.executable, "-c", "import platform; print(platform.__file__)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(found.stdout.strip()) == Path(sysconfig.get_path("stdlib")) / "platform.py"
    assert [file.name for file in (ROOT / "platform").glob("*.py")] == []


def test_no_file_is_longer_than_the_house_limit() -> None:
    long = {str(file.relative_to(ROOT)): len(file.read_text("utf-8").splitlines()) for file in own_code()}
    assert {name: lines for name, lines in long.items() if lines > LONGEST_FILE} == {}


def test_no_function_is_longer_than_the_house_limit() -> None:
    long = []
    for file in own_code():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    long.append(f"{file.relative_to(ROOT)}:{node.name} {lines}")
    assert long == []


@pytest.mark.parametrize(
    "package", ["processors.engine", "processors.builtin", "agents.loop", "agents.providers"]
)
def test_the_engine_imports_no_framework(package: str) -> None:
    code = (
        "import sys, pkgutil, importlib\n"
        f"package = importlib.import_module({package!r})\n"
        "for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "    importlib.import_module(module.name)\n"
        "print([name for name in ('django', 'rest_framework', 'channels', 'celery', 'litellm') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_every_requirement_names_its_licence_and_reason() -> None:
    for file in ROOT.glob("requirements*.txt"):
        for line in file.read_text("utf-8").splitlines():
            if line and not line.startswith(("#", "-r")):
                assert re.search(r"==\S+.*# \S.+: \S", line), f"{file.name}: {line}"


def test_every_locked_package_has_a_hash_and_no_address() -> None:
    for file in ROOT.glob("requirements*.lock"):
        text = file.read_text("utf-8")
        blocks = re.split(r"\n(?=[a-z0-9])", text)
        assert [
            block.splitlines()[0] for block in blocks if "==" in block and "--hash=sha256:" not in block
        ] == []
        assert "://" not in text


def test_no_path_of_a_build_machine_is_in_the_house() -> None:
    marks = re.compile(r"(?<![\w.])/(?:work|root|home/\w+)/\w")
    found = [str(file.relative_to(ROOT)) for file in tracked("*.py", "*.md", "*.toml", "*.yaml", "Makefile", ".ci/run")
             if file != Path(__file__) and marks.search(file.read_text("utf-8"))]  # fmt: skip
    assert found == []


@pytest.mark.django_db
def test_no_migration_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("makemigrations", check_changes=True, dry_run=True)
    assert "No changes detected" in capsys.readouterr().out


def test_production_starts_what_the_house_has() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    assert {"postgres", "redis", "prepare", "web", "worker", "beat"} == set(compose)
    assert compose["prepare"]["command"] == ["python", "-m", "embedded.prepare"]
    given = {name for name in compose["web"]["environment"] if name.startswith("GATEHOUSE_")}
    example = (ROOT / ".env.example").read_text("utf-8")
    assert [name for name in given if name not in example] == []


def test_every_variable_that_is_read_is_explained() -> None:
    told = (ROOT / ".env.example").read_text("utf-8") + (ROOT / "README.md").read_text("utf-8")
    read = set()
    for file in tracked("platform/config/*.py", "platform/embedded/*.py"):
        read |= set(re.findall(r"[\"'](GATEHOUSE_[A-Z_]+)[\"']", file.read_text("utf-8")))
    assert sorted(name for name in read if name not in told) == []
