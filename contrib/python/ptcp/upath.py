"""ptcp:// for universal_pathlib: UPath("ptcp://server/run7") is such a path, once both packages are installed."""

from upath import UPath


class PtcpPath(UPath):
    __slots__ = ()

    def __str__(self) -> str:
        """With the host, which universal_pathlib keeps among the storage options."""
        return self.fs.unstrip_protocol(self.path) if self.storage_options.get("host") else super().__str__()
