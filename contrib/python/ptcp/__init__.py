"""Transfer files and trees between hosts over parallel TLS streams, with libptcp.

    import ptcp
    ptcp.send("run7/", "ptcp://server/run7/", fingerprints=["SHA256:.."])

The functions block; ptcp.aio has the same functions as coroutines. Failures are subclasses of ptcp.Error.
"""

from __future__ import annotations

import ctypes as _c
import typing as _typing

from . import _native, _plan
from ._task import Advise as _Advise
from ._task import Host
from ._task import Manage as _Manage
from ._task import RateLimit
from ._task import Read as _Read
from ._task import Stat as _Stat
from ._task import Transfer as _Transfer
from ._task import Write as _Write
from ._task import check as _check
from ._task import encoded as _encoded
from ._task import sum_flags as _sum_flags
from .errors import (CanceledError, ConnectError, Error, InfeasibleError, PartialError, RefusedError, StoppedError,
                     UsageError, VanishedError, VerifyError)
from .types import Advice, Choice, Entry, FailedFile, Plan, Probe, Progress, Step, TransferResult

if _typing.TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keywords import AdviceOptions, FileOptions, Options, WriteOptions

__all__ = ["send", "recv", "ls", "stat", "du", "mkdir", "rmdir", "rm", "mv", "touch", "read_ranges", "write", "sum", "advise", "plan",
           "fingerprint", "version",
           "Error", "UsageError", "ConnectError", "RefusedError", "VerifyError", "PartialError",
           "InfeasibleError", "CanceledError", "VanishedError", "StoppedError", "Advice", "Choice", "Entry",
           "FailedFile", "Host", "RateLimit", "Plan", "Probe", "Progress", "Step", "TransferResult"]


def send(sources, dest, *, on_progress=None, on_warning=None, trust=None,
         **options: Unpack[Options]) -> TransferResult:
    """Sends local paths to a remote `dest`, or paths of one server to another server.

    `sources` is one path or a list; `dest` has a form of ptcp-send(1). on_progress(Progress) is called about five
    times a second, on_warning(str) with each warning. trust(host, fingerprint) decides about an unknown server;
    without it, an unknown server is refused. `options` are those of _keywords.pyi: the members of struct
    ptcp_transfer_opts, with _ for the dot of an inner struct, such as preserve_owner; `rate` may be a RateLimit, which
    can change meanwhile.
    """
    return _Transfer("ptcp_send_new", sources, dest, options, on_progress=on_progress, on_warning=on_warning,
                     trust=trust).run()


def recv(sources, dest, *, on_progress=None, on_warning=None, trust=None,
         **options: Unpack[Options]) -> TransferResult:
    """Receives remote paths, all on one host, into the local path `dest`; see send()."""
    return _Transfer("ptcp_recv_new", sources, dest, options, on_progress=on_progress, on_warning=on_warning,
                     trust=trust).run()


def ls(urls, *, recursive=False, hidden=False, itself=False, literal=False, host=None, trust=None,
       **options: Unpack[FileOptions]) -> list[Entry]:
    """Lists directories and files of one host; wildcards are expanded there, unless `literal`. With `itself` directories
    are listed themselves, not their content, with `hidden` names that begin with a dot as well."""
    flags = {"recursive": recursive, "hidden": hidden, "itself": itself, "literal": literal}
    return _Manage("list", urls, flags, options, host=host, trust=trust).run()


def stat(url, *, host=None, trust=None, **options: Unpack[FileOptions]) -> Entry:
    """The file, directory or link of this name, without wildcards; `version` is for if_match."""
    return _Stat(url, options, host=host, trust=trust).run()


def du(urls, *, host=None, trust=None, **options: Unpack[FileOptions]) -> list[Entry]:
    """The size of each path with all content."""
    return _Manage("count", urls, {}, options, host=host, trust=trust).run()


def mkdir(urls, *, parents=False, host=None, trust=None, **options: Unpack[FileOptions]) -> None:
    """Makes directories; with `parents` missing parents as well, and an existing directory is no failure."""
    _Manage("mkdir", urls, {"parents": parents}, options, host=host, trust=trust).run()


