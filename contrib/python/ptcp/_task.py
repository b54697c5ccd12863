"""Tasks of libptcp, run in steps: between steps Python handles signals, or an event loop runs other work."""

from __future__ import annotations

import ctypes as c
import functools
import itertools
import math
import operator
import os
import select
import threading

from . import _native as n
from ._options import Opts, check_of_files, encoded, flag, number, strings
from .errors import error
from .types import Advice, Choice, Entry, FailedFile, Probe, Progress, TransferResult

_START, _PROGRESS, _FILE, _WARNING = 0, 1, 3, 4
_FAILED, _VANISHED = 2, 4
_ENTRY_TYPES = ("unknown", "file", "directory", "symlink", "fifo", "socket", "char device", "block device")
_MANAGE_OPS = {"list": 1, "count": 2, "mkdir": 3, "remove": 4, "rename": 5, "sum": 6, "rmdir": 7, "touch": 8}
WRITE_MAX = 1 << 20  # bytes of write()
_ACTIVITIES = ("transferring", "verifying", "syncing")
def check(lib, r, err):
    if r < 0:
        raise error(lib, err)
    return r


def progress_of(p, rate_bps=math.nan, eta_s=math.nan):
    values = {name: getattr(p, name) for name, _ in n.Progress._fields_}
    values["activity"] = _ACTIVITIES[p.activity]
    return Progress(rate_bps=rate_bps, eta_s=eta_s, **values)


def digests_of(e):
    """Of an entry or event: digits by the name of the digest."""
    name = n.ptcp().ptcp_digest_name
    return {name(d.kind).decode(): d.hex.decode() for d in e.digest[:e.n_digests]} if e.n_digests else {}


class Task:
    """One task. An exception of a callback cancels the task, and is raised at its end."""

    def __init__(self, options, on_progress=None, on_warning=None, trust=None):
        self.lib = n.ptcp()
        self.handle = c.c_void_p()
        self.err = n.Err()
        self.raised = None
        self.warnings, self.failed_files, self.digests = [], [], {}
        self.on_progress, self.on_warning, self.on_trust = on_progress, on_warning, trust
        self.opts = Opts(self.lib, options)
        # The library calls these functions until the task is freed.
        self.opts.call("event", n.EventFn(self._event))
        if trust is not None:
            self.opts.call("trust", n.TrustFn(self._trust))

    def _stop_with(self, e):
        self.raised = self.raised or e
        self.lib.ptcp_task_cancel(self.handle)

    def _event(self, _, event):
        ev = event.contents
        try:
            if ev.type in (_START, _PROGRESS) and self.on_progress:
                self.on_progress(progress_of(ev.progress, ev.rate_bps, ev.eta_s))
            elif ev.type == _FILE and ev.status in (_FAILED, _VANISHED):
                code = self.lib.ptcp_err_name(ev.code).decode()
                self.failed_files.append(FailedFile(ev.path, code, os.fsdecode(ev.text or b""), ev.sys or None))
            elif ev.type == _FILE and ev.n_digests:
                self.digests[ev.path] = digests_of(ev)
            elif ev.type == _WARNING:
                self.warnings.append(os.fsdecode(ev.text))
                if self.on_warning:
                    self.on_warning(self.warnings[-1])
        except BaseException as e:  # must not pass through C
            self._stop_with(e)

    def _trust(self, _, host, fingerprint):
        try:
            return bool(self.on_trust(os.fsdecode(host), os.fsdecode(fingerprint)))
        except BaseException as e:
            self._stop_with(e)
            return False

    def start(self):
        check(self.lib, self.lib.ptcp_task_start(self.handle, c.byref(self.err)), self.err)

    def fd(self):
        return self.lib.ptcp_task_fd(self.handle)

    def timeout_ms(self):
        return self.lib.ptcp_task_timeout_ms(self.handle)

    def cancel(self):
        self.lib.ptcp_task_cancel(self.handle)

    def step(self):
        """Whether the task has ended; then call end()."""
        self.status = self.lib.ptcp_task_step(self.handle, c.byref(self.err))
        return self.status <= 0

    def end(self):
        """The result, or the exception."""
        result = self.result() if self.status == 0 or isinstance(self, Transfer) else None
        if self.raised is not None:
            raise self.raised
        if self.status < 0:
            e = error(self.lib, self.err, tuple(self.failed_files))
            e.result = result
            raise e
        return result

    def run(self):
        try:
            self.start()
            poll = select.poll()
            poll.register(self.fd(), select.POLLIN)
            while True:
                try:
                    poll.poll(self.timeout_ms())
                    if self.step():
                        return self.end()
                except KeyboardInterrupt as e:
                    if self.raised is not None:
                        raise
                    self._stop_with(e)
        finally:
            self.free()

    def free(self):
        handle, self.handle = self.handle, c.c_void_p()
        self.lib.ptcp_task_free(handle)


