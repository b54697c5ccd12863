"""Storage of Snakemake on servers of ptcp: queries are URLs, ptcp://HOST[:PORT]/PATH."""

import os
import posixpath
import re
from dataclasses import dataclass, field
from typing import Any, Iterable, List, Optional
from urllib.parse import quote, urlsplit

import ptcp
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_storage_plugins.common import Operation
from snakemake_interface_storage_plugins.io import IOCacheStorageInterface, Mtime, get_constant_prefix
from snakemake_interface_storage_plugins.settings import StorageProviderSettingsBase
from snakemake_interface_storage_plugins.storage_object import StorageObjectGlob, StorageObjectRead, StorageObjectTouch, StorageObjectWrite
from snakemake_interface_storage_plugins.storage_provider import ExampleQuery, QueryType, StorageProviderBase, StorageQueryValidationResult

STAMP = ".snakemake_timestamp"  # of a directory, as in the storage of the local file system


@dataclass
class StorageProviderSettings(StorageProviderSettingsBase):
    fingerprint: Optional[str] = field(
        default=None, metadata={"help": "Fingerprint of the server, SHA256:.. (default: the one that known_hosts has).", "env_var": True})
    config_home: Optional[str] = field(
        default=None, metadata={"help": "Folder of the identity and known_hosts (default: ~/.config/ptcp).", "env_var": True})
    streams: Optional[int] = field(default=None, metadata={"help": "Number of streams of each transfer (default: from the observed throughput)."})
    rate: Optional[str] = field(default=None, metadata={"help": "Maximum rate of each transfer, such as 500Mbit/s."})


class StorageProvider(StorageProviderBase):
    def __post_init__(self) -> None:
        s = self.settings or StorageProviderSettings()
        self.host = ptcp.Host()
        self.options: dict[str, Any] = {}
        if s.fingerprint:
            self.options["fingerprints"] = [s.fingerprint]
        if s.config_home:
            self.options["config_dir"] = s.config_home
        self.speed: dict[str, Any] = {name: getattr(s, name) for name in ("streams", "rate") if getattr(s, name) is not None}

    @classmethod
    def example_queries(cls) -> List[ExampleQuery]:
        return [ExampleQuery("ptcp://storage.example.org/run7/{sample}.bam", "A file of a server; a directory needs directory().",
                             QueryType.ANY)]

    def rate_limiter_key(self, query: str, operation: Operation) -> Any:
        return urlsplit(query).netloc

    def default_max_requests_per_second(self) -> float:
        return 100.0

    def use_rate_limiter(self) -> bool:
        return False  # the server admits clients in turn

    @classmethod
    def is_valid_query(cls, query: str) -> StorageQueryValidationResult:
        match = re.match(r"ptcp://[^/]+/+[^/]", query)
        bad = match is None or ".." in query.split("/")
        reason = "It has to be ptcp://HOST[:PORT]/PATH, without .. as a part of the path." if bad else None
        return StorageQueryValidationResult(query=query, valid=not bad, reason=reason)

    def postprocess_query(self, query: str) -> str:
        """One form of each URL: without empty parts, . and final slashes."""
        scheme, _, rest = query.partition("://")
        host, _, path = rest.partition("/")
        return f"{scheme}://{host}/{posixpath.normpath(path).lstrip('/')}"


class StorageObject(StorageObjectRead, StorageObjectWrite, StorageObjectGlob, StorageObjectTouch):
    provider: StorageProvider

    async def inventory(self, cache: IOCacheStorageInterface) -> None:
        key = self.cache_key()
        if key in cache.exists_in_storage:
            return
        entry = self._entry()
        cache.exists_in_storage[key] = entry is not None
        if entry is not None:
            cache.mtime[key] = Mtime(storage=self._mtime_of(entry))
            cache.size[key] = self._size_of(entry)

    def get_inventory_parent(self) -> Optional[str]:
        return None  # each object is asked for by itself, in one round trip

    def local_suffix(self) -> str:
        return self.query[len("ptcp://"):]

    def cleanup(self) -> None:
        pass

    # One request each, over the connection that the provider keeps.

    def _stat(self, url: str) -> Optional[ptcp.Entry]:
        try:
            return ptcp.stat(url, host=self.provider.host, **self.provider.options)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _entry(self) -> Optional[ptcp.Entry]:
        """What the name leads to, through links that stay beneath the root."""
        url = self.query
        for _ in range(8):
            entry = self._stat(url)
            if entry is None or entry.target is None or entry.target.startswith(b"/"):
                return entry
            url = self.provider.postprocess_query(url.rpartition("/")[0] + "/" + quote(entry.target))
        return None

    def _there(self) -> ptcp.Entry:
        entry = self._entry()
        if entry is None:
            raise FileNotFoundError(f"{self.query} does not exist")
        return entry

    def _mtime_of(self, entry: ptcp.Entry) -> float:
        stamp = self._stat(f"{self.query}/{STAMP}") if entry.type == "directory" else None
        return (stamp or entry).mtime_ns / 1e9

    def _size_of(self, entry: ptcp.Entry) -> int:
        return 0 if entry.type == "directory" else entry.bytes

    def exists(self) -> bool:
        return self._entry() is not None

    def mtime(self) -> float:
        return self._mtime_of(self._there())

    def size(self) -> int:
        return self._size_of(self._there())

    def local_footprint(self) -> int:
        return ptcp.du(self.query, host=self.provider.host, **self.provider.options)[0].bytes

    def retrieve_object(self) -> None:
        directory = self._there().type == "directory"
        slash = "/" if directory else ""
        ptcp.recv(self._literal + slash, os.fspath(self.local_path()) + slash, dest_is_file=not directory, copy_links=True,
                  **self.provider.options, **self.provider.speed)

    def store_object(self) -> None:
        local = self.local_path()
        directory = local.is_dir()
        if directory:
            (local / STAMP).touch()
        slash = "/" if directory else ""
        # A directory replaces the former one, as a file does.
        replaced = {"delete_extra": True, "max_delete": 2**31 - 1} if directory else {"dest_is_file": True}
        ptcp.send(os.fspath(local) + slash, self.query + slash, copy_links=True, **replaced, **self.provider.options,
                  **self.provider.speed)

    def remove(self) -> None:
        ptcp.rm(self.query, recursive=True, literal=True, host=self.provider.host, **self.provider.options)

    def touch(self) -> None:
        stamp = f"/{STAMP}" if self._there().type == "directory" else ""
        ptcp.touch(self.query + stamp, host=self.provider.host, **self.provider.options)

    def list_candidate_matches(self) -> Iterable[str]:
        prefix = get_constant_prefix(self.query, strip_incomplete_parts=True).rstrip("/")
        if "://" not in prefix or "/" not in prefix.partition("://")[2]:
            prefix += "/"
        try:
            entries = ptcp.ls(prefix, recursive=True, hidden=True, literal=True, host=self.provider.host, **self.provider.options)
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = (e.path.decode() for e in entries if _is_text(e.path))
        return [f"{prefix.rstrip('/')}/{name.replace('%', '%25')}" for name in names]

    @property
    def _literal(self) -> str:
        """The query as a source, where *, ? and [ would be patterns."""
        return re.sub(r"[*?\[\\]", lambda m: "%%%02X" % ord(m.group()), self.query)


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
        return True
    except UnicodeDecodeError:
        return False
