"""Tests of ptcp_plugin, called as the starter of HTCondor 25 calls it, against servers on loopback; tests/e2e/test_htcondor sets
PTCP_PROGRAM, PTCP_URL, PTCP_ROOT (the served directory) and PTCP_FINGERPRINT. With REQUIRE=classad2 the ads are written and
read by HTCondor's own library."""

import importlib.machinery
import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.parse

try:
    import classad2
except ImportError:
    classad2 = None
    if os.environ.get("REQUIRE") == "classad2":
        raise

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGIN = os.path.join(HERE, "ptcp_plugin")
URL, ROOT, FINGERPRINT, PROGRAM = (os.environ[n] for n in ("PTCP_URL", "PTCP_ROOT", "PTCP_FINGERPRINT", "PTCP_PROGRAM"))
loader = importlib.machinery.SourceFileLoader("ptcp_plugin", PLUGIN)
plugin = importlib.util.module_from_spec(importlib.util.spec_from_loader("ptcp_plugin", loader))
loader.exec_module(plugin)
ALLOCATED = 16 * 1204 // 64 * 64


def quoted(text):
    return '"%s"' % "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else "\\%03o" % b for b in os.fsencode(text))


def results(text):
    """The ads of an output file as dictionaries."""
    if classad2:
        return [plain(ad) for ad in classad2.parseAds(text)]
    words = {"[": "{", "]": "}", "{": "[", "}": "]", ";": ",", "=": ":", "true": "true", "false": "false"}
    form = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}=;,]|[^\s"\[\]{}=;,]+|\s+', re.S)
    out = []
    for token in form.findall(text):
        if token.startswith('"'):
            raw = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m.group(1), 8)]), token[1:-1].encode())
            token = json.dumps(os.fsdecode(raw))
        out.append(words.get(token) or (json.dumps(token) if token[0].isalpha() else token))
    decoder, ads, at, text = json.JSONDecoder(), [], 0, "".join(out).rstrip()
    while at < len(text):
        at += len(text[at:]) - len(text[at:].lstrip())
        ad, at = decoder.raw_decode(text, at)
        ads.append(ad)
    return ads


