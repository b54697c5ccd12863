"""Results. Sizes are bytes, rates bit/s, times seconds; an unknown number is None, which JSON can express."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple


def _known(value):
    """`value`, and the numbers of a tuple; None for one that libptcp does not know (NAN), or that is infinite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return tuple(map(_known, value)) if type(value) is tuple else value


class _Result:
    """A result with numbers that may be unknown."""

    def __post_init__(self):
        for name, value in list(vars(self).items()):
            object.__setattr__(self, name, _known(value))  # the classes are frozen


@dataclass(frozen=True)
class Progress(_Result):
    bytes: int  # verified and written at the destination
    total_bytes: int  # listed so far; see total_known
    files: int  # complete
    total_files: int
    failed: int
    wire_bytes: int  # sent in this run: compressed, retransmitted blocks included
    saved_bytes: int  # that compression kept from being sent
    resumed_bytes: int  # already transferred before this run, and verified
    file_bytes: int  # of the complete files
    others: int  # complete directories and links
    streams: int
    max_streams: int
    activity: str  # "transferring", "verifying" or "syncing"
    total_known: bool  # the listing is complete
    rate_bps: Optional[float]  # over the last seconds; None in a result
    eta_s: Optional[float]


@dataclass(frozen=True)
class FailedFile:
    path: bytes  # relative to the source
    code: str  # such as "PTCP_EIO"
    reason: str
    errno: Optional[int] = None  # cause, such as errno.ENOENT; None: another one


@dataclass(frozen=True)
class TransferResult(_Result):
    progress: Progress  # at the end
    warnings: Tuple[str, ...]
    failed_files: Tuple[FailedFile, ...]
    seconds: float
    advised_streams: int  # 0: not chosen from observed throughput, and the next three are None
    predicted_bps: Optional[float]
    predicted_impact_percent: Optional[float]
    measured_bps: Optional[float]
    digests: Mapping[bytes, Mapping[str, str]] = field(default_factory=dict, hash=False)  # of sent files, with `digest`
    up_to_date: Optional[int] = None  # files that this run found complete at the destination, or that a rule kept there
    copied_bytes: Optional[int] = None  # part of the sent bytes that was sent again, or in vain; None: received
    probed_s: float = 0.0  # in which the number of streams was looked for
    compared_bytes: Optional[int] = None  # of blocks compared by hash with existing files; None: between two servers
    compress_level: Optional[int] = None  # of zstd at the end, 0: none; None: received, or between two servers


@dataclass(frozen=True)
class Entry:
    """A file, directory or link of another host."""

    path: bytes  # below the listed directory; the whole path of a listed file, or with several URLs or wildcards
    type: str  # "file", "directory", "symlink", "fifo", "socket", "char device", "block device" or "unknown"
    mode: int
    bytes: int
    disk_bytes: int
    mtime_ns: int  # since 1970-01-01, UTC
    target: Optional[bytes]  # of a symbolic link
    entries: int = 0  # of du(): files and directories, itself included
    digests: Mapping[str, str] = field(default_factory=dict, hash=False)  # of sum(): digits by name, of `bytes` bytes

    @property
    def version(self) -> str:
        """The version of a file, for the option if_match."""
        seconds, ns = divmod(self.mtime_ns, 10**9)
        return f"{self.bytes}@{seconds}.{ns:09d}"


@dataclass(frozen=True)
class Choice(_Result):
    impact_percent: float  # budget
    streams: int
    throughput_bps: float


@dataclass(frozen=True)
class Probe(_Result):
    streams: int
    throughput_bps: float
    error_bps: Optional[float]


@dataclass(frozen=True)
class Advice(_Result):
    streams: int
    throughput_bps: float  # predicted, as the impact
    throughput_range_bps: Tuple[float, float]  # holds 80 % of the truth
    impact_percent: Optional[float]  # slowdown of each other flow, compared with one stream; None with limit_advice
    impact_range_percent: Tuple[Optional[float], Optional[float]]
    confident: bool
    warnings: Tuple[str, ...]
    limited_by: str  # "impact", "gain", "max-streams" or "saturated"
    limit: str  # bottleneck of the probes: "unknown", "network", "send-buffer" ..
    limit_advice: Optional[str]
    path_limit: Optional[str]  # "policer", "shallow-queue" or "random-loss"
    path_advice: Optional[str]  # the same as a sentence, with its remedy
    path_rate_bps: Optional[float]  # rate for a transfer behind a policer
    others: str  # other flows on the path: "unknown", "none seen" or "some"
    model: str
    choices: Tuple[Choice, ...]  # for this budget, half of it, and no budget
    probes: Tuple[Probe, ...]
    from_history: bool
    age_s: float
    check_bps: Optional[float]  # what the recommended number has now, with from_history


@dataclass(frozen=True)
class Step(_Result):
    """Data of `source` over the link from `from_host` to `to_host`."""

    from_host: str
    to_host: str
    source: str
    start_s: float
    end_s: float
    bytes: int


@dataclass(frozen=True)
class Plan(_Result):
    method: str
    makespan_s: float
    bound_s: float  # lower bound of the makespan for this method
    solve_s: float
    data_bytes: float
    relayed_bytes: float
    steps: Tuple[Step, ...]
