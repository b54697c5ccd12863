"""Tests of ptcp.filesystem, as test_ptcp.py; needs fsspec."""

import asyncio
import contextlib
import errno
import gzip
import hashlib
import os
import pickle
import tempfile
import traceback
import unittest
from signal import alarm

import fsspec

import ptcp
from ptcp import _options, aio
from ptcp.filesystem import PtcpFileSystem

URL, ROOT = os.environ["PTCP_URL"], os.environ["PTCP_ROOT"]
TRUST = {"fingerprints": [os.environ["PTCP_FINGERPRINT"]], "timeout_s": 20}
fsspec.register_implementation("ptcp", PtcpFileSystem, clobber=True)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        served = tempfile.TemporaryDirectory(dir=ROOT)
        self.addCleanup(served.cleanup)
        self.root, self.at = served.name, "/" + os.path.basename(served.name)
        self.temp = os.path.join(self.dir, "temp")
        os.mkdir(self.temp)
        self.fs = fsspec.filesystem("ptcp", temp_dir=self.temp, **PtcpFileSystem._get_kwargs_from_urls(URL), **TRUST)
        self.received = []
        recv = ptcp.recv, aio.recv, aio.read_ranges
        self.addCleanup(lambda: (setattr(ptcp, "recv", recv[0]), setattr(aio, "recv", recv[1]),
                                 setattr(aio, "read_ranges", recv[2])))
        self.requested = []

        def read_ranges(url, *args, **kwargs):
            self.requested.append(url)
            return recv[2](url, *args, **kwargs)

        aio.read_ranges = read_ranges

        def counted(function):
            def call(sources, *args, **kwargs):
                self.received.extend(sources)
                return function(sources, *args, **kwargs)
            return call

        ptcp.recv, aio.recv = counted(recv[0]), counted(recv[1])

    def tearDown(self):
        self.assertEqual(os.listdir(self.temp), [], "temporary files are left")

    def served(self, name, content=b"0123456789"):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content)
        return f"{self.at}/{name}"

    def content(self, name):
        with open(os.path.join(self.root, name), "rb") as f:
            return f.read()