def plain(value):
    if isinstance(value, classad2.ClassAd):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = os.path.join(folder.name, "sandbox")
        os.mkdir(self.dir)
        self.calls = os.path.join(folder.name, "calls")
        self.program = os.path.join(folder.name, "counted")
        with open(self.program, "w") as f:
            f.write('#!/bin/sh\necho $$ >>%s\nexec %s "$@"\n' % (self.calls, PROGRAM))
        os.chmod(self.program, 0o755)
        self.served = tempfile.mkdtemp(dir=ROOT)
        self.url = URL + "/" + os.path.basename(self.served)

    def local(self, *names):
        return os.path.join(self.dir, *names)

    def file(self, path, content=b"content", mode=0o644):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content)
        os.chmod(path, mode)
        return path

    def content(self, path):
        with open(path, "rb") as f:
            return f.read()

    def start(self, pairs, upload=False, text=None, **environment):
        """As FileTransfer::InvokeMultipleFileTransferPlugin() does."""
        infile, self.outfile = self.local(".ptcp_plugin.in"), self.local(".ptcp_plugin.out")
        if text is None:
            text = "".join("[ LocalFileName = %s; Url = %s ]" % (quoted(local), quoted(url)) for url, local in pairs)
        self.file(infile, os.fsencode(text))
        self.file(self.outfile, b" " * ALLOCATED)
        self.inode = os.stat(self.outfile).st_ino
        env = dict(os.environ, PTCP_PROGRAM=self.program, PTCP_OPTIONS="--timeout 20s --fingerprint " + FINGERPRINT,
                   _CONDOR_JOB_AD=self.local(".job.ad"))
        env.update(environment)
        return subprocess.Popen([PLUGIN, "-infile", infile, "-outfile", self.outfile] + ["-upload"] * upload, env=env, cwd=self.dir,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finish(self, process):
        said, _ = process.communicate()
        self.said = said.decode(errors="replace")
        status = os.stat(self.outfile)
        self.assertEqual(status.st_ino, self.inode)
        self.assertGreaterEqual(status.st_size, ALLOCATED)  # never cut
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith(".ptcp-")], [])
        return process.returncode, results(self.content(self.outfile).decode("ascii"))

    def run_plugin(self, pairs, upload=False, expect=0, **more):
        status, ads = self.finish(self.start(pairs, upload, **more))
        self.assertEqual(status, expect, self.said)
        self.assertEqual([(ad["TransferUrl"], ad["TransferFileName"]) for ad in ads], list(pairs))
        for ad in ads:
            self.assertEqual(ad["TransferProtocol"], "ptcp")
            self.assertEqual(ad["TransferType"], "upload" if upload else "download")
            self.assertLessEqual(ad["TransferStartTime"], ad["TransferEndTime"])
            self.assertIs(type(ad["TransferFileBytes"]), int)
            self.assertIs(type(ad["TransferStartTime"]), int)
            self.assertIs(type(ad["ConnectionTimeSeconds"]), float)
            if ad["TransferSuccess"]:
                self.assertNotIn("TransferError", ad)
            else:
                data, = ad["TransferErrorData"]
                self.assertEqual(data["ErrorString"], ad["TransferError"])
                self.assertIs(type(data["ErrorCode"]), int)
        return ads

    def failure(self, ad, **members):
        self.assertIs(ad["TransferSuccess"], False)
        data = ad["TransferErrorData"][0]
        self.assertEqual({k: data.get(k) for k in members}, members, data)

    def n_sessions(self):
        return len(self.content(self.calls).splitlines())

    # ---- Queries

    def test_tells_what_it_can(self):
        said = subprocess.run([PLUGIN, "-classad"], env=dict(os.environ, PTCP_PROGRAM=PROGRAM), stdout=subprocess.PIPE, check=True).stdout
        lines = dict(line.split(" = ") for line in said.decode().splitlines())
        self.assertEqual(lines.pop("PluginVersion"), '"%s"' % plugin.VERSION)
        self.assertEqual(lines, {"MultipleFileSupport": "true", "PluginType": '"FileTransfer"', "ProtocolVersion": "2",
                                 "SupportedMethods": '"ptcp"'})

    def test_offers_nothing_without_a_program(self):
        run = subprocess.run([PLUGIN, "-classad"], env=dict(os.environ, PTCP_PROGRAM="/nonexistent/ptcp"), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.assertEqual((run.returncode, run.stdout), (1, b""))
        self.assertIn(b"PTCP_PROGRAM", run.stderr)

    def test_wrong_arguments(self):
        for arguments in [], ["-infile", "x"], ["-upload"], ["url", "file"], ["-infile", "a", "-outfile", "b", "-c"], ["-infile", "a", "-infile", "b"]:
            run = subprocess.run([PLUGIN] + arguments, stderr=subprocess.PIPE)
            self.assertEqual(run.returncode, 1, arguments)
            self.assertIn(b"-infile FILE", run.stderr)

    # ---- Downloads

    def test_downloads_all_in_one_session(self):
        odd = "a b'c\"d\\e\né#?%.dat" + ("" if classad2 else "\udcff")  # classad2 reads UTF-8 only
        self.file(os.path.join(self.served, "x", "data"), b"1")
        self.file(os.path.join(self.served, "y", "data"), b"22")
        self.file(os.path.join(self.served, odd), b"333")
        self.file(os.path.join(self.served, "tree", "sub", "leaf"), b"4444")
        os.symlink("x/data", os.path.join(self.served, "link"))
        os.link(os.path.join(self.served, "x", "data"), os.path.join(self.served, "same"))
        pairs = [(self.url + "/x/data", self.local("data")), (self.url + "//y/./data", self.local("other")),
                 (self.url + "/" + urllib.parse.quote(os.fsencode(odd)), self.local(odd)), (self.url + "/tree/", self.local("tree")),
                 (self.url + "/link", self.local("link")), (self.url + "/same", self.local("same")),
                 (self.url + "/x/data", self.local("again")), (self.url + "/tree/sub/leaf", self.local("leaf"))]
        ads = self.run_plugin(pairs)
        self.assertEqual(self.n_sessions(), 1)
        self.assertEqual([self.content(self.local(n)) for n in ("data", "other", odd, "tree/sub/leaf", "link", "same", "again", "leaf")],
                         [b"1", b"22", b"333", b"4444", b"1", b"1", b"1", b"4444"])
        self.assertEqual([ad["TransferFileBytes"] for ad in ads], [1, 2, 3, 4, 1, 1, 1, 4])
        self.assertFalse(os.path.islink(self.local("link")))
        self.assertEqual({os.stat(self.local(n)).st_nlink for n in ("data", "same", "again")}, {1})

    def test_a_file_that_is_missing_fails_alone(self):
        self.file(os.path.join(self.served, "here"))
        os.mkdir(self.local("taken"))
        self.file(self.local("taken", "file"))
        ads = self.run_plugin([(self.url + "/none", self.local("none")), (self.url + "/here", self.local("here")),
                               (self.url + "/here", self.local("taken"))], expect=1)
        self.failure(ads[0], ErrorType="Specification", FailedServer=URL[7:], ErrorCode=6)
        self.assertIn("No such file", ads[0]["TransferError"])
        self.assertTrue(ads[1]["TransferSuccess"])
        self.assertEqual(self.content(self.local("here")), b"content")
        self.assertFalse(ads[2]["TransferSuccess"])
        self.assertEqual(self.content(self.local("taken", "file")), b"content")

    def test_more_names_than_one_session_takes(self):
        pairs = []
        for i in range(12):
            self.file(os.path.join(self.served, "%03d" % i), b"%d" % i)
            pairs.append((self.url + "/%03d" % i, self.local("%03d" % i)))
        limit, plugin.LIST_BYTES = plugin.LIST_BYTES, 60
        try:
            items = [plugin.Item(*pair) for pair in pairs]
            lists = plugin.sessions(items)
        finally:
            plugin.LIST_BYTES = limit
        self.assertGreater(len(lists), 2)
        self.assertEqual([i for _, some in lists for i in some], items)
        self.assertTrue(all(sum(len(i.path) + 1 for i in some) <= 60 for _, some in lists))

    # ---- Uploads

    def test_uploads_all_in_one_session(self):
        results_ = os.path.join(self.served, "results")
        os.mkdir(results_)
        os.chmod(results_, 0o2775)
        self.file(os.path.join(results_, "kept"))
        before = os.stat(self.served)
        self.file(self.local("out"), b"1")
        self.file(self.local("tool"), b"22", 0o755)
        self.file(self.local("made", "leaf"), b"333")
        os.symlink("out", self.local("link"))
        pairs = [(self.url + "/results//out", self.local("out")), (self.url + "/results/renamed", self.local("tool")),
                 (self.url + "/new/er/made", self.local("made")), (self.url + "/results/link", self.local("link"))]
        ads = self.run_plugin(pairs, upload=True)
        self.assertEqual(self.n_sessions(), 1)
        self.assertEqual([self.content(os.path.join(self.served, n)) for n in ("results/out", "results/renamed", "new/er/made/leaf", "results/link")],
                         [b"1", b"22", b"333", b"1"])
        self.assertEqual([ad["TransferFileBytes"] for ad in ads], [1, 2, 3, 1])
        self.assertEqual(os.stat(os.path.join(results_, "renamed")).st_mode & 0o777, 0o755)
        self.assertEqual(os.stat(results_).st_mode & 0o7777, 0o2775)
        self.assertEqual(os.stat(self.served).st_mode, before.st_mode)
        self.assertTrue(os.path.exists(os.path.join(results_, "kept")))
        self.assertEqual(self.content(self.local("out")), b"1")  # the sandbox is as it was

    def test_uploads_that_cannot_be(self):
        self.file(self.local("a"), b"1")
        self.file(self.local("b"), b"2")
        self.file(os.path.join(self.served, "dir", "file"))
        ads = self.run_plugin([(self.url + "/one", self.local("a")), (self.url + "/one", self.local("b")),
                               (self.url + "/two", self.local("none")), (self.url + "/one/below", self.local("b")),
                               (self.url + "/dir", self.local("b")), (self.url + "/last", self.local("b"))], upload=True, expect=1)
        self.assertEqual([ad["TransferSuccess"] for ad in ads], [True, False, False, False, False, True])
        self.assertEqual(self.content(os.path.join(self.served, "one")), b"1")
        self.assertEqual(self.content(os.path.join(self.served, "dir", "file")), b"content")
        self.assertEqual(self.content(os.path.join(self.served, "last")), b"2")

    # ---- Failures of all files

    def test_kinds_of_failures(self):
        self.file(os.path.join(self.served, "f"))
        pair = [(self.url + "/f", self.local("f"))]
        other = FINGERPRINT[:-2] + ("AA" if FINGERPRINT[-2] != "A" else "EE")
        ad, = self.run_plugin(pair, expect=1, PTCP_OPTIONS="--timeout 20s --fingerprint " + other)
        self.failure(ad, ErrorType="Authorization", FailedServer=URL[7:], ErrorCode=4)
        ad, = self.run_plugin([("ptcp://127.0.0.1:1/f", self.local("f"))], expect=1)
        self.failure(ad, ErrorType="Contact", FailedServer="127.0.0.1:1", ErrorCode=3, Retryable=0)
        ad, = self.run_plugin([("ptcp://nobody.invalid/f", self.local("f"))], expect=1)
        self.failure(ad, ErrorType="Resolution", FailedName="nobody.invalid")
        ad, = self.run_plugin(pair, expect=1, PTCP_OPTIONS="--no-such-option")
        self.failure(ad, ErrorType="Parameter", PluginLaunched=True, PluginVersion=plugin.VERSION)
        ad, = self.run_plugin(pair, expect=1, PTCP_PROGRAM="none")
        self.failure(ad, ErrorType="Parameter", PluginLaunched=False)
        ad, = self.run_plugin(pair, expect=1, PTCP_PROGRAM="/bin/false")
        self.failure(ad, ErrorType="Parameter")

    def test_urls_that_name_no_file(self):
        urls = [URL, URL + "/", URL + "/../x", self.url + "/%2e%2e/x", self.url + "/a%00b", "ptcp:///x", "ptcp://[::1/x", self.url + "/x?y", "http://h/x"]
        for ad in self.run_plugin([(url, self.local("f")) for url in urls], expect=1):
            self.failure(ad, ErrorType="Parameter", ErrorCode=2)
        self.assertFalse(os.path.exists(self.calls))

    def test_lists_that_are_no_ads(self):
        for text in "x", "[", '[ Url = "x', "[ Url = ]]", "{ }", "[ a = 1 ] x", '[ Url = "\\', "[ a = ( ]":
            status, ads = self.finish(self.start((), text=text))
            self.assertEqual(status, 1, text)
            self.assertEqual(len(ads), 1, text)
            self.assertIn("ClassAd", ads[0]["TransferError"])
        status, ads = self.finish(self.start((), text=""))
        self.assertEqual((status, ads), (0, []))

    def test_other_attributes_are_ignored(self):
        self.file(os.path.join(self.served, "f"))
        status, ads = self.finish(self.start((), text='[ Protocol = "ptcp"; ptcp_PluginData = [ Url = "no"; x = { "]", 1.5e3 } ] ]\n'
                                             "// a note\n[ Size = 3 + (4 * 2); 'URL' = %s; /* and */ localfilename = %s; "
                                             'Rest = strcat("a", "b") == "ab" ? { } : error; ]' % (quoted(self.url + "/f"), quoted("f"))))
        self.assertEqual(status, 0, self.said)
        self.assertEqual([ad["TransferFileName"] for ad in ads], [self.local("f")])
        self.assertEqual(self.content(self.local("f")), b"content")

    def test_the_job_brings_program_and_identity(self):
        self.file(os.path.join(self.served, "f"))
        os.symlink(PROGRAM, self.local("own"))
        os.symlink(os.environ["XDG_CONFIG_HOME"], self.local("identity"))
        env = {"PTCP_PROGRAM": "own", "PTCP_CONFIG_HOME": "identity", "XDG_CONFIG_HOME": self.local("nothing"), "XDG_STATE_HOME": self.local("state")}
        self.run_plugin([(self.url + "/f", self.local("f"))], **env)

    def test_a_killed_plugin_leaves_no_transfer(self):
        self.file(os.path.join(self.served, "f"), b"x" * 4000000)
        process = self.start([(self.url + "/f", self.local("f"))],
                             PTCP_OPTIONS="--rate 1Mbit/s --no-preflight --fingerprint " + FINGERPRINT)
        while not os.path.exists(self.calls) or not self.content(self.calls).endswith(b"\n"):
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        pid = int(self.content(self.calls))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        while os.path.exists("/proc/%d" % pid):  # until the limit of the script
            time.sleep(0.02)

    # ---- The language

    @unittest.skipUnless(classad2, "no classad2")
    def test_reads_what_condor_writes(self):
        draw = random.Random(os.environ.get("SEED", "49"))
        for _ in range(2000):
            texts = {}
            for name in draw.sample(["Url", "LocalFileName", "Other", "X_1"], draw.randint(0, 4)):
                texts[name] = "".join(draw.choice('ab"\\\'\n\t\x01\x7fé€/[]{};=$(') for _ in range(draw.randint(0, 12)))
            ad = classad2.ClassAd(texts)
            ad["Number"] = draw.choice([1, -2.5, True, [1, "x;]"], classad2.ClassAd({"Url": "inner"})])
            for form in str(ad), repr(ad):
                self.assertEqual(plugin.ads_of(form.encode() * 2), [{k.lower(): v for k, v in texts.items()}] * 2, form)

    @unittest.skipUnless(classad2, "no classad2")
    def test_condor_reads_what_it_writes(self):
        draw = random.Random(os.environ.get("SEED", "50"))
        for _ in range(2000):
            ad = {"T": "".join(draw.choice('ab"\\\'\n\t\x01\x7fé€/[]{};=$(07') for _ in range(draw.randint(0, 12))),
                  "B": draw.random() < 0.5, "I": draw.randint(-2**62, 2**62), "R": draw.random(), "L": [{"D": "x"}, {"E": 1}]}
            self.assertEqual(plain(classad2.parseOne(plugin.written(ad))), ad)


if __name__ == "__main__":
    unittest.main()
