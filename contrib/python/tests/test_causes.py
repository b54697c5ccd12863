"""Causes of failures, in Python and in the JSON of the command, as test_ptcp.py: every operation, with every cause that
tests/e2e/fails.so makes of the name of a file, on both sides of the connection. The server and this process have preloaded
it. PTCP names the command."""

import copy
import errno
import json
import os
import pickle
import subprocess
import tempfile
import unittest

import ptcp

URL, ROOT, PTCP = (os.environ[name] for name in ("PTCP_URL", "PTCP_ROOT", "PTCP"))
TRUST = {"fingerprints": [os.environ["PTCP_FINGERPRINT"]], "timeout_s": 20, "wait_s": 0}
CAUSES = [getattr(errno, name) for name in (
    "ENOENT EACCES EPERM EEXIST ENOTDIR EISDIR ENOTEMPTY ENOSPC EDQUOT EROFS EFBIG ENAMETOOLONG ELOOP EXDEV EMLINK EINVAL "
    "EILSEQ ESTALE EBUSY ETXTBSY EIO ENODEV ENXIO EOPNOTSUPP").split()]

BUILT_IN = {errno.ENOENT: FileNotFoundError, errno.EACCES: PermissionError, errno.EPERM: PermissionError,
            errno.EEXIST: FileExistsError, errno.ENOTDIR: NotADirectoryError, errno.EISDIR: IsADirectoryError}