def rmdir(urls, *, host=None, trust=None, **options: Unpack[FileOptions]) -> None:
    """Removes empty directories."""
    _Manage("rmdir", urls, {}, options, host=host, trust=trust).run()


def touch(urls, *, host=None, trust=None, **options: Unpack[FileOptions]) -> None:
    """Sets the times of files and directories to the present; makes missing files, empty."""
    _Manage("touch", urls, {}, options, host=host, trust=trust).run()


def rm(urls, *, recursive=False, literal=False, host=None, trust=None, **options: Unpack[FileOptions]) -> None:
    """Removes files, with `recursive` directories with all content; wildcards are expanded there, unless `literal`."""
    _Manage("remove", urls, {"recursive": recursive, "literal": literal}, options, host=host, trust=trust).run()


def mv(url, to, *, replace=False, host=None, trust=None, **options: Unpack[FileOptions]) -> None:
    """Renames within one host, into `to` if that is a directory; with `replace` over an existing file."""
    _Manage("rename", [url, to], {"replace": replace}, options, host=host, trust=trust).run()


def read_ranges(url, ranges, *, on_file=None, host=None, trust=None, **options: Unpack[FileOptions]) -> list[bytes]:
    """The slices [start:end] of a file, for each pair of `ranges`, of which either may be negative or None: one request,
    which moves these bytes only. They belong to one version of the file; on_file(Entry) describes it first."""
    ranges = list(ranges)
    return _Read(url, ranges, on_file, options, host=host, trust=trust).run() if ranges else []


def sum(urls, digests="sha256", *, recursive=False, start=0, end=None, host=None, trust=None,
        **options: Unpack[FileOptions]) -> list[Entry]:
    """Digests of files of one host, computed there: names such as "sha256,crc32c", or a list of them; of the bytes
    [start:end] of each file. With `recursive` the files of directories as well; wildcards are expanded there."""
    return _Manage("sum", urls, _sum_flags(digests, recursive, start, end), options, host=host, trust=trust).run()


def write(url, data, *, mode=None, mtime_ns=None, host=None, trust=None, **options: Unpack[WriteOptions]) -> Entry:
    """Writes a file of at most 1 MiB in one request, published when it is complete and verified. exclusive=True makes a new
    file; if_match=stat(url).version replaces this version only (RefusedError with errno.ESTALE: another has the name).
    Returns the new file, whose `version` no other version of it has."""
    return _Write(url, data, mode, mtime_ns, options, host=host, trust=trust).run()


def advise(target, *, impact_percent=10.0, min_gain_percent=1.0, max_streams=32, model="auto", levels=None,
           receive=False, probe_s=0.0, time_s=0.0, history=False, trust=None,
           **options: Unpack[AdviceOptions]) -> Advice:
    """Recommends a number of streams to a server, "HOST[:PORT]", from probes, of up to `probe_s` seconds
    (0.0: 30 with one stream to 10 with nine and more) for each number of streams, and `time_s` for all (0.0: no limit);
    with `history` from earlier probes, if a probe of 3 seconds agrees."""
    return _Advise(target, impact_percent, min_gain_percent, max_streams, model, levels, receive, probe_s, time_s,
                   history, options, trust=trust).run()


def plan(overlay, *, method="pipelined", slot_s=0.0, deadline_s=0.0, effort_s=10.0, text=False) -> Plan:
    """Plans the collection of an overlay file, or with text=True of the overlay in a string."""
    return _plan.make(overlay, method, slot_s, deadline_s, effort_s, text)


def fingerprint(config_dir=None) -> str:
    """The fingerprint of this user's identity, for `ptcp key authorize`; generates a missing identity."""
    lib, err, out = _native.ptcp(), _native.Err(), _c.create_string_buffer(51)
    _check(lib, lib.ptcp_key_show(_encoded(config_dir) if config_dir is not None else None, out, _c.byref(err)), err)
    return out.value.decode()


def version() -> str:
    """The version of libptcp."""
    return _native.ptcp().ptcp_version().decode()
