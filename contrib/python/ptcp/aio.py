"""The functions of the package as coroutines. Callbacks run in the event loop. Canceling a coroutine cancels the
transfer, which the same call resumes later."""

from __future__ import annotations

import asyncio
import functools
import typing

from . import _plan
from ._task import Advise, Manage, Read, Stat, Transfer, Write, sum_flags
from .types import Advice, Entry, Plan, TransferResult

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keywords import AdviceOptions, FileOptions, Options, WriteOptions


async def _run(task):
    loop = asyncio.get_running_loop()
    ended, timer = loop.create_future(), None

    def step():
        nonlocal timer
        if timer is not None:
            timer.cancel()
            timer = None
        if task.step():
            loop.remove_reader(task.fd())
            ended.set_result(None)
            return
        ms = task.timeout_ms()
        if ms >= 0:
            timer = loop.call_later(ms / 1000, step)

    try:
        task.start()
        loop.add_reader(task.fd(), step)
        timer = loop.call_later(max(task.timeout_ms(), 0) / 1000, step)
        canceled = None
        while not ended.done():
            try:
                await asyncio.shield(ended)
            except asyncio.CancelledError as e:
                canceled = e
                task.cancel()
        if canceled is not None:
            raise canceled
        return task.end()
    finally:
        task.free()


async def send(sources, dest, *, on_progress=None, on_warning=None, trust=None,
               **options: Unpack[Options]) -> TransferResult:
    return await _run(Transfer("ptcp_send_new", sources, dest, options, on_progress=on_progress,
                               on_warning=on_warning, trust=trust))


async def recv(sources, dest, *, on_progress=None, on_warning=None, trust=None,
               **options: Unpack[Options]) -> TransferResult:
    return await _run(Transfer("ptcp_recv_new", sources, dest, options, on_progress=on_progress,
                               on_warning=on_warning, trust=trust))


async def ls(urls, *, recursive=False, hidden=False, itself=False, literal=False, host=None, trust=None,
             **options: Unpack[FileOptions]) -> list[Entry]:
    flags = {"recursive": recursive, "hidden": hidden, "itself": itself, "literal": literal}
    return await _run(Manage("list", urls, flags, options, host=host, trust=trust))


async def stat(url, *, host=None, trust=None, **options: Unpack[FileOptions]) -> Entry:
    return await _run(Stat(url, options, host=host, trust=trust))


async def du(urls, *, host=None, trust=None, **options: Unpack[FileOptions]) -> list[Entry]:
    return await _run(Manage("count", urls, {}, options, host=host, trust=trust))


async def mkdir(urls, *, parents=False, host=None, trust=None, **options: Unpack[FileOptions]) -> None:
    await _run(Manage("mkdir", urls, {"parents": parents}, options, host=host, trust=trust))


async def rmdir(urls, *, host=None, trust=None, **options: Unpack[FileOptions]) -> None:
    await _run(Manage("rmdir", urls, {}, options, host=host, trust=trust))


async def touch(urls, *, host=None, trust=None, **options: Unpack[FileOptions]) -> None:
    await _run(Manage("touch", urls, {}, options, host=host, trust=trust))


async def rm(urls, *, recursive=False, literal=False, host=None, trust=None, **options: Unpack[FileOptions]) -> None:
    await _run(Manage("remove", urls, {"recursive": recursive, "literal": literal}, options, host=host, trust=trust))


async def mv(url, to, *, replace=False, host=None, trust=None, **options: Unpack[FileOptions]) -> None:
    await _run(Manage("rename", [url, to], {"replace": replace}, options, host=host, trust=trust))


async def read_ranges(url, ranges, *, on_file=None, host=None, trust=None, **options: Unpack[FileOptions]) -> list[bytes]:
    ranges = list(ranges)
    return await _run(Read(url, ranges, on_file, options, host=host, trust=trust)) if ranges else []


async def sum(urls, digests="sha256", *, recursive=False, start=0, end=None, host=None, trust=None,
              **options: Unpack[FileOptions]) -> list[Entry]:
    return await _run(Manage("sum", urls, sum_flags(digests, recursive, start, end), options, host=host, trust=trust))


async def write(url, data, *, mode=None, mtime_ns=None, host=None, trust=None, **options: Unpack[WriteOptions]) -> Entry:
    return await _run(Write(url, data, mode, mtime_ns, options, host=host, trust=trust))


async def advise(target, *, impact_percent=10.0, min_gain_percent=1.0, max_streams=32, model="auto", levels=None,
                 receive=False, probe_s=0.0, time_s=0.0, history=False, trust=None,
                 **options: Unpack[AdviceOptions]) -> Advice:
    return await _run(Advise(target, impact_percent, min_gain_percent, max_streams, model, levels, receive, probe_s,
                             time_s, history, options, trust=trust))


async def plan(overlay, *, method="pipelined", slot_s=0.0, deadline_s=0.0, effort_s=10.0, text=False) -> Plan:
    """In a thread. Cannot be canceled: limit `effort_s`."""
    make = functools.partial(_plan.make, overlay, method, slot_s, deadline_s, effort_s, text)
    return await asyncio.get_running_loop().run_in_executor(None, make)
