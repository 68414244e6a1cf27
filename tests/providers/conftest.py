"""A local model service, and both clients to speak to it."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from agents.providers.endpoint import endpoint_check
from agents.providers.litellm_client import LiteLLMModel, load_litellm
from agents.providers.openai_compatible import OpenAICompatibleModel
from agents.providers.timeouts import Timeouts
from processors.engine.ports import LanguageModel
from tests.providers.asking import answer
from tests.providers.server import ModelServer, calls, ends, says

MakeClient = Callable[..., LanguageModel]
SECRET = "sk-alice-0123456789"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """litellm itself uses what newer pydantic versions warn about."""
    for item in items:
        if "litellm" in item.nodeid and "providers" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning:litellm"))
            item.add_marker(pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"))


@pytest_asyncio.fixture(loop_scope="package")
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture(loop_scope="package", scope="package")
async def litellm() -> AsyncIterator[Any]:
    """litellm, loaded once, its connections closed at the end.

    Its first answer loads more and warns about its own models, which would count as a failure of whoever comes first.
    """
    library = load_litellm()
    server = ModelServer()
    await server.start()
    server.plays(says("Hi."), calls(0, "{}", id="c", name="a"), ends())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        await answer(
            LiteLLMModel("openai/m", name="openai/m", base_url=server.url, api_key=SECRET, allow_private=True)
        )
    await server.stop()
    yield library
    await library.close_litellm_async_clients()


@pytest.fixture(params=["direct", "litellm"])
def connect(request: pytest.FixtureRequest, server: ModelServer) -> MakeClient:
    """Makes a client of either kind for the local service; keyword arguments are time limits."""
    if request.param == "litellm":
        request.getfixturevalue("litellm")

    def make(**limits: float) -> LanguageModel:
        times = Timeouts(**{"connect": 5.0, "first_byte": 10.0, "between": 10.0, **limits})
        if request.param == "litellm":
            return LiteLLMModel("openai/m", name="openai/m", base_url=server.url, api_key=SECRET, allow_private=True,
                                timeouts=times)  # fmt: skip
        endpoint = endpoint_check(server.url, allow_private=True)
        return OpenAICompatibleModel("openai/m", name="m", endpoint=endpoint, api_key=SECRET, timeouts=times)

    return make