class Causes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        served = tempfile.TemporaryDirectory(dir=ROOT)
        self.addCleanup(served.cleanup)
        self.root, self.url = served.name, f"{URL}/{os.path.basename(served.name)}"
        self.plain = self.file(self.dir, "plain")
        self.file(self.root, "plain")

    def file(self, folder, name):
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(b"x" * 10)
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))  # shutil.rmtree() calls unlinkat()
        return path

    def failing(self, call, *args, **options):
        with self.assertRaises(ptcp.Error) as caught:
            call(*args, **options, **TRUST)
        e = caught.exception
        kind = type(OSError(e.errno or 0, ""))
        self.assertIsInstance(e, kind)
        self.assertIs(kind, BUILT_IN.get(e.errno, kind))
        again = pickle.loads(pickle.dumps(e))
        self.assertEqual((str(again), again.code, again.errno, again.filename, again.failed_files, type(again)),
                         (str(e), e.code, e.errno, e.filename, e.failed_files, type(e)))
        self.assertEqual(str(copy.copy(e)), str(e))
        for f in e.failed_files:
            self.assertEqual(f.errno, e.errno)
        return e

    def command(self, *words):
        """The events of the command, and its exit status."""
        run = subprocess.run([PTCP, *words, "--json", "--fingerprint", TRUST["fingerprints"][0]], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, timeout=60)
        return [json.loads(line) for line in run.stdout.splitlines()], run

    def operations(self, name):
        """Operations that fail because of the name: that of the file in the events, a call, and a command."""
        there, here = f"{self.url}/{name}", os.path.join(self.dir, name)
        yield "ls", name, lambda: self.failing(ptcp.ls, there, itself=True), ("ls", "--directory", there)
        yield "du", name, lambda: self.failing(ptcp.du, there), ("du", there)
        yield "rm", name, lambda: self.failing(ptcp.rm, there), ("rm", there)
        yield "mkdir", name, lambda: self.failing(ptcp.mkdir, there), ("mkdir", there)
        yield "mv from", name, lambda: self.failing(ptcp.mv, there, f"{self.url}/other"), ("mv", there, f"{self.url}/other")
        yield ("mv to", "plain", lambda: self.failing(ptcp.mv, f"{self.url}/plain", there),
               ("mv", f"{self.url}/plain", there))
        yield "recv from", name, lambda: self.failing(ptcp.recv, there, self.dir + "/got"), ("recv", there, self.dir + "/got")
        # The destination itself fails before a file does, or with the file.
        yield "recv to", None, lambda: self.failing(ptcp.recv, f"{self.url}/plain", here), ("recv", f"{self.url}/plain", here)
        yield "send from", name, lambda: self.failing(ptcp.send, here, f"{self.url}/got"), ("send", here, f"{self.url}/got")
        yield "send to", None, lambda: self.failing(ptcp.send, self.plain, there), ("send", self.plain, there)

    def test_table(self):
        for number in CAUSES:
            name = f"fails-{number}-x"
            self.file(self.root, name), self.file(self.dir, name)
            for operation, path, call, _ in self.operations(name):
                with self.subTest(operation=operation, cause=errno.errorcode[number]):
                    e = call()
                    self.assertEqual(e.errno, number, f"{e} {e.failed_files}")
                    if path is not None:
                        [file] = e.failed_files
                        self.assertEqual((os.path.basename(e.filename), file.errno), (path, number))
                    self.assertNotIn(f": '{e.filename}'", str(e))  # one sentence, as that of the command

    def test_json(self):
        for number in errno.ENOENT, errno.EACCES, errno.EROFS:
            name, cause = f"fails-{number}-x", errno.errorcode[number]
            self.file(self.root, name), self.file(self.dir, name)
            for operation, path, _, words in self.operations(name):
                with self.subTest(operation=operation, cause=cause):
                    events, run = self.command(*words)
                    failed = [e for e in events if e["event"] == "failed" or e.get("status") in ("failed", "vanished")]
                    self.assertEqual([e["cause"] for e in failed], [cause] * len(failed))
                    if path is not None:
                        self.assertEqual([os.path.basename(e["path"]) for e in failed], [path])
                    self.assertEqual((events[-1]["event"], events[-1]["cause"]), ("end", cause))
                    self.assertEqual(events[-1]["exit"], run.returncode)
                    if operation != "send from":  # a file that vanishes is a warning of its own
                        self.assertEqual(run.stderr.count(b"\n"), 1, run.stderr)

    def test_no_failure_has_no_cause(self):
        events, run = self.command("ls", self.url)
        self.assertEqual((events[-1]["cause"], events[-1]["ok"], run.returncode), (None, True, 0))
        events, run = self.command("ls", "--no-such-option", self.url)
        self.assertEqual([e["cause"] for e in events], [None] * len(events))

    def test_causes_that_differ(self):
        """The exception has a cause if all files have the same."""
        names = [f"fails-{n}-x" for n in (errno.EACCES, errno.EROFS)] + [f"fails-{errno.EACCES}-y"]
        for name in names:
            self.file(self.root, name), self.file(self.dir, name)
        for both, number in (names[:2], None), (names[::2], errno.EACCES):
            there, here = [f"{self.url}/{n}" for n in both], [os.path.join(self.dir, n) for n in both]
            for call in (lambda: ptcp.rm(there, **TRUST), lambda: ptcp.recv(there, self.dir + "/got/", **TRUST),
                         lambda: ptcp.send([*here, self.plain], self.url + "/got/", **TRUST)):
                with self.assertRaises(ptcp.Error) as caught:
                    call()
                self.assertEqual((caught.exception.errno, caught.exception.filename), (number, None))
                self.assertEqual(isinstance(caught.exception, PermissionError), number is not None)
                self.assertEqual(len(caught.exception.failed_files), 2)

    def test_natural(self):
        """What no preloaded library makes."""
        os.mkdir(os.path.join(self.root, "dir"))
        self.file(os.path.join(self.root, "dir"), "inside")
        os.mkdir(os.path.join(self.dir, "dir"))
        at, none = self.url, os.path.join(self.dir, "none")
        for kind, call in (
                (FileNotFoundError, lambda: ptcp.ls(f"{at}/none", **TRUST)),
                (FileNotFoundError, lambda: ptcp.ls(f"{at}/none*", **TRUST)),
                (FileNotFoundError, lambda: ptcp.du(f"{at}/none", **TRUST)),
                (FileNotFoundError, lambda: ptcp.rm(f"{at}/none", **TRUST)),
                (FileNotFoundError, lambda: ptcp.mv(f"{at}/none", f"{at}/x", **TRUST)),
                (FileNotFoundError, lambda: ptcp.mv(f"{at}/plain", f"{at}/none/x", **TRUST)),
                (FileNotFoundError, lambda: ptcp.mkdir(f"{at}/none/x", **TRUST)),
                (FileNotFoundError, lambda: ptcp.recv(f"{at}/none", self.dir, **TRUST)),
                (FileNotFoundError, lambda: ptcp.recv(f"{at}/none*", self.dir, **TRUST)),
                (FileNotFoundError, lambda: ptcp.recv(f"{at}/plain", f"{none}/x", no_mkpath=True, **TRUST)),
                (FileNotFoundError, lambda: ptcp.send(none, f"{at}/x", **TRUST)),
                (FileNotFoundError, lambda: ptcp.send(self.plain, f"{at}/none/x", no_mkpath=True, **TRUST)),
                (FileExistsError, lambda: ptcp.mkdir(f"{at}/dir", **TRUST)),
                (FileExistsError, lambda: ptcp.mkdir(f"{at}/plain", **TRUST)),
                (FileExistsError, lambda: ptcp.mv(f"{at}/dir", f"{at}/plain", **TRUST)),
                (NotADirectoryError, lambda: ptcp.mkdir(f"{at}/plain/x", parents=True, **TRUST)),
                (NotADirectoryError, lambda: ptcp.ls(f"{at}/plain/x", **TRUST)),
                (NotADirectoryError, lambda: ptcp.recv(f"{at}/plain/x", self.dir, **TRUST)),
                (NotADirectoryError, lambda: ptcp.recv(f"{at}/plain", f"{self.plain}/x", **TRUST)),
                (NotADirectoryError, lambda: ptcp.send(self.plain, f"{at}/plain/x", **TRUST)),
                (IsADirectoryError, lambda: ptcp.rm(f"{at}/dir", **TRUST)),
                (IsADirectoryError, lambda: ptcp.send(self.plain, f"{at}/dir", dest_is_file=True, **TRUST)),
                (IsADirectoryError, lambda: ptcp.recv(f"{at}/plain", self.dir, dest_is_file=True, **TRUST)),
                (PermissionError, lambda: ptcp.ls(at, fingerprints=["SHA256:" + "A" * 43])),
                (ConnectionRefusedError, lambda: ptcp.ls("ptcp://127.0.0.1:1/", wait_s=0)),
        ):
            with self.subTest(code=call.__code__.co_consts, line=call.__code__.co_firstlineno), self.assertRaises(kind) as caught:
                call()
            self.assertIsInstance(caught.exception, ptcp.Error)


if __name__ == "__main__":
    unittest.main()