def _check_rate(rate):
    lib, err = n.ptcp(), n.Err()
    check(lib, lib.ptcp_rate_check(None if rate is None else encoded(rate), c.byref(err)), err)


class RateLimit:
    """A rate limit that can change during transfers: `rate=limit`. Values are those of the option `rate`, or None.
    UsageError: malformed."""

    def __init__(self, rate=None):
        _check_rate(rate)
        self._lock, self._rate, self._tasks = threading.Lock(), rate, set()

    @property
    def rate(self):
        return self._rate

    def set(self, rate):
        """Any thread. UsageError: malformed, or the transfer is one between two servers."""
        _check_rate(rate)
        with self._lock:
            for task in self._tasks:
                task.set_rate(rate)
            self._rate = rate

    def _add(self, task):
        with self._lock:
            task.set_rate(self._rate)
            self._tasks.add(task)

    def _remove(self, task):
        with self._lock:
            self._tasks.discard(task)


class Transfer(Task):
    def __init__(self, function, sources, dest, options, **callbacks):
        self.limit = options.get("rate")
        if isinstance(self.limit, RateLimit):
            options = {**options, "rate": None}
        else:
            self.limit = None
        super().__init__(options, **callbacks)
        if isinstance(sources, (str, bytes, os.PathLike)):
            sources = [sources]
        array, count = strings(sources)
        new = getattr(self.lib, function)
        check(self.lib, new(c.byref(self.handle), self.opts.pointer, array, count, encoded(dest),
                            c.byref(self.err)), self.err)
        if self.limit is not None:
            try:
                self.limit._add(self)
            except BaseException:
                self.free()
                raise

    def set_rate(self, rate):
        err = n.Err()
        rate = None if rate is None else encoded(rate)
        check(self.lib, self.lib.ptcp_transfer_set_rate(self.handle, rate, c.byref(err)), err)

    def free(self):
        if self.limit is not None:
            self.limit._remove(self)
        super().free()

    def result(self):
        r = n.initialized(self.lib, n.Result, "ptcp_result_init")
        self.lib.ptcp_transfer_result(self.handle, c.byref(r))
        return TransferResult(progress_of(r.progress), tuple(self.warnings), tuple(self.failed_files), r.seconds,
                              r.advised_streams, r.predicted_bps, r.predicted_impact_percent, r.measured_bps,
                              self.digests,
                              None if r.same_files == 2**64 - 1 else r.same_files,
                              None if r.copied_bytes == 2**64 - 1 else r.copied_bytes, r.probed_s,
                              None if r.compared_bytes == 2**64 - 1 else r.compared_bytes,
                              None if r.compress_level < 0 else r.compress_level)


