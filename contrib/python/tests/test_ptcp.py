"""Tests of the package against servers on loopback; tests/e2e/test_python starts them and sets the environment:
PTCP_URL, PTCP_FINGERPRINT, PTCP_ROOT (the served directory), PTCP_SOURCES (the repository), PTCP_LIBDIR."""

import asyncio
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import hashlib
import errno
import json
import math
import operator
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import typing
import unittest
import zlib

import ptcp
from ptcp import _native, _options, aio, errors

URL, ROOT, SOURCES = (os.environ[name] for name in ("PTCP_URL", "PTCP_ROOT", "PTCP_SOURCES"))
TRUST = {"fingerprints": [os.environ["PTCP_FINGERPRINT"]], "timeout_s": 20}
OVERLAY = """
destination: D
hosts:
  D: {address: d.example.org}
  S: {address: s.example.org, data: 1GB, path: /data}
links:
  - {from: S, to: D, rate: 8Gbit/s}
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def file(self, name, size):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(os.urandom(size))
        return path

    def content(self, path):
        with open(path, "rb") as f:
            return f.read()


    def declared(self, result):
        """A result is JSON without NaN, and only those members are None that the types declare so."""
        json.dumps(dataclasses.asdict(result), default=os.fsdecode, allow_nan=False)
        for name, hint in typing.get_type_hints(type(result)).items():
            value = getattr(result, name)
            for v, h in zip(value, typing.get_args(hint)) if type(value) is tuple else [(value, hint)]:
                if v is None:
                    self.assertIn(type(None), typing.get_args(h), f"{type(result).__name__}.{name}: None")


def example(o):
    """A value that the option takes, and that is not its initial one."""
    return {_options.SWITCH: not o.initial, _options.WORD: o.words[-1] if o.words else "", _options.DOUBLE: o.max,
            _options.INT: int(o.max), _options.UNSIGNED: int(o.max), _options.UINT32: int(o.max), _options.UINT64: int(o.max),
            _options.TEXT: TEXT_EXAMPLES.get(o.member, o.words[-1] if o.words else "1"),
            _options.TEXTS: TRUST["fingerprints"] if o.member == "fingerprints" else ["a"], _options.DOUBLES: [1.0],
            _options.UINT64S: [1], _options.RULES: [(False, "*.o")]}[o.type]


TEXT_EXAMPLES = {"rate": "1Mbit/s"}


class Proxy:
    """Forwards to the server, and counts connections."""

    def __init__(self):
        self.connections, self.sockets = 0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        host, _, port = URL[len("ptcp://"):].rpartition(":")
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                self.connections += 1
                server = socket.create_connection((host, int(port)))
                self.sockets += [client, server]
                for a, b in (client, server), (server, client):
                    threading.Thread(target=self._forward, args=(a, b), daemon=True).start()

    @staticmethod
    def _forward(a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(65536):
                b.sendall(data)
        with contextlib.suppress(OSError):
            b.shutdown(socket.SHUT_WR)

    def cut(self):
        for s in self.sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.cut()
        self.listener.close()
        for s in self.sockets:
            s.close()


class Transfers(Case):
    def test_both_directions(self):
        source, seen = self.file("data", 5_000_000), []
        sent = ptcp.send(source, f"{URL}/both", streams=3, on_progress=seen.append, **TRUST)
        self.assertEqual((sent.progress.files, sent.progress.bytes), (1, 5_000_000))
        self.assertTrue(seen and all(isinstance(p, ptcp.Progress) for p in seen))
        for result in (*seen, sent):
            self.declared(result)
        self.assertIsNone(sent.progress.rate_bps)
        self.assertEqual(self.content(os.path.join(ROOT, "both")), self.content(source))
        ptcp.recv([f"{URL}/both"], os.path.join(self.dir, "back"), cipher="chacha20", **TRUST)
        self.assertEqual(self.content(os.path.join(self.dir, "back")), self.content(source))

    def test_resumes_and_filters(self):
        os.mkdir(os.path.join(self.dir, "tree"))
        self.file("tree/keep", 1000), self.file("tree/skip.tmp", 1000)
        tree, dest = os.path.join(self.dir, "tree/"), f"{URL}/filtered/"
        self.assertEqual(ptcp.send(tree, dest, rules=[(False, "*.tmp")], **TRUST).progress.files, 1)
        self.assertEqual(os.listdir(os.path.join(ROOT, "filtered")), ["keep"])
        self.assertEqual(ptcp.send(tree, dest, rules=[(False, "*.tmp")], **TRUST).progress.wire_bytes, 0)

    def test_names_the_file(self):
        source, there = self.file("data", 1000), os.path.join(ROOT, "named")
        os.mkdir(there)
        os.mkdir(os.path.join(self.dir, "here"))
        for transfer in (lambda: ptcp.send(source, f"{URL}/named", dest_is_file=True, **TRUST),
                         lambda: ptcp.send(source, f"{URL}/named/", dest_is_file=True, **TRUST),
                         lambda: ptcp.send(source, f"{URL}/new/", dest_is_file=True, **TRUST),
                         lambda: ptcp.recv(f"{URL}/named.file", os.path.join(self.dir, "here"), dest_is_file=True, **TRUST),
                         lambda: ptcp.send([source, source], f"{URL}/named", dest_is_file=True, **TRUST),
                         lambda: ptcp.send(f"{URL}/named.file", f"{URL}/named", dest_is_file=True, **TRUST)):
            ptcp.send(source, f"{URL}/named.file", dest_is_file=True, **TRUST)
            with self.assertRaisesRegex(ptcp.Error, "Is a directory|several sources|not between"):
                transfer()
        ptcp.recv(f"{URL}/named.file", os.path.join(self.dir, "back"), dest_is_file=True, **TRUST)
        self.assertEqual(self.content(os.path.join(self.dir, "back")), self.content(source))
        self.assertEqual((os.listdir(there), os.listdir(os.path.join(self.dir, "here"))), ([], []))
        self.assertFalse(os.path.exists(os.path.join(ROOT, "new")))

    def test_manages_files(self):
        at = f"{URL}/managed"
        ptcp.mkdir(f"{at}/a/b", parents=True, **TRUST)
        ptcp.send(self.file("data", 1000), f"{at}/a/file", **TRUST)
        os.symlink("a", os.path.join(ROOT, "managed/.link"))
        listed = ptcp.ls(f"{at}/a", **TRUST)
        self.assertEqual(sorted((e.path, e.type) for e in listed), [(b"b", "directory"), (b"file", "file")])
        status = os.stat(os.path.join(ROOT, "managed/a/file"))
        [file] = [e for e in listed if e.type == "file"]
        self.assertEqual((file.bytes, file.mtime_ns, file.mode), (1000, status.st_mtime_ns, status.st_mode & 0o7777))
        [link] = [e for e in ptcp.ls(at, hidden=True, **TRUST) if e.type == "symlink"]
        self.assertEqual((link.path, link.target), (b".link", b"a"))
        self.assertEqual([e.path for e in ptcp.ls(f"{at}/a", itself=True, **TRUST)], [b"/managed/a"])
        self.assertEqual([(e.bytes, e.entries) for e in ptcp.du(f"{at}/a", **TRUST)], [(1000, 3)])
        ptcp.mv(f"{at}/a/file", f"{at}/a/b/file", **TRUST)
        with self.assertRaises(ptcp.Error):
            ptcp.rm(f"{at}/a", **TRUST)
        with self.assertRaises(ptcp.PartialError) as caught:
            ptcp.ls([f"{at}/a", f"{at}/none"], **TRUST)
        self.assertEqual([f.path for f in caught.exception.failed_files], [b"/managed/none"])
        ptcp.rm(at, recursive=True, **TRUST)
        self.assertFalse(os.path.exists(os.path.join(ROOT, "managed")))

    def test_reads_ranges(self):
        content, url = bytes(range(256)) * 1000, f"{URL}/ranges"
        with open(os.path.join(ROOT, "ranges"), "wb") as f:
            f.write(content)
        ends = [None, 0, 1, 70_000, 255_999, 256_000, 2**70, -1, -256_000, -2**70]
        ranges = [(start, end) for start in ends for end in ends]
        seen = []
        got = ptcp.read_ranges(url, ranges, on_file=seen.append, **TRUST)
        for (start, end), data in zip(ranges, got):
            self.assertEqual(data, content[start:end], f"[{start}:{end}]")
        self.assertEqual([(e.path, e.bytes) for e in seen], [(b"/ranges", len(content))])
        many = [(i % 256_000, i % 256_000 + 1) for i in range(0, 5_000_000, 997)]
        self.assertEqual(b"".join(ptcp.read_ranges(url, many, **TRUST)), bytes(content[a] for a, _ in many))
        self.assertEqual(ptcp.read_ranges(url, [], **TRUST), [])
        with self.assertRaises(ptcp.Error):
            ptcp.read_ranges(f"{URL}/none", [(0, 1)], **TRUST)
        with self.assertRaises(ZeroDivisionError):
            ptcp.read_ranges(url, [(0, 1)], on_file=lambda e: 1 / 0, **TRUST)
        for bad in [(0,)], [("0", 1)], [(0.5, 1)], 7:
            with self.assertRaises((TypeError, ValueError)):
                ptcp.read_ranges(url, bad, **TRUST)

    def test_digests(self):
        os.makedirs(os.path.join(ROOT, "sums/d"))
        contents = {"sums/a": b"", "sums/d/b\n": os.urandom(5_000_000), "sums/d/c": b"abc"}
        for name, content in contents.items():
            with open(os.path.join(ROOT, name), "wb") as f:
                f.write(content)
        got = {os.fsdecode(e.path): e for e in
               ptcp.sum(f"{URL}/sums", ["sha256", "adler32", "blake2b"], recursive=True, **TRUST)}
        self.assertEqual(sorted(got), sorted("/" + name for name in contents))
        for name, content in contents.items():
            self.assertEqual(got["/" + name].bytes, len(content))
            self.assertEqual(got["/" + name].digests, {
                "sha256": hashlib.sha256(content).hexdigest(), "adler32": f"{zlib.adler32(content):08x}",
                "blake2b": hashlib.blake2b(content).hexdigest()})
        content = contents["sums/d/b\n"]
        for start, end in [(0, None), (5, 7), (-3, None), (0, 0), (9, 2), (0, 2**70)]:
            [e] = asyncio.run(ptcp.aio.sum(f"{URL}/sums/d/b%0A", "md5", start=start, end=end, **TRUST))
            self.assertEqual(e.digests, {"md5": hashlib.md5(content[start:end]).hexdigest()})
        self.assertEqual(ptcp.ls(f"{URL}/sums", **TRUST)[0].digests, {})
        sent = ptcp.send(self.file("digested", 3_000_000), f"{URL}/sums/sent", digest="md5", **TRUST)
        with open(os.path.join(ROOT, "sums/sent"), "rb") as f:
            self.assertEqual(list(sent.digests.values()), [{"md5": hashlib.md5(f.read()).hexdigest()}])
        for bad in "sha3", "", "md5,", []:
            with self.assertRaises(ptcp.UsageError):
                ptcp.sum(f"{URL}/sums/a", bad, **TRUST)
        with self.assertRaises(IsADirectoryError):
            ptcp.sum(f"{URL}/sums", **TRUST)

    def test_keeps_many_connections(self):
        """More handles than the server permits connections of a client: kept ones make room."""
        hosts = [ptcp.Host() for _ in range(40)]
        for host in hosts + hosts:
            ptcp.mkdir(f"{URL}/kept", parents=True, host=host, **TRUST)
        for host in hosts:
            host.close()

    def test_writes(self):
        host = ptcp.Host()
        self.addCleanup(host.close)
        here = {"host": host, **TRUST}
        url, path = f"{URL}/written/a*", os.path.join(ROOT, "written", "a*")
        for data in b"", b"one", os.urandom(1 << 20):
            e = ptcp.write(url, data, **here)
            self.assertEqual((self.content(path), e.bytes, e.type), (data, len(data), "file"))
            self.assertEqual(ptcp.stat(url, **here), ptcp.ls(url, itself=True, literal=True, **here)[0])
            self.assertEqual(ptcp.stat(url, **here).version, e.version)
        self.assertEqual(self.content(path), data)
        for wrong in 7, True, "text", None:
            with self.assertRaises(TypeError):
                ptcp.write(url, wrong, **here)
        with self.assertRaises(FileExistsError):
            ptcp.write(url, b"x", exclusive=True, **here)
        new = ptcp.write(url, b"two", if_match=e.version, mode=0o640, mtime_ns=1_000_000_001, **here)
        self.assertEqual((new.mode, new.mtime_ns, new.version), (0o640, 1_000_000_001, "3@1.000000001"))
        with self.assertRaises(ptcp.RefusedError) as caught:
            ptcp.write(url, b"three", if_match=e.version, **here)
        self.assertEqual(caught.exception.errno, errno.ESTALE)
        self.assertEqual(self.content(path), b"two")
        with self.assertRaises(IsADirectoryError):
            ptcp.write(f"{URL}/written", b"x", **here)
        with self.assertRaises(FileNotFoundError):
            ptcp.write(f"{URL}/no/x", b"x", no_mkpath=True, **here)
        for wrong in dict(mode=0o1000), dict(mode=-1), dict(if_match="x"):
            with self.assertRaises((ValueError, ptcp.UsageError)):
                ptcp.write(url, b"x", **{**here, **wrong})
        with self.assertRaises(ptcp.UsageError):
            ptcp.write(url, b"x" * ((1 << 20) + 1), **here)
        ptcp.touch([url, f"{URL}/written/t"], **here)
        self.assertEqual(sorted(os.listdir(os.path.join(ROOT, "written"))), ["a*", "t"])
        self.assertGreater(ptcp.stat(url, **here).mtime_ns, 10**18)
        with self.assertRaises(OSError) as caught:
            ptcp.rmdir(f"{URL}/written", **here)
        self.assertEqual(caught.exception.errno, errno.ENOTEMPTY)
        ptcp.rm([url, f"{URL}/written/t"], literal=True, **here)
        ptcp.rmdir(f"{URL}/written", **here)
        self.assertFalse(os.path.exists(os.path.join(ROOT, "written")))

    def test_refuses_options_of_transfers(self):
        """Work on files takes no option that it would not obey, and does nothing then; the library refuses the same."""
        path, url = os.path.join(ROOT, "refusing"), f"{URL}/refusing"
        ptcp.write(url, b"kept", **TRUST)
        for name, o in _options.table().items():
            if o.type == _options.CALLBACK:
                continue
            value = example(o)
            for work, takes in self.works(url):
                if not takes(o):
                    with self.assertRaisesRegex(TypeError, name):
                        work(**{name: value}, **TRUST)
            opts = _options.Opts(_native.ptcp(), {name: value, **({o.value: ["h"]} if o.value in _options.table() else {})})
            lib, err, handle = _native.ptcp(), _native.Err(), ctypes.c_void_p()
            r = lib.ptcp_manage_new(ctypes.byref(handle), opts.pointer, 1, (ctypes.c_char_p * 1)(url.encode()), 1, None,
                                    ctypes.byref(err))
            lib.ptcp_task_free(handle)
            self.assertEqual(r == 0, o.of_files, f"{name}: {err.msg}")
        self.assertEqual((self.content(path), os.path.exists(path + "-2")), (b"kept", False))

    @staticmethod
    def works(url):
        """Each operation on files, as a function of its options, and whether it takes an option."""
        files, writing = operator.attrgetter("of_files"), operator.attrgetter("of_writing")
        return [(lambda **o: ptcp.ls(url, **o), files), (lambda **o: ptcp.stat(url, **o), files),
                (lambda **o: ptcp.du(url, **o), files), (lambda **o: ptcp.mkdir(url + "-2", **o), files),
                (lambda **o: ptcp.rmdir(url, **o), files), (lambda **o: ptcp.touch(url, **o), files),
                (lambda **o: ptcp.rm(url, **o), files), (lambda **o: ptcp.mv(url, url + "-2", **o), files),
                (lambda **o: ptcp.read_ranges(url, [(0, 1)], **o), files), (lambda **o: ptcp.sum(url, **o), files),
                (lambda **o: ptcp.write(url, b"x", **o), writing)]

    def test_loses_no_change(self):
        """Four writers, each of which adds to a counter by replacing the version that it has read."""
        url = f"{URL}/counter"
        ptcp.write(url, b"0", **TRUST)

        def add(times):
            here = {"host": ptcp.Host(), **TRUST}
            while times > 0:
                version, number = ptcp.stat(url, **here).version, int(ptcp.read_ranges(url, [(None, None)], **here)[0])
                try:
                    ptcp.write(url, b"%d" % (number + 1), if_match=version, fsync="none", **here)
                    times -= 1
                except ptcp.RefusedError as e:
                    self.assertEqual(e.errno, errno.ESTALE)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(add, [100] * 4))
        self.assertEqual(self.content(os.path.join(ROOT, "counter")), b"400")

    def test_overwrites(self):
        """Of plain writers the last one wins, and none fails."""
        texts = [bytes([65 + i]) * (1 << 18) for i in range(8)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda text: ptcp.write(f"{URL}/contended", text, **TRUST), texts))
        self.assertIn(self.content(os.path.join(ROOT, "contended")), texts)
        slow, fast, url = self.file("slow", 3_000_000), self.file("fast", 2_000_000), f"{URL}/contended"
        begun = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            sent = pool.submit(ptcp.send, slow, url, rate="8Mbit/s", on_progress=lambda p: p.bytes and begun.set(), **TRUST)
            self.assertTrue(begun.wait(60))
            ptcp.send(fast, url, **TRUST)
            self.assertEqual(self.content(os.path.join(ROOT, "contended")), self.content(fast))
            ptcp.write(url, b"small", **TRUST)
            self.assertFalse(sent.done())
            self.assertEqual(self.content(os.path.join(ROOT, "contended")), b"small")
            sent.result()
        self.assertEqual(self.content(os.path.join(ROOT, "contended")), self.content(slow))

    def test_closes_connections_in_use(self):
        url = f"{URL}/in-use"
        content = os.urandom(5_000_000)
        with open(os.path.join(ROOT, "in-use"), "wb") as f:
            f.write(content)
        host = ptcp.Host()
        kept = {**TRUST, "host": host}
        self.assertEqual(ptcp.read_ranges(url, [(0, 3)], **kept), [content[:3]])
        closed = []

        def close(_):
            closer = threading.Thread(target=host.close)
            closer.start()
            closer.join()
            closed.append(True)

        self.assertEqual(ptcp.read_ranges(url, [(0, None)], on_file=close, **kept), [content])
        self.assertTrue(closed)
        self.assertEqual(ptcp.read_ranges(url, [(0, 3)], **kept), [content[:3]])
        host.close()
        before = os.listdir("/proc/self/fd")
        with self.assertRaises(TypeError):
            ptcp.read_ranges(url, [(0, 3)], **TRUST, host=5)
        self.assertEqual(os.listdir("/proc/self/fd"), before)

    def test_exports_each_exception(self):
        for name, kind in vars(ptcp.errors).items():
            if isinstance(kind, type) and issubclass(kind, ptcp.Error):
                self.assertIs(getattr(ptcp, name), kind)
                self.assertIn(name, ptcp.__all__)

    def test_keeps_connections(self):
        proxy, to = Proxy(), f"{URL}/kept"
        self.addCleanup(proxy.close)
        ptcp.mkdir(to, **TRUST)
        at = to.replace(URL, f"ptcp://127.0.0.1:{proxy.port}")
        kept = {**TRUST, "host": ptcp.Host()}
        for i in range(20):
            ptcp.mkdir(f"{at}/{i}", **kept)
            self.assertEqual(len(ptcp.ls(at, **kept)), i + 1)
            with self.assertRaises(ptcp.Error):
                ptcp.read_ranges(f"{at}/none", [(0, 1)], **kept)
        self.assertEqual(proxy.connections, 1)
        ptcp.ls(at, **TRUST)
        self.assertEqual(proxy.connections, 2)
        proxy.cut()
        ptcp.mkdir(f"{at}/new", **kept)
        self.assertEqual(proxy.connections, 3)
        child = os.fork()
        if child == 0:
            try:
                ptcp.ls(at, **kept)
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(len(ptcp.ls(at, **kept)), 21)
        self.assertEqual(proxy.connections, 4)
        with open(os.path.join(ROOT, "kept/data"), "wb") as f:
            f.write(bytes(10_000_000))
        with self.assertRaises(ZeroDivisionError):  # an answer that was not awaited is left to nobody
            ptcp.read_ranges(f"{at}/data", [(0, None)], on_file=lambda e: 1 / 0, **kept)
        self.assertEqual(len(ptcp.ls(at, **kept)), 22)
        self.assertEqual(ptcp.read_ranges(f"{at}/data", [(i, i + 1) for i in range(5000)], **kept), [bytes(1)] * 5000)
        self.assertEqual(proxy.connections, 5)
        with self.assertRaises(ptcp.RefusedError):  # another pin is not that of the connection
            ptcp.ls(at, **{**kept, "fingerprints": ["SHA256:" + "A" * 43]})
        ptcp.rm(at, recursive=True, **kept)

    def test_forks(self):
        ptcp.ls(f"{URL}/", **TRUST)
        child = os.fork()
        if child == 0:
            try:
                ptcp.ls(f"{URL}/", **TRUST)
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_trust(self):
        source, asked = self.file("data", 10), []
        answer = False

        def trust(host, fingerprint):
            asked.append((host, fingerprint))
            return answer

        with self.assertRaises(ptcp.RefusedError) as caught:
            ptcp.send(source, f"{URL}/trusted", trust=trust, config_dir=self.config())
        self.assertEqual(caught.exception.code, "PTCP_EREFUSED")
        answer = True
        ptcp.send(source, f"{URL}/trusted", trust=trust, config_dir=self.config())
        self.assertEqual([f for _, f in asked], TRUST["fingerprints"] * 2)

    def config(self):
        """The identity of the client, without known_hosts."""
        config = os.path.join(self.dir, "config")
        os.makedirs(config, mode=0o700, exist_ok=True)
        copy = os.path.join(config, "identity.pem")
        if not os.path.exists(copy):
            with open(os.open(copy, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
                f.write(self.content(os.path.join(os.environ["XDG_CONFIG_HOME"], "ptcp", "identity.pem")))
        return config

    def test_exception_of_callback_ends_transfer(self):
        def stop(_):
            raise KeyError("enough")

        with self.assertRaises(KeyError):
            ptcp.send(self.file("data", 5_000_000), f"{URL}/stopped", on_progress=stop, rate="1Mbit/s", **TRUST)
        self.assertFalse(os.path.exists(os.path.join(ROOT, "stopped")))

    def test_malformed_rate(self):
        limit = ptcp.RateLimit("8Mbit/s")
        for rate, error in (("xx", ptcp.UsageError), ("", ptcp.UsageError), ("-1Mbit/s", ptcp.UsageError),
                            ("08:00-18:00=1Mbit/s,else=x", ptcp.UsageError), ("\0", ValueError), (8, TypeError)):
            with self.assertRaises(error):
                ptcp.RateLimit(rate)
            with self.assertRaises(error):
                limit.set(rate)
        self.assertEqual(limit.rate, "8Mbit/s")
        limit.set("08:00-18:00=1Mbit/s,else=2Mbit/s")
        limit.set(None)
        self.assertIsNone(limit.rate)

    def test_rate_changes_while_running(self):
        limit = ptcp.RateLimit("1Mbit/s")  # 240 s
        progress = []

        def lift(p):
            progress.append(p.bytes)
            if len(progress) == 3:
                with self.assertRaises(ptcp.UsageError):
                    limit.set("nonsense")
                changer = threading.Thread(target=limit.set, args=(None,))
                changer.start()
                changer.join()

        result = ptcp.send(self.file("data", 30_000_000), f"{URL}/faster", rate=limit, on_progress=lift, **TRUST)
        self.assertLess(progress[2], 2_000_000)
        self.assertLess(result.seconds, 60)
        self.assertIsNone(limit.rate)
        limit.set("1Mbit/s")  # without a transfer

    def test_errors(self):
        source = self.file("data", 10)
        for options, cls, exit_code in (({"cipher": "none", "preserve_setid": True, "checksum": True, "no_verify": True}, ptcp.UsageError, 2), ({"rate": "x"}, ptcp.UsageError, 2)):
            with self.assertRaises(cls) as caught:
                ptcp.send(source, f"{URL}/x", **options)
            self.assertEqual(caught.exception.exit_code, exit_code)
        with self.assertRaises(ptcp.ConnectError) as caught:
            ptcp.send(source, "ptcp://127.0.0.1:1/x", **TRUST)
        self.assertRegex(str(caught.exception), r"127\.0\.0\.1:1: .*\(.*\)")
        self.assertEqual(caught.exception.exit_code, 3)
        for wrong, cls in (({"stream": 1}, TypeError), ({"cipher": "rot13"}, ValueError), ({"n_paths": 1}, TypeError),
                           ({"paths": ["direct"], "path_shares": [1, 2]}, ValueError), ({"rate": "\0"}, ValueError)):
            with self.assertRaises(cls):
                ptcp.send(source, f"{URL}/x", **wrong)

    def test_partial(self):
        os.mkdir(os.path.join(self.dir, "tree"))
        self.file("tree/good", 10)
        self.file("tree/name", 10)
        os.makedirs(os.path.join(ROOT, "partial", "name", "full"))
        with self.assertRaises(ptcp.PartialError) as caught:
            ptcp.send(os.path.join(self.dir, "tree/"), f"{URL}/partial/", **TRUST)
        e = caught.exception
        self.assertEqual((e.exit_code, [f.path for f in e.failed_files], e.result.progress.files), (6, [b"name"], 1))

    def test_identity(self):
        self.assertRegex(ptcp.fingerprint(), r"^SHA256:[A-Za-z0-9+/]{43}$")
        self.assertNotEqual(ptcp.fingerprint(os.path.join(self.dir, "new")), ptcp.fingerprint())


class Asyncio(Case):
    def test_loop_keeps_running(self):
        async def both():
            ticks = 0
            sending = asyncio.ensure_future(aio.send(self.file("data", 500_000), f"{URL}/aio", rate="8Mbit/s", **TRUST))
            while not sending.done():
                await asyncio.sleep(0.01)
                ticks += 1
            return await sending, ticks

        result, ticks = asyncio.run(both())
        self.assertEqual(result.progress.bytes, 500_000)
        self.assertGreater(ticks, 5)

    def test_several_at_once(self):
        sources = [self.file(f"f{i}", 100_000) for i in range(3)]

        async def all_of_them():
            return await asyncio.gather(*(aio.send(s, f"{URL}/several{i}", **TRUST) for i, s in enumerate(sources)))

        self.assertEqual([r.progress.files for r in asyncio.run(all_of_them())], [1, 1, 1])

    def test_cancel_and_resume(self):
        source = self.file("data", 3_000_000)

        async def canceled():
            moving = asyncio.Event()
            sending = asyncio.ensure_future(aio.send(
                source, f"{URL}/canceled", rate="8Mbit/s", on_progress=lambda p: p.bytes and moving.set(), **TRUST))
            await moving.wait()
            sending.cancel()
            await sending

        with self.assertRaises(asyncio.CancelledError):
            asyncio.run(canceled())
        self.assertGreater(ptcp.send(source, f"{URL}/canceled", **TRUST).progress.resumed_bytes, 0)

    def test_error_and_plan(self):
        with self.assertRaises(ptcp.ConnectError):
            asyncio.run(aio.recv("ptcp://127.0.0.1:1/x", self.dir))
        self.assertAlmostEqual(asyncio.run(aio.plan(OVERLAY, text=True)).makespan_s, 1)


class Advising(Case):
    def test_advise(self):
        advice = ptcp.advise(os.environ["PTCP_SLOW"], levels=[1, 2, 3], max_streams=8, probe_s=2.5, no_history=True, **TRUST)
        self.assertTrue(1 <= advice.streams <= 8)
        self.assertTrue(0 < advice.throughput_bps < math.inf)
        self.assertEqual([p.streams for p in advice.probes[:3]], [1, 2, 3])
        self.assertEqual(len(advice.choices), 3)
        self.assertFalse(advice.confident and advice.warnings)
        for result in (advice, *advice.choices, *advice.probes):
            self.declared(result)
        with self.assertRaises(ValueError):
            ptcp.advise("127.0.0.1:1", impact_percent=101)


class Planning(Case):
    def test_plan(self):
        plan = ptcp.plan(OVERLAY, text=True)
        self.assertAlmostEqual(plan.makespan_s, 1)
        self.declared(plan)
        self.assertEqual([(s.source, s.from_host, s.to_host, s.bytes) for s in plan.steps], [("S", "S", "D", 10**9)])
        path = os.path.join(self.dir, "overlay.yaml")
        with open(path, "w") as f:
            f.write(OVERLAY)
        self.assertAlmostEqual(ptcp.plan(path, method="direct").makespan_s, 1)

    def test_errors(self):
        with self.assertRaises(ptcp.InfeasibleError) as caught:
            ptcp.plan(OVERLAY, text=True, deadline_s=0.1)
        self.assertEqual(caught.exception.exit_code, 7)
        with self.assertRaises(ptcp.UsageError) as caught:
            ptcp.plan("destination: [", text=True)
        self.assertRegex(str(caught.exception), r"^overlay:\d+:\d+: ")
        with self.assertRaises(ValueError):
            ptcp.plan(OVERLAY, text=True, method="magic")


class Options(Case):
    """Each keyword with values of other types and outside of its range: an exception that names the keyword."""

    def refuse(self, keyword, value, kind, **others):
        with self.assertRaises(kind, msg=f"{keyword}={value!r}") as raised:
            _options.Opts(_native.ptcp(), {keyword: value, **others})
        self.assertIn(keyword, str(raised.exception))

    def taken(self, keyword, ctype, value):
        """What the struct contains."""
        opts = _options.Opts(_native.ptcp(), {keyword: value})
        return ctype.from_buffer(opts.room, _options.table()[keyword].at).value

    def test_all(self):
        names = _options.table()
        self.assertGreater(len(names), 55)
        for keyword, o in names.items():
            with self.subTest(keyword):
                if o.type == _options.CALLBACK:
                    self.refuse(keyword, print, TypeError)
                    continue
                self.refuse(keyword, object(), TypeError)
                if o.type == _options.SWITCH:
                    for value in ("false", "yes", b"", 0, 1, 2.0, [], [True]):
                        self.refuse(keyword, value, TypeError)
                elif o.type == _options.WORD:
                    for value in (0, True, b"x", ["x"]):
                        self.refuse(keyword, value, TypeError)
                    self.refuse(keyword, "always", ValueError)
                    self.refuse(keyword, "", ValueError)
                elif o.type in (_options.INT, _options.UNSIGNED, _options.UINT32, _options.UINT64):
                    for value in (True, 1.5, b"1", [1]):
                        self.refuse(keyword, value, TypeError)
                    self.refuse(keyword, "often", ValueError if o.words else TypeError)
                    for value in (int(o.min) - 2, int(o.max) + 2, 2**32 + 1, 2**33, 2**64 + 1, -2**70):
                        if not o.min <= value <= o.max:
                            self.refuse(keyword, value, ValueError)
                elif o.type == _options.DOUBLE:
                    for value in (True, "1", b"1", [1.0]):
                        self.refuse(keyword, value, TypeError)
                    for value in (o.min - 1, o.max + 1, float("nan"), float("inf"), -float("inf")):
                        self.refuse(keyword, value, ValueError)
                elif o.type == _options.TEXT:
                    for value in (1, True, ["x"], 2.0):
                        with self.assertRaises(TypeError):
                            _options.Opts(_native.ptcp(), {keyword: value})
                else:
                    for value in ("a,b", b"a", 1, True):
                        with self.assertRaises(TypeError):
                            _options.Opts(_native.ptcp(), {keyword: value})

    def test_crashes(self):
        """By no value of any argument of any function; SEED and COUNT find others."""
        self.file("file", 10)
        seed, count = os.environ.get("SEED", "1"), os.environ.get("COUNT", "400")
        fuzz = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuzz.py")
        done = subprocess.run([sys.executable, "-W", "error", fuzz, seed, count], cwd=self.dir, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace")
        self.assertEqual(done.returncode, 0, f"{done.stdout[-2000:]}{done.stderr[-3000:]}")
        self.assertEqual(len(done.stdout.splitlines()), int(count))

    def test_unknown(self):
        for keyword in ("size", "log", "arg", "install", "n_files", "n_mover_hosts", "mover_n_hosts", "pipe_ended", "stream"):
            self.refuse(keyword, 1, TypeError)

    def test_lists(self):
        self.refuse("path_shares", [1.0], ValueError)
        self.refuse("path_shares", [1.0], ValueError, paths=["a", "b"])
        self.refuse("path_spool_bytes", [-1, 1], ValueError, paths=["a", "b"])
        self.refuse("path_spool_bytes", [2**64, 1], ValueError, paths=["a", "b"])
        self.refuse("path_candidate_bps", ["x"], TypeError, candidates=["a"])
        with self.assertRaises(TypeError):
            _options.Opts(_native.ptcp(), {"rules": [("yes", "x")]})
        opts = _options.Opts(_native.ptcp(), {"mover_hosts": ["a", "b"]})
        at = _options.table()["mover_hosts"].at
        array = ctypes.POINTER(ctypes.c_char_p).from_buffer(opts.room, at)
        self.assertEqual([array[0], array[1]], [b"a", b"b"])
        self.assertEqual(ctypes.c_size_t.from_buffer(opts.room, at + ctypes.sizeof(ctypes.c_void_p)).value, 2)

    def test_taken(self):
        self.assertEqual(self.taken("streams", ctypes.c_uint, "auto"), 0)
        self.assertEqual(self.taken("streams", ctypes.c_uint, 128), 128)
        self.assertEqual(self.taken("max_delete", ctypes.c_uint32, 2**32 - 1), 2**32 - 1)
        self.assertEqual(self.taken("pipe_fd", ctypes.c_int, -1), -1)
        self.assertEqual(self.taken("fsync", ctypes.c_int, "file"), 2)
        self.assertEqual(self.taken("cipher", ctypes.c_int, "none"), 3)
        self.assertEqual(self.taken("preserve_owner", ctypes.c_bool, True), True)
        self.assertEqual(self.taken("remote_launch", ctypes.c_char_p, "ssh {host}"), b"ssh {host}")
        self.assertEqual(self.taken("timeout_s", ctypes.c_double, 5), 5.0)

    def test_deletes_nothing(self):
        with self.assertRaises(ValueError):
            ptcp.send(self.dir, f"{URL}/all", delete_extra=True, max_delete=-1, **TRUST)


class Declarations(Case):
    """The package repeats the headers and a table of the command: both must be the same."""

    STRUCTS = {"err": "Err", "progress": "Progress", "path": "Path", "event": "Event", "rule": "Rule",
               "option": "Option", "result": "Result", "probe": "Probe", "advice_opts": "AdviceOpts",
               "advice_point": "AdvicePoint", "choice": "Choice", "advice": "Advice", "overlay_host": "OverlayHost",
               "entry": "Entry", "manage_opts": "ManageOpts", "range": "Range", "piece": "Piece", "read_opts": "ReadOpts", "plan_opts": "PlanOpts", "plan_info": "PlanInfo", "plan_step": "PlanStep"}

    def test_structs(self):
        lines, mine = [], []
        for name, cls in self.STRUCTS.items():
            struct = getattr(_native, cls)
            lines.append(f'printf("{name} %zu\\n", sizeof(struct ptcp_{name}));')
            mine.append(f"{name} {ctypes.sizeof(struct)}")
            for field, _ in struct._fields_:
                at = getattr(struct, field)
                what = f"struct ptcp_{name}"
                lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({what}, {field}), '
                             f"sizeof((({what} *)0)->{field}));")
                mine.append(f"{name}.{field} {at.offset} {at.size}")
        program = os.path.join(self.dir, "layout")
        with open(program + ".c", "w") as f:
            f.write("#include <stdio.h>\n#include <ptcp/ptcp.h>\n#include <ptcp/plan.h>\nint main(void) {\n" +
                    "\n".join(lines) + "\nreturn 0; }\n")
        subprocess.run(["cc", "-I", f"{SOURCES}/include", "-o", program, program + ".c"], check=True)
        self.assertEqual(subprocess.check_output([program], text=True).split("\n")[:-1], mine)

    def test_unknown_numbers(self):
        """Each result with floating-point members, also in tuples, has None for those that are not numbers."""
        results = [r for r in vars(ptcp).values() if dataclasses.is_dataclass(r)]
        self.assertGreater(len(results), 7)
        for cls, bad in ((c, b) for c in results for b in (math.nan, math.inf, -math.inf)):
            hints = typing.get_type_hints(cls).items()
            result = cls(**{name: (bad, 1.5) if "Tuple" in str(hint) else bad if "float" in str(hint) else 1
                            for name, hint in hints})
            for name, hint in hints:
                if "float" in str(hint):
                    self.assertEqual(getattr(result, name), (None, 1.5) if "Tuple" in str(hint) else None,
                                     f"{cls.__name__}.{name}")

    def test_option_types(self):
        header = self.content(os.path.join(SOURCES, "include/ptcp/ptcp.h")).decode()
        enum = re.search(r"enum ptcp_option_type \{(.*?)\};", header, re.S).group(1)
        for number, name in enumerate(re.findall(r"PTCP_OPTION_(\w+)", enum)):
            self.assertEqual(getattr(_options, name), number, name)

    def test_exit_codes(self):
        def read(path):
            return self.content(os.path.join(SOURCES, path)).decode()

        status = dict(re.findall(r"(EXIT_\w+) = (\d+)", read("src/cli/command.h")))
        table = re.findall(r"\{ (PTCP_E\w+), (EXIT_\w+) \}", read("src/cli/command.c"))
        self.assertGreater(len(table), 8)
        listed = {code: cls.exit_code for code, cls in errors._CLASSES.items()}
        self.assertEqual(listed, {code: int(status[name]) for code, name in table})

    def test_versions(self):
        with open(f"{SOURCES}/contrib/python/pyproject.toml") as f:
            self.assertIn(f'\nversion = "{ptcp.version()}"\n', f.read())


if __name__ == "__main__":
    unittest.main()