class Filesystem(Case):
    def test_checksum(self):
        path = self.served("digest", b"abc")
        self.assertEqual(self.fs.checksum(path), int(hashlib.sha256(b"abc").hexdigest(), 16))
        self.assertEqual(self.fs.checksum(path, "md5"), int(hashlib.md5(b"abc").hexdigest(), 16))
        before = self.fs.ukey(path)
        self.served("digest", b"abcd")
        self.assertNotEqual(self.fs.ukey(path), before)
        self.assertNotEqual(self.fs.checksum(path), int(hashlib.sha256(b"abc").hexdigest(), 16))
        literal = self.served("d[i]gest", b"x")
        self.assertEqual(self.fs.checksum(literal, "sha1"), int(hashlib.sha1(b"x").hexdigest(), 16))
        for missing in "none", "d*":
            with self.assertRaises(FileNotFoundError):
                self.fs.checksum(f"{self.at}/{missing}")

    def test_urls(self):
        split = PtcpFileSystem._get_kwargs_from_urls
        self.assertEqual(split("ptcp://h/x:1"), {"host": "h"})
        self.assertEqual(split("ptcp://h:80/x"), {"host": "h", "port": 80})
        self.assertEqual(split("ptcp://[::1]:80"), {"host": "[::1]", "port": 80})
        self.assertEqual(split("ptcp://[fe80::12]/x"), {"host": "[fe80::12]"})
        self.assertEqual(PtcpFileSystem._strip_protocol(["ptcp://h:80/a//b/", "c", "/", "ptcp://h"]),
                         ["/a//b", "/c", "/", "/"])
        for url in "ptcp://[::1]:80/x", "ptcp://[fe80::12]/x", "simplecache::ptcp://[::1]/x":  # fsspec splits these at "::"
            with self.assertRaisesRegex(ValueError, r"0:0:0:0:0:0:0:1.*host="):
                fsspec.open(url)
        self.assertEqual(fsspec.core.url_to_fs("ptcp://[0:0:0:0:0:0:0:1]:80/x")[0].host, "[0:0:0:0:0:0:0:1]")
        fs, path = fsspec.core.url_to_fs("ptcp:///x", host="[::1]", port=80)
        self.assertEqual((fs.host, fs.port, path), ("[::1]", 80, "/x"))
        self.assertEqual(fsspec.core.url_to_fs(fs.unstrip_protocol("/x"))[0].host, "[0:0:0:0:0:0:0:1]")
        self.assertEqual(self.fs.unstrip_protocol("/x"), f"{URL}/x")
        with self.assertRaises(TypeError):
            PtcpFileSystem("h", nonsense=1, skip_instance_cache=True)
        self.assertEqual(pickle.loads(pickle.dumps(self.fs)), self.fs)

    def test_read(self):
        path = self.served("a/b c%20#?é")
        with fsspec.open(URL + path, "rb", temp_dir=self.temp, **TRUST) as f:
            self.assertEqual((f.read(3), f.seek(-2, 2), f.read(), f.size), (b"012", 8, b"89", 10))
        with self.fs.open(self.served("text", b"a\r\nb\n"), "r", newline=None) as f:
            self.assertEqual(f.read(), "a\nb\n")
        self.assertEqual(self.fs.cat([path]), {path: b"0123456789"})
        self.assertEqual(self.fs.head(path, 2), b"01")
        with self.assertRaises(FileNotFoundError):
            self.fs.open(f"{self.at}/none")
        with self.assertRaises(IsADirectoryError):
            self.fs.open(self.at)

    @contextlib.contextmanager
    def moved(self):
        """Ranges that are requested meanwhile, as (name, number of bytes)."""
        functions, moved = (ptcp.read_ranges, aio.read_ranges), []

        def count(url, got):
            moved.append((url.rpartition("/")[2], sum(map(len, got))))
            return got

        def now(url, *args, **kwargs):
            return count(url, functions[0](url, *args, **kwargs))

        async def later(url, *args, **kwargs):
            return count(url, await functions[1](url, *args, **kwargs))
        ptcp.read_ranges, aio.read_ranges = now, later
        try:
            yield moved
        finally:
            ptcp.read_ranges, aio.read_ranges = functions

    def test_ranges(self):
        a, b = self.served("a"), self.served("b", b"xyz")
        none = f"{self.at}/none"
        self.assertEqual(self.fs.cat_file(a, -3, None), b"789")
        with self.moved() as moved:
            got = self.fs.cat_ranges([a, a, b, a, none], [0, 8, 1, 5, 0], [2, 99, 2, 5, 1])
        self.assertEqual(got[:4], [b"01", b"89", b"y", b""])
        self.assertIsInstance(got[4], FileNotFoundError)
        self.assertEqual(sorted(moved), [("a", 4), ("b", 1)])
        self.assertEqual(self.received, [])
        with self.assertRaises(FileNotFoundError):
            self.fs.cat_ranges([a, none], [0, 0], [1, 1], on_error="raise")

    def test_read_ahead(self):
        """Jumps move what they read, a sequence moves the file once."""
        content = os.urandom(10_000_000)
        path = self.served("big", content)
        with self.fs.open(path) as f, self.moved() as moved:
            f.seek(-8, 2)
            self.assertEqual(f.read(), content[-8:])
            f.seek(-65536, 2)
            self.assertEqual(f.read(65536), content[-65536:])
            f.seek(3_000_000)
            self.assertEqual(f.read(1000), content[3_000_000:3_001_000])
            f.seek(100)
            self.assertEqual(f.read(1000), content[100:1100])
            self.assertEqual(sum(n for _, n in moved), 8 + 65536 + 2000)
        with self.fs.open(path) as f, self.moved() as moved:
            self.assertEqual(b"".join(iter(lambda: f.read(50_000), b"")), content)
            self.assertEqual(sum(n for _, n in moved), len(content))
            self.assertLess(len(moved), 12)
        with self.fs.open(path, cache_type="bytes", block_size=100_000) as f:
            self.assertEqual(f.read(10), content[:10])
            self.assertEqual(f.blocksize, 100_000)

    def test_one_version(self):
        path = self.served("file", b"old" * 1_000_000)
        with self.fs.open(path) as f:
            self.assertEqual(f.read(3), b"old")
            self.served("file", b"new" * 1_000_000)
            f.seek(2_000_000)
            with self.assertRaisesRegex(OSError, "changed since it was opened"):
                f.read(3)
        with self.fs.open(path) as f:
            with open(os.path.join(self.root, "file"), "ab") as grows:
                grows.write(b"more")
            self.assertEqual(len(f.read()), 3_000_000)

    def test_write(self):
        path = f"{self.at}/deep/new"
        with self.fs.open(path, "wb") as f:
            f.write(b"abc")
            f.seek(1)
            f.write(b"X")
            self.assertFalse(self.fs.exists(path))
        self.assertEqual(self.content("deep/new"), b"aXc")
        with self.fs.open(path, "ab") as f:
            f.write(b"d")
        with self.fs.open(f"{self.at}/appended", "ab") as f:
            f.write(b"e")
        self.assertEqual((self.content("deep/new"), self.content("appended")), (b"aXcd", b"e"))
        with self.assertRaises(KeyError):
            with self.fs.open(path, "wb") as f:
                f.write(b"half")
                raise KeyError
        self.assertEqual(self.content("deep/new"), b"aXcd")
        with self.assertRaises(FileExistsError):
            self.fs.open(path, "xb")
        with self.assertRaises(FileExistsError):
            with self.fs.open(f"{self.at}/meanwhile", "xb") as f:
                self.fs.pipe(f"{self.at}/meanwhile", b"of another client")
                f.write(b"other")
        self.assertEqual(self.content("meanwhile"), b"of another client")
        self.fs.pipe(path, b"piped")
        self.assertEqual(self.content("deep/new"), b"piped")
        self.fs.touch(f"{self.at}/empty")
        self.assertEqual(self.content("empty"), b"")
        with self.assertRaises(ValueError):
            self.fs.open(path, "r+b")

    def test_write_onto_a_directory(self):
        source = self.served("source")
        os.makedirs(os.path.join(self.root, "d"))
        os.symlink("d", os.path.join(self.root, "link"))
        local = os.path.join(self.dir, "local")
        with open(local, "wb") as f:
            f.write(b"local")
        for at in f"{self.at}/d", f"{self.at}/d/", f"{self.at}/link", "/":
            for write in (lambda: self.fs.pipe(at, b"data"), lambda: self.fs.put_file(local, at),
                          lambda: self.fs.cp_file(source, at), lambda: self.fs.touch(at),
                          lambda: self.fs.open(at, "wb").close(), lambda: self.fs.open(at, "w").close()):
                with self.assertRaises(IsADirectoryError):
                    write()
        self.assertEqual((sorted(os.listdir(self.root)), os.listdir(os.path.join(self.root, "d"))),
                         (["d", "link", "source"], []))
        self.assertEqual(os.readlink(os.path.join(self.root, "link")), "d")

    def test_copies_into_a_directory(self):
        os.makedirs(os.path.join(self.root, "d"))
        local = os.path.join(self.dir, "local")
        with open(local, "wb") as f:
            f.write(b"local")
        for at in "d", "d/", "new/":
            source = self.served("served")
            self.fs.put(local, f"{self.at}/{at}")
            self.fs.cp(source, f"{self.at}/{at}")
            folder = os.path.join(self.root, at)
            self.assertEqual(sorted(os.listdir(folder)), ["local", "served"])
            self.assertEqual((self.content(f"{at}/local"), self.content(f"{at}/served")), (b"local", b"0123456789"))
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))

    def test_failed_write(self):
        """An exception in the with statement sends nothing, however the file was opened."""
        path, url = self.served("kept"), f"{URL}{self.at}/kept"
        options = {"temp_dir": self.temp, **TRUST}

        def opens():
            for mode, data in ("wb", b"half"), ("w", "half"), ("ab", b"half"), ("a", "half"):
                yield self.fs.open(path, mode), data
                yield fsspec.open(url, mode, **options), data
                yield contextlib.closing(self.fs.open(path, mode)), data
            yield fsspec.open(url, "wt", compression="gzip", **options), "half"
            yield self.fs.open(path, "wt", compression="gzip"), "half"
            yield self.fs.open(path, "wb", compression="gzip"), b"half"

        for file, data in opens():
            with self.subTest(file=file), self.assertRaises(KeyError):
                with file as f:
                    f.write(data)
                    raise KeyError
            self.assertEqual(self.content("kept"), b"0123456789")

        for mode, data in ("wb", b"half"), ("w", "half"):
            for compression in None, "gzip":
                never_closed = self.fs.open(path, mode, compression=compression)
                never_closed.write(data)
                del never_closed
                self.assertEqual(self.content("kept"), b"0123456789")

    def test_write_during_an_exception(self):
        """Files that handlers of exceptions write and close are sent."""
        early = self.fs.open(f"{self.at}/early", "w")
        early.write("early")
        try:
            raise KeyError
        except KeyError:
            early.close()
            with self.fs.open(f"{self.at}/late", "w") as f:
                f.write("late")
            with fsspec.open(f"{URL}{self.at}/opened", "w", temp_dir=self.temp, **TRUST) as f:
                f.write("opened")
        self.assertEqual([self.content(n) for n in ("early", "late", "opened")], [b"early", b"late", b"opened"])

    def test_compression(self):
        for how in {"mode": "wt"}, {"mode": "wb"}:
            path, data = f"{self.at}/{how['mode']}.gz", "text" if how["mode"] == "wt" else b"text"
            with self.fs.open(path, compression="infer", **how) as f:
                f.write(data)
            self.assertEqual(gzip.decompress(self.content(f"{how['mode']}.gz")), b"text")
            how["mode"] = how["mode"].replace("w", "r")
            with fsspec.open(URL + path, compression="infer", temp_dir=self.temp, **how, **TRUST) as f:
                self.assertEqual(f.read(), data)

    def test_transaction(self):
        path = f"{self.at}/t"
        with self.fs.transaction:
            with self.fs.open(path, "wb") as f:
                f.write(b"late")
            self.assertFalse(self.fs.exists(path))
        self.assertEqual(self.content("t"), b"late")
        with self.fs.transaction:
            with self.fs.open(path, "w", compression="gzip") as f:
                f.write("compressed")
            with self.assertRaises(KeyError), self.fs.open(f"{self.at}/u", "w") as f:
                f.write("half")
                raise KeyError
            self.assertEqual(self.content("t"), b"late")
        self.assertEqual((gzip.decompress(self.content("t")), os.listdir(self.root)), (b"compressed", ["t"]))

    def test_listing(self):
        self.served("d/e/f"), self.served("d/.hidden"), self.served("d/.ptcp-unfinished")
        d = f"{self.at}/d"
        self.assertEqual(self.fs.ls(d, detail=False), [f"{d}/.hidden", f"{d}/e"])
        self.assertEqual([(i["name"], i["type"], i["size"]) for i in self.fs.ls(f"{d}/e/f")], [(f"{d}/e/f", "file", 10)])
        self.assertEqual(self.fs.find(d), [f"{d}/.hidden", f"{d}/e/f"])
        self.assertEqual(list(self.fs.find(d, withdirs=True, detail=True)), [d, f"{d}/.hidden", f"{d}/e", f"{d}/e/f"])
        self.assertEqual(self.fs.find(f"{d}/e/f"), [f"{d}/e/f"])
        self.assertEqual(self.fs.find(f"{d}/none"), [])
        self.assertEqual(self.fs.find(d, maxdepth=1), [f"{d}/.hidden"])
        self.assertEqual(self.fs.glob(f"{d}/*/f"), [f"{d}/e/f"])
        self.assertEqual((self.fs.isdir(d), self.fs.isfile(d), self.fs.exists(f"{d}/x")), (True, False, False))
        self.assertEqual(self.fs.du(d), 20)
        self.assertEqual(self.fs.info("/")["type"], "directory")
        modified = self.fs.modified(f"{d}/e/f").timestamp()
        self.assertAlmostEqual(modified, os.stat(os.path.join(self.root, "d/e/f")).st_mtime, 3)
        with self.assertRaises(FileNotFoundError):
            self.fs.ls(f"{d}/none")
        # a name that does not exist is no pattern, and one that exists is none either
        self.assertFalse(self.fs.exists(f"{d}/*"))
        one = self.served("d/e1")
        for read in self.fs.cat_file, self.fs.open:
            with self.assertRaises(FileNotFoundError):
                read(f"{d}/e[1]")
        with self.assertRaises(FileNotFoundError):
            self.fs.rm_file(f"{d}/e[1]")
        self.fs.pipe(f"{d}/e[1]", b"bracket")
        self.assertEqual((self.content("d/e1"), self.content("d/e[1]")), (b"0123456789", b"bracket"))
        self.fs.rm_file(f"{d}/e[1]")
        self.assertTrue(self.fs.exists(one))
        star = self.served("d/e/*", b"star")
        self.assertEqual((self.fs.info(star)["size"], self.fs.cat_file(star)), (4, b"star"))

    def test_links(self):
        self.served("d/f")
        for name, target in (("d/link", "f"), ("up", "d/../d/link"), ("loop", "loop"), ("gone", "none"), ("folder", "d")):
            os.symlink(target, os.path.join(self.root, name))
        info = self.fs.info(f"{self.at}/up")
        self.assertEqual((info["type"], info["size"], info["islink"], info["destination"]),
                         ("file", 10, True, "d/../d/link"))
        self.assertEqual(self.fs.cat_file(f"{self.at}/up"), b"0123456789")
        with self.fs.open(f"{self.at}/d/link") as f:
            self.assertEqual(f.read(), b"0123456789")
        self.fs.get(f"{self.at}/up", f"{self.dir}/up")
        self.assertFalse(os.path.islink(f"{self.dir}/up"))
        self.assertEqual([self.fs.info(f"{self.at}/{n}")["type"] for n in ("loop", "gone", "folder")],
                         ["link", "link", "directory"])
        for name in "loop", "gone":
            with self.assertRaises(OSError):
                self.fs.cat_file(f"{self.at}/{name}")

    def test_copied_links(self):
        self.served("d/f"), self.served("d/e/g")
        links = {"to_file": "f", "to_folder": "e", "gone": "none"}
        for name, target in links.items():
            os.symlink(target, os.path.join(self.root, "d", name))
        d = f"{self.at}/d"
        self.fs.cp(d, f"{self.at}/new", recursive=True)
        self.fs.cp(d, f"{self.at}/new", recursive=True)
        self.fs.cp(f"{d}/", f"{self.at}/content/", recursive=True)
        for copy in "new", "new/d", "content":
            at = os.path.join(self.root, copy)
            self.assertEqual(sorted(set(os.listdir(at)) - {"d"}), sorted([*links, "e", "f"]))
            self.assertEqual({name: os.readlink(os.path.join(at, name)) for name in links}, links)
            self.assertEqual((self.content(f"{copy}/f"), self.content(f"{copy}/e/g")), (b"0123456789",) * 2)
        for source in d, [d]:  # not as one tree
            with self.assertRaises(OSError):
                self.fs.cp(source, f"{self.at}/flat", recursive=True, maxdepth=5)
        self.fs.cp(f"{d}/to_file", f"{self.at}/followed")
        self.assertFalse(os.path.islink(os.path.join(self.root, "followed")))
        for name in "gone", "to_folder":
            with self.assertRaises(OSError):
                self.fs.cp(f"{d}/{name}", f"{self.at}/one")
        with self.assertRaises(FileNotFoundError):
            self.fs.cp(f"{self.at}/none", f"{self.at}/one", recursive=True)

    def test_trees(self):
        self.served("tree/a"), self.served("tree/b/c")
        tree, seen = f"{self.at}/tree", []
        callback = fsspec.Callback(hooks={"seen": lambda size, value: seen.append(value)})
        self.fs.get(tree, f"{self.dir}/new", recursive=True, callback=callback)
        self.assertEqual(len(self.received), 1, "one transfer")
        self.assertEqual(sorted(os.listdir(f"{self.dir}/new")), ["a", "b"])
        self.assertTrue(seen)
        os.mkdir(f"{self.dir}/there")
        self.fs.get(tree, f"{self.dir}/there", recursive=True)
        self.assertEqual(os.listdir(f"{self.dir}/there"), ["tree"])
        self.fs.get([f"{tree}/a", f"{tree}/b/c"], f"{self.dir}/listed/")
        self.assertTrue(os.path.isdir(f"{self.dir}/listed"))
        self.fs.put(f"{self.dir}/new", f"{self.at}/put", recursive=True)
        self.assertEqual(self.fs.find(f"{self.at}/put"), [f"{self.at}/put/a", f"{self.at}/put/b/c"])
        self.fs.put(f"{self.dir}/new/a", f"{self.at}/one")
        self.assertEqual(self.content("one"), b"0123456789")
        with self.assertRaises(FileNotFoundError):
            self.fs.get(f"{self.at}/none", f"{self.dir}/none", recursive=True)

    def test_names(self):
        self.served("a"), self.served("d/e/f"), self.served("x.tmp"), self.served("y.tmp")
        self.fs.mv(f"{self.at}/a", f"{self.at}/b")
        self.fs.mv(f"{self.at}/d", f"{self.at}/moved")
        self.fs.copy(f"{self.at}/b", f"{self.at}/copy")
        self.assertEqual(self.content("copy"), b"0123456789")
        self.fs.rm(f"{self.at}/*.tmp")
        self.assertEqual(sorted(os.listdir(self.root)), ["b", "copy", "moved"])
        for remove in self.fs.rm, self.fs.rm_file, lambda path: self.fs.rm([f"{self.at}/b", path]):
            with self.assertRaisesRegex(IsADirectoryError, "recursive=True") as caught:
                remove(f"{self.at}/moved")
            self.assertEqual(caught.exception.filename, f"{self.at}/moved")
            self.assertIsInstance(caught.exception.__cause__, ptcp.Error)
            self.served("b")
        self.fs.rm([f"{self.at}/moved", f"{self.at}/copy"], recursive=True)
        self.fs.rm_file(f"{self.at}/b")
        self.assertEqual(os.listdir(self.root), [])
        self.fs.mkdir(f"{self.at}/m/n")
        with self.assertRaises(FileExistsError):
            self.fs.mkdir(f"{self.at}/m/n")
        with self.assertRaises(FileNotFoundError):
            self.fs.mkdir(f"{self.at}/p/q", create_parents=False)
        self.fs.makedirs(f"{self.at}/m/n", exist_ok=True)
        with self.assertRaises(FileExistsError):
            self.fs.makedirs(f"{self.at}/m/n")
        with self.assertRaises(OSError) as caught:
            self.fs.rmdir(f"{self.at}/m")
        self.assertEqual(caught.exception.errno, errno.ENOTEMPTY)
        self.fs.rmdir(f"{self.at}/m/n")
        with self.assertRaises(FileNotFoundError):
            self.fs.rmdir(f"{self.at}/m/n")
        self.served("b")
        with self.assertRaises(NotADirectoryError):
            self.fs.rmdir(f"{self.at}/b")
        self.fs.touch(f"{self.at}/b", truncate=False)
        self.assertEqual(self.fs.size(f"{self.at}/b"), 10)
        self.fs.touch(f"{self.at}/b")
        self.assertEqual(self.fs.size(f"{self.at}/b"), 0)
        with self.assertRaises(FileNotFoundError):
            self.fs.rm(f"{self.at}/none")

    def test_errors(self):
        with self.assertRaises(PermissionError) as caught:
            PtcpFileSystem("127.0.0.1", port=self.fs.port, fingerprints=["SHA256:" + "A" * 43]).ls("/")
        self.assertIsInstance(caught.exception, ptcp.RefusedError)
        self.assertEqual(caught.exception.filename, "/")
        with self.assertRaises(ConnectionError):
            PtcpFileSystem("127.0.0.1", port=1, wait_s=0).ls("/")

    def test_options_as_text(self):
        """As configurations have them, which know no other types."""
        path = self.served("a")
        text = {"port": str(self.fs.port), "fingerprints": f"{TRUST['fingerprints'][0]}, ", "timeout_s": "20", "streams": "2",
                "max_streams": "3", "no_history": "true", "direct_io": "False", "fsync": "none"}
        fs = PtcpFileSystem(self.fs.host, **text, temp_dir=self.temp, skip_instance_cache=True)
        self.assertEqual(fs.options, {**TRUST, "timeout_s": 20.0, "streams": 2, "max_streams": 3, "no_history": True,
                                      "direct_io": False, "fsync": "none", "trust": None})
        self.assertEqual(fs.cat_file(path), b"0123456789")
        for wrong in {"streams": "many"}, {"no_history": "perhaps"}, {"timeout_s": "soon"}, {"fsync": "always"}, {"streams": "1000"}:
            with self.assertRaisesRegex(ValueError, next(iter(wrong))):
                PtcpFileSystem("h", **wrong, skip_instance_cache=True)
        for keyword in _options.table():
            for value in "", "x", "1", "true", ",":
                with contextlib.suppress(ValueError, TypeError):
                    PtcpFileSystem("h", **{keyword: value}, skip_instance_cache=True)

    def test_every_option_writes(self):
        """Whatever options a filesystem takes: what it has written is there, and a source remains."""
        local = os.path.join(self.dir, "local")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.dir)  # for options that name a directory
        taken = 0
        for keyword, o in _options.table().items():
            if o.type not in (_options.SWITCH, _options.TEXT, _options.UINT32, _options.UINT64, _options.DOUBLE):
                continue
            value = {_options.SWITCH: not o.initial, _options.TEXT: "2020-01-01"}.get(o.type, o.min + 1)
            value = int(value) if o.type in (_options.UINT32, _options.UINT64) else value
            try:
                fs = PtcpFileSystem(self.fs.host, port=self.fs.port, temp_dir=self.temp, skip_instance_cache=True,
                                    **{**TRUST, "retry_for_s": 0, keyword: value})
            except (TypeError, ValueError):
                continue
            for size in 5, (1 << 20) + 1:
                self.served("target", b"old content, of another size")
                with open(local, "wb") as f:
                    f.write(os.urandom(size))
                with open(local, "rb") as f:
                    new = f.read()
                os.utime(local, (0, 0))
                try:
                    fs.put_file(local, f"{self.at}/target")
                except (OSError, ptcp.Error):  # an option such as a config_dir without an identity
                    continue
                taken += 1
                with self.subTest(keyword, size=size):
                    self.assertEqual(self.content("target"), new)
                    self.assertTrue(os.path.exists(local))
        self.assertGreater(taken, 30)

    def test_forked(self):
        """As the workers of torch's DataLoader use a filesystem that they inherit."""
        path = self.served("a")
        self.assertEqual(self.fs.cat_file(path), b"0123456789")  # the thread of fsspec's loop runs
        file = self.fs.open(path)
        child = os.fork()
        if child == 0:
            try:
                alarm(30)
                assert self.fs.cat_file(path) == b"0123456789"
                assert self.fs.glob(f"{self.at}/*") == [path] and file.read() == b"0123456789"
                self.fs.pipe(f"{self.at}/child", b"child")
                assert fsspec.filesystem("ptcp", host=self.fs.host, port=self.fs.port, **TRUST).exists(path)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.fs.cat_file(f"{self.at}/child"), b"child")
        file.close()

    def test_asynchronous(self):
        path = self.served("a")

        async def use():
            fs = PtcpFileSystem("127.0.0.1", port=self.fs.port, temp_dir=self.temp, asynchronous=True, **TRUST)
            await fs._pipe_file(f"{self.at}/b", b"async")
            return await asyncio.gather(fs._cat_file(path), fs._cat_file(f"{self.at}/b"), fs._info(path))

        a, b, info = asyncio.run(use())
        self.assertEqual((a, b, info["size"]), (b"0123456789", b"async", 10))

    def test_caches_of_fsspec(self):
        path = self.served("a")
        for _ in range(2):
            with fsspec.open(f"filecache://{path}", target_protocol="ptcp", cache_storage=f"{self.dir}/cache",
                             target_options={"host": self.fs.host, "port": self.fs.port, **TRUST}) as f:
                self.assertEqual(f.read(), b"0123456789")
        self.assertEqual((len(self.received), len(self.requested)), (0, 1))
        with fsspec.open(f"blockcache://{path}", target_protocol="ptcp", cache_storage=f"{self.dir}/blocks", block_size=4,
                         target_options={"host": self.fs.host, "port": str(self.fs.port), **TRUST}) as f:
            self.assertEqual((f.read(3), f.seek(-2, 2), f.read()), (b"012", 8, b"89"))


if __name__ == "__main__":
    unittest.main()