class Advise(Task):
    def __init__(self, target, impact_percent, min_gain_percent, max_streams, model, levels, receive, probe_s,
                 time_s, history, options, **callbacks):
        super().__init__(options, **callbacks)
        a = n.initialized(self.lib, n.AdviceOpts, "ptcp_advice_opts_init")
        a.impact_percent = number("impact_percent", impact_percent, 0, 100, False)
        a.min_gain_percent = number("min_gain_percent", min_gain_percent, 0, 1e9, False)
        a.max_streams = number("max_streams", max_streams, 1, 128)
        a.receive = flag("receive", receive)
        a.probe_s = number("probe_s", probe_s, 0, 50, False)
        a.time_s = number("time_s", time_s, 0, 3600, False)
        a.history = flag("history", history)
        of_model = c.c_int()
        if not self.lib.ptcp_model_parse(encoded(model), c.byref(of_model)):
            raise ValueError(f"model {model!r}: unknown")
        a.model = of_model.value
        if levels is not None:
            levels = [number("levels", v, 1, 128) for v in levels]
            a.levels, a.n_levels = (c.c_uint * len(levels))(*levels), len(levels)
        check(self.lib, self.lib.ptcp_advise_new(c.byref(self.handle), self.opts.pointer, encoded(target),
                                                 c.byref(a), c.byref(self.err)), self.err)

    def _named(self, kind, value):
        return getattr(self.lib, f"ptcp_{kind}_name")(value).decode()

    def result(self):
        a = n.initialized(self.lib, n.Advice, "ptcp_advice_init")
        check(self.lib, self.lib.ptcp_advise_result(self.handle, c.byref(a), c.byref(self.err)), self.err)
        warning = functools.partial(self.lib.ptcp_advice_warning, c.byref(a))
        warnings = [w.decode() for w in itertools.takewhile(bool, map(warning, itertools.count()))]
        return Advice(
            streams=a.streams, throughput_bps=a.throughput_bps,
            throughput_range_bps=(a.throughput_low_bps, a.throughput_high_bps), impact_percent=a.impact_percent,
            impact_range_percent=(a.impact_low_percent, a.impact_high_percent), confident=a.confident,
            warnings=tuple(warnings), limited_by=self._named("limited_by", a.limited_by),
            limit=self._named("limit", a.limit), limit_advice=a.limit_advice.decode() if a.limit_advice else None,
            path_limit=a.path_limit.decode() if a.path_limit else None, path_advice=a.path_advice.decode() or None,
            path_rate_bps=a.path_rate_bps, others=self._named("others", a.others), model=self._named("model", a.model),
            choices=tuple(Choice(x.impact_percent, x.streams, x.throughput_bps) for x in a.choices),
            probes=tuple(Probe(p.streams, p.throughput_bps, p.error_bps) for p in a.probes[:a.n_probes]),
            from_history=a.from_history, age_s=a.age_s, check_bps=a.check_bps)


def _entry_of(e):
    return Entry(e.path, _ENTRY_TYPES[e.type], e.mode, e.bytes, e.disk_bytes, e.mtime_s * 10**9 + e.mtime_ns, e.target,
                 e.entries, digests_of(e))


class _Connections:
    """A handle of the library, which ends when neither its Host nor work refers to it."""

    def __init__(self):
        self.handle, err = c.c_void_p(), n.Err()
        self._lib = n.ptcp()
        check(self._lib, self._lib.ptcp_host_open(c.byref(self.handle), c.byref(err)), err)

    def __del__(self):
        if getattr(self, "handle", None):
            self._lib.ptcp_host_close(self.handle)


class Host:
    """Connections that work on remote files leaves to the work after it: host=ptcp.Host() of ls(), read_ranges() and the
    like, with the same options for the connection. Any thread."""

    def __init__(self):
        self._connections = _Connections()

    def close(self):
        """Closes the connections, once no work uses them; work that begins later makes connections of its own."""
        self._connections = None


class _Kept(Task):
    """A task on remote files."""

    connections = None
    writes = False

    def __init__(self, options, **callbacks):
        check_of_files(options, self.writes)
        super().__init__(options, **callbacks)

    def keep(self, host):
        if host is not None and not isinstance(host, Host):
            self.free()
            raise TypeError(f"host: {host!r} is not a ptcp.Host")
        self.connections = host._connections if host is not None else None
        if self.connections is not None:
            check(self.lib, self.lib.ptcp_task_keep(self.handle, self.connections.handle, c.byref(self.err)), self.err)

    def free(self):
        super().free()
        self.connections = None  # not before: the library uses the handle until now


class Manage(_Kept):
    """Listing, counting, making, removing or renaming on one host; the result is a list of Entry."""

    def __init__(self, op, urls, flags, options, host=None, **callbacks):
        super().__init__(options, **callbacks)
        if isinstance(urls, (str, bytes, os.PathLike)):
            urls = [urls]
        self.entries = []
        self.how = n.initialized(self.lib, n.ManageOpts, "ptcp_manage_opts_init")
        for name, value in flags.items():
            setattr(self.how, name, flag(name, value) if name not in ("digests", "start", "end") else value)
        self.how.entry = n.EntryFn(self._entry)
        array, count = strings(urls)
        check(self.lib, self.lib.ptcp_manage_new(c.byref(self.handle), self.opts.pointer, _MANAGE_OPS[op], array,
                                                 count, c.byref(self.how), c.byref(self.err)), self.err)
        self.keep(host)

    def _entry(self, _, entry):
        try:
            e = entry.contents
            if e.code != 0:
                code = self.lib.ptcp_err_name(e.code).decode()
                self.failed_files.append(FailedFile(e.path, code, os.fsdecode(e.why or b""), e.sys or None))
            else:
                self.entries.append(_entry_of(e))
        except BaseException as e:
            self._stop_with(e)

    def result(self):
        return self.entries


