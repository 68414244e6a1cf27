"""Which addresses a model client may talk to. Base URLs come from admins, and admin input is hostile.

The address is checked twice: as text when it is saved (`endpoint_check`), and as the resolved IP address
when connecting (`checked_addresses`), so that a name that resolves differently later does not get through.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from processors.engine.errors import ConfigError, ModelAPIError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

NEVER: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32", "168.63.129.16/32",
        "192.0.0.0/24", "0.0.0.0/8", "::/128", "224.0.0.0/4", "ff00::/8", "240.0.0.0/4",
    )
)  # fmt: skip
"""Link-local addresses, cloud machines' metadata services, addresses of no host: no setting allows them."""
NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
COMPATIBLE: Final = ipaddress.ip_network("::/96")
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
FORBIDDEN_CHARACTERS: Final = re.compile(r"[\s\x00-\x20\x7f\\]")


@dataclass(slots=True, frozen=True)
class Endpoint:
    """A checked base address. path: without a slash at its end, empty for none."""

    scheme: str
    host: str
    port: int
    path: str
    allow_private: bool

    @property
    def tls(self) -> bool:
        return self.scheme == "https"

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def endpoint_check(url: str, allow_private: bool = False) -> Endpoint:
    """Take a base URL apart and refuse what a model client must not reach.

    url: such as https://api.openai.com/v1.
    allow_private: the operator's permission for loopback and private networks.
    Raises ConfigError with a sentence for the person who typed it.
    """
    if FORBIDDEN_CHARACTERS.search(url):
        raise ConfigError("The address contains a space, a backslash or a control character. Remove it.")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = parts.hostname or ""
        ascii_host = host if ":" in host else host.encode("idna").decode("ascii")
    except ValueError:
        raise ConfigError("The address cannot be read. Write it like https://api.example.com/v1.") from None
    if parts.scheme not in DEFAULT_PORTS:
        raise ConfigError("The address must begin with https:// or http://.")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "The address contains a name or password. Put the key into the secret field instead."
        )
    if parts.query or parts.fragment:
        raise ConfigError("The address must end with the path, such as /v1. Remove what follows ? or #.")
    if not ascii_host or "%" in ascii_host:
        raise ConfigError("The address has no host name. Write it like https://api.example.com/v1.")
    if port == 0:
        raise ConfigError("The address has port 0. Name the port the service listens on, or none.")
    endpoint = Endpoint(
        parts.scheme, ascii_host, port or DEFAULT_PORTS[parts.scheme], parts.path.rstrip("/"), allow_private
    )
    literal = _literal(ascii_host)
    if literal is not None:
        _refuse(endpoint, literal)
    elif ascii_host == "localhost" or ascii_host.endswith(".localhost"):
        _refuse(endpoint, ipaddress.ip_address("127.0.0.1"))
    return endpoint


async def checked_addresses(endpoint: Endpoint) -> list[str]:
    """Resolve the host now and return its IP addresses, all of which may be reached.

    Raises ConfigError if any of them may not, and a retryable ModelAPIError if the name does not resolve.
    """
    literal = _literal(endpoint.host)
    if literal is not None:
        _refuse(endpoint, literal)
        return [str(literal)]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:
        raise ModelAPIError(
            f"The name {endpoint.host!r} of the model's service does not resolve. Check the address.",
            retryable=isinstance(problem, socket.gaierror) and problem.errno == socket.EAI_AGAIN,
            provider_code="name_resolution",
        ) from problem
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        _refuse(endpoint, ipaddress.ip_address(address.partition("%")[0]))
    return addresses


def is_forbidden(address: Address, *, allow_private: bool) -> bool:
    """Whether a model client must not connect to this address."""
    embedded = _embedded(address)
    if embedded is not None:
        return is_forbidden(embedded, allow_private=allow_private)
    if any(address in network for network in NEVER if network.version == address.version):
        return True
    if address.version == 6 and address in COMPATIBLE and not address.is_loopback:
        return True
    return not address.is_global and not allow_private


def _embedded(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address carries, if it does: mapped, 6to4, Teredo or NAT64."""
    if not isinstance(address, ipaddress.IPv6Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def _literal(host: str) -> Address | None:
    """The IP address that `host` is, also in the short spellings that resolvers accept (127.1, 0x7f.1)."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    if re.fullmatch(r"[0-9a-fx.]+", host, re.IGNORECASE) and host[0].isdigit():
        try:
            return ipaddress.ip_address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None
    return None


def _refuse(endpoint: Endpoint, address: Address) -> None:
    if is_forbidden(address, allow_private=endpoint.allow_private):
        raise ConfigError(
            f"The address {endpoint.host!r} leads into a network that model clients must not reach. "
            "Use a public address, or ask the operator to allow private model services."
        )
