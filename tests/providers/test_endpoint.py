"""Admins type base URLs; none of them opens the internal network."""

from __future__ import annotations

import ipaddress

import pytest

from agents.providers.endpoint import Endpoint, checked_addresses, endpoint_check, is_forbidden
from processors.engine.errors import ConfigError, ModelAPIError


def test_it_takes_a_base_address_apart() -> None:
    assert endpoint_check("https://api.example.com/v1/") == Endpoint(
        "https", "api.example.com", 443, "/v1", False
    )
    assert endpoint_check("http://models.example.com:8080").host_header == "models.example.com:8080"
    assert endpoint_check("https://[2606:4700::1111]/v1").host_header == "[2606:4700::1111]"
    assert endpoint_check("https://bücher.example/v1").host == "xn--bcher-kva.example"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://example.com/", "must begin with https"),
        ("file:///etc/passwd", "must begin with https"),
        ("gopher://example.com", "must begin with https"),
        ("example.com/v1", "must begin with https"),
        ("", "must begin with https"),
        ("https://alice:secret@example.com/v1", "secret field"),
        ("https://alice@example.com/v1", "secret field"),
        ("https://example.com/v1?key=1", "Remove what follows"),
        ("https://example.com/v1#top", "Remove what follows"),
        ("https:///v1", "no host name"),
        ("https://[fe80::1%25eth0]/", "no host name"),
        ("https://example.com:0/v1", "port 0"),
        ("https://example.com:99999/v1", "cannot be read"),
        ("https://[::1/v1", "cannot be read"),
        ("https://exa mple.com/", "a space"),
        ("https://example.com\\@127.0.0.1/", "a backslash"),
        ("https://example.com/v1\r\nHost: evil", "control character"),
    ],
)
def test_it_refuses_an_address_and_says_what_to_change(url: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        endpoint_check(url)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "api.localhost", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1",
        "[::1]", "[fd12::1]", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f000001", "0177.0.0.1",
        "[64:ff9b::10.0.0.1]", "[2002:7f00:1::]",
    ],
)  # fmt: skip
def test_a_private_address_needs_the_operators_permission(host: str) -> None:
    with pytest.raises(ConfigError, match="must not reach"):
        endpoint_check(f"http://{host}/v1")
    assert endpoint_check(f"http://{host}/v1", allow_private=True).allow_private


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16", "[::]",
        "0.0.0.1",
        "224.0.0.1", "255.255.255.255", "[ff02::1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]",
        "2852039166", "[::169.254.169.254]",
    ],
)  # fmt: skip
def test_nobody_may_allow_the_metadata_services_of_cloud_machines(host: str) -> None:
    with pytest.raises(ConfigError, match="must not reach"):
        endpoint_check(f"http://{host}/v1", allow_private=True)


def test_public_addresses_pass() -> None:
    for address in ("8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"):
        assert not is_forbidden(ipaddress.ip_address(address), allow_private=False)


@pytest.mark.asyncio
async def test_a_name_is_checked_again_when_it_is_resolved() -> None:
    """A name that looked harmless and resolves to loopback at connect time does not get through."""
    rebound = Endpoint("http", "localhost", 80, "/v1", allow_private=False)
    with pytest.raises(ConfigError, match="must not reach"):
        await checked_addresses(rebound)
    allowed = Endpoint("http", "localhost", 80, "/v1", allow_private=True)
    assert set(await checked_addresses(allowed)) <= {"127.0.0.1", "::1"}


@pytest.mark.asyncio
async def test_a_name_that_does_not_resolve_is_an_api_error() -> None:
    nowhere = Endpoint("https", "nowhere.invalid", 443, "", allow_private=False)
    with pytest.raises(ModelAPIError, match="does not resolve") as caught:
        await checked_addresses(nowhere)
    assert caught.value.provider_code == "name_resolution"
