"""What the file system of a folder keeps, found without ptcp: the differential leaves out, or expects, what it does not."""
import math
import os
import random
import struct

NS = 1_000_000_000
ACL_DEFAULT = "system.posix_acl_default"
EARLY, NOW, LATE = -315619200, 1012000001, 14999999998 # 1960, 2002, 2445


def new_acl(rng):
    """What POSIX ACLs are on disk: version, then tag, permissions and id of each entry. The owner may do everything: ptcp does
    not enter one's own directories without permission."""
    acl = [(1, rng.randrange(8) | 7, -1), (2, rng.randrange(8), 1000), (4, rng.randrange(8), -1), (16, rng.randrange(8), -1),
           (32, rng.randrange(8), -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", t, p, i & 0xFFFFFFFF) for t, p, i in acl)


def works(call, *args, **how):
    try:
        return call(*args, **how) is not False
    except OSError:
        return False


class Disk:
    """Without a folder: all is kept."""

    def __init__(self, folder=None):
        self.modes = self.owners = self.links = self.symlinks = self.xattrs = self.acls = self.case = self.holes = self.fifos = True
        self.step, self.first, self.last = 1, -math.inf, math.inf # in nanoseconds, and seconds
        self.refused, self.name_max = b"", 255
        if folder is not None:
            self.examine(folder, os.path.join(folder, "examined"))

    def examine(self, folder, at):
        open(at, "x").close()
        self.modes = all(works(os.chmod, at, m) and os.stat(at).st_mode & 0o7777 == m for m in (0o400, 0o640))
        if os.geteuid() == 0:
            self.owners = works(os.chown, at, 1, 1) and os.stat(at).st_uid == 1
        self.links = works(os.link, at, at + "2") and os.stat(at + "2").st_ino == os.stat(at).st_ino and \
            os.stat(at).st_nlink == 2
        number = os.stat(at).st_ino # must stay
        os.rename(at, at + "4")
        self.links = self.links and os.stat(at + "4").st_ino == number
        os.rename(at + "4", at)
        self.symlinks = works(os.symlink, "x", at + "3")
        self.xattrs = works(os.setxattr, at, "user.a", b"")
        self.acls = works(os.setxattr, folder, ACL_DEFAULT, new_acl(random.Random(1))) and \
            ACL_DEFAULT in os.listxattr(folder) and works(os.removexattr, folder, ACL_DEFAULT)
        os.truncate(at, 1 << 20)
        self.fifos = works(os.mkfifo, at + "5")
        self.holes = os.stat(at).st_blocks < 1024
        self.case = not os.path.exists(os.path.join(folder, "EXAMINED"))
        self.refused = bytes(c for c in b':*?"<>|\\\n\xff' if not self.can_be(folder, b"x" + bytes([c])))
        self.name_max = max(n for n in (100, 255) if self.can_be(folder, b"y" * n) and self.can_replace(folder, b"y" * n))
        stored = self.time(at, NOW, 987654321)
        self.step = next((s for s in (1, 100, 10_000_000, NS, 2 * NS) if (NOW * NS + 987654321) // s * s == stored), None)
        early, late = (self.time(at, s, 0) // NS for s in (EARLY, LATE))
        if early != EARLY: # the first time, or one of fewer bits
            self.first = early if early < NOW else 0
        if late != LATE:
            self.last = late if late > NOW else 2 ** 31 - 1
        for name in ("", "2", "3", "5"):
            works(os.unlink, at + name)

    def can_be(self, folder, name):
        at = os.path.join(os.fsencode(folder), name)
        return works(lambda: open(at, "x").close()) and works(os.unlink, at)

    def can_replace(self, folder, name):
        """ntfs-3g leaves a second name behind where the longest name is replaced."""
        inside, at = os.fsencode(folder) + b"/inside", os.fsencode(folder) + b"/inside/" + name
        os.mkdir(inside)
        for p in (at, inside + b"/other"):
            open(p, "x").close()
        os.rename(inside + b"/other", at)
        names = os.listdir(inside)
        for n in names:
            os.unlink(inside + b"/" + n)
        os.rmdir(inside)
        return names == [name]

    def time(self, at, s, ns):
        works(os.utime, at, ns=(s * NS + ns, s * NS + ns))
        return os.stat(at).st_mtime_ns

    def stored(self, ns):
        """What becomes of a time; None: nobody knows."""
        if self.step is None or not self.first <= ns // NS <= self.last:
            return None
        if ns < 0 and self.step > 1: # ntfs-3g rounds up, to seconds
            return None
        return ns // self.step * self.step

    def keeps_name(self, name):
        return not any(c in self.refused for c in name) and len(name) <= self.name_max

    def __str__(self):
        lacks = [w for w in ("modes", "owners", "links", "symlinks", "xattrs", "acls", "case") if not getattr(self, w)]
        return f"lacks {' '.join(lacks) or 'nothing'}, times to {self.step} ns from {self.first} to {self.last}, not {self.refused}"