def sum_flags(digests, recursive, start, end):
    """Of Manage("sum", ..)."""
    lib, err, bits = n.ptcp(), n.Err(), c.c_uint()
    names = digests if isinstance(digests, str) else ",".join(digests)
    check(lib, lib.ptcp_digests_parse(c.byref(bits), encoded(names), c.byref(err)), err)
    first, last = _bound(start, 0), _bound(end, _REST)
    if (first, last) == (0, 0):
        first = last = _REST  # no bytes; (0, 0) would stand for all
    return {"digests": bits.value, "recursive": recursive, "start": first, "end": last}


_REST = 2**63 - 1


def _bound(value, default):
    """An end of a slice as the library has it: all that lies beyond any file is one number."""
    return default if value is None else max(min(operator.index(value), _REST), -_REST - 1)


class Read(_Kept):
    """Slices of a file; the result is a list of bytes."""

    def __init__(self, url, ranges, on_file, options, host=None, **callbacks):
        super().__init__(options, **callbacks)
        self.on_file = on_file
        ends = [n.Range(_bound(start, 0), _bound(end, _REST)) for start, end in ranges]
        self.slices = [bytearray() for _ in ends]
        self.how = n.initialized(self.lib, n.ReadOpts, "ptcp_read_opts_init")
        self.how.ranges, self.how.n_ranges = (n.Range * len(ends))(*ends), len(ends)
        self.how.opened, self.how.piece = n.EntryFn(self._opened), n.PieceFn(self._piece)
        check(self.lib, self.lib.ptcp_read_new(c.byref(self.handle), self.opts.pointer, encoded(url), c.byref(self.how),
                                               c.byref(self.err)), self.err)
        self.keep(host)

    def _opened(self, _, entry):
        try:
            if self.on_file is not None:
                self.on_file(_entry_of(entry.contents))
        except BaseException as e:
            self._stop_with(e)

    def _piece(self, _, piece):
        try:
            p = piece.contents
            self.slices[p.range] += c.string_at(p.data, p.bytes)
        except BaseException as e:
            self._stop_with(e)

    def result(self):
        return [bytes(s) for s in self.slices]


class Write(_Kept):
    """A small file; the result is its Entry."""

    writes = True

    def __init__(self, url, data, mode, mtime_ns, options, host=None, **callbacks):
        super().__init__(options, **callbacks)
        self.written = None
        data = bytes(memoryview(data)) # of an int, bytes() would make as many zeros
        self.how = n.initialized(self.lib, n.WriteOpts, "ptcp_write_opts_init")
        self.how.data, self.how.bytes = c.cast(c.c_char_p(data), c.c_void_p), len(data)
        self.how.mode = -1 if mode is None else number("mode", mode, 0, 0o777)
        if mtime_ns is not None:
            self.how.set_mtime = True
            self.how.mtime_s, self.how.mtime_ns = divmod(number("mtime_ns", mtime_ns, -2**63, 2**63 - 1), 10**9)
        self.how.written = n.EntryFn(self._written)
        check(self.lib, self.lib.ptcp_write_new(c.byref(self.handle), self.opts.pointer, encoded(url),
                                                c.byref(self.how), c.byref(self.err)), self.err)
        self.keep(host)

    def _written(self, _, entry):
        try:
            self.written = _entry_of(entry.contents)
        except BaseException as e:
            self._stop_with(e)

    def result(self):
        return self.written


class Stat(Manage):
    """One entry; the result is an Entry with the path of the URL."""

    def __init__(self, url, options, host=None, **callbacks):
        super().__init__("list", [url], {"itself": True, "literal": True}, options, host=host, **callbacks)

    def result(self):
        return self.entries[0]
