"""Random trees of files: a tree is a dict from paths, which are bytes, to entries, and is written to disk as often as copies
are needed. With equal seeds all copies are equal, except for inode numbers and ctimes."""
import copy
import hashlib
import os
import random
import stat

from disk import ACL_DEFAULT, NS, new_acl

NAMES = [b"a", b"A", b"b", b"b c", b"-n", b"n\nl", b"\xff\xfe", b"*", b"d.o", b".hid", "ü".encode(), b"u\xcc\x88", b"x" * 255,
         b"\\", b"q'\"", b"%41", b"~", b"e.o"]
SIZES = [0, 0, 1, 300, 4096, 65537, 262144, 262145, 600000]
IDS = [0, 1000, 65534, 12345]
ACL_ACCESS = "system.posix_acl_access"
HOLE = 1 << 20 # size of a file with a hole at its end


class Entry:
    """kind: file, dir, link or fifo. The names of a file or symbolic link with several hard links share it, as inodes do."""

    def __init__(self, kind, rng, can_own):
        self.kind = kind
        self.target = rng.choice([b"a", b"../b", b"/nowhere", b"n\nl", b"\xff"]) if kind == "link" else None
        self.mode = 0o7777 & rng.choice([0o644, 0o755, 0o600, 0o444, 0o000, rng.randrange(0o10000)])
        if kind == "dir":
            self.mode = rng.choice([0o755, 0o700, 0o555, 0o775, 0o1777, 0o2755, rng.randrange(0o10000)])
        self.mtime = new_time(rng)
        self.ids = (rng.choice(IDS), rng.choice(IDS)) if can_own else None
        self.size, self.seed, self.hole = rng.choice(SIZES), rng.randrange(1 << 30), rng.random() < .1
        self.xattrs, self.acls = {}, {}
        if rng.random() < .15:
            new_xattr(self, rng)
        if rng.random() < .1:
            self.acls[ACL_ACCESS] = new_acl(rng)
        if kind == "dir" and rng.random() < .1:
            self.acls[ACL_DEFAULT] = new_acl(rng)

    def bytes(self):
        return random.Random(self.seed).randbytes(self.size) + (bytes(HOLE - self.size) if self.hole else b"")


def new_time(rng):
    """A time of 1960 to 2446 in nanoseconds."""
    s = rng.choice([rng.randrange(-315619200, 15000000000), rng.randrange(900000000, 1700000000)])
    return s * NS + rng.choice([0, 0, rng.randrange(NS)])


def new_xattr(entry, rng):
    entry.xattrs[rng.choice(["user.a", "user.b", "user.empty"])] = rng.randbytes(rng.choice([0, 5, 2000]))


class Maker:
    """Draws trees. `readable`: the user who runs the test may read all of the tree."""

    def __init__(self, rng, root, readable):
        self.rng, self.root, self.readable = rng, root, readable

    def entry(self, kinds=("file", "file", "file", "file", "dir", "dir", "link", "fifo")):
        e = Entry(self.rng.choice(kinds), self.rng, self.root)
        if not self.root and e.kind == "dir":
            e.mode |= 0o500 # ptcp does not enter others, even if they are the user's own
            e.acls.pop(ACL_ACCESS, None)
        if self.readable:
            e.mode |= 0o700 if e.kind == "dir" else 0o400
            e.acls.pop(ACL_ACCESS, None)
        return e

    def free_path(self, tree):
        dirs = [b""] + [p for p, e in tree.items() if e.kind == "dir" and p.count(b"/") < 4]
        parent = self.rng.choice(dirs)
        name = self.rng.choice(NAMES)
        return parent + b"/" + name if parent else name

    def add(self, tree, **kinds):
        p = self.free_path(tree)
        if p in tree:
            return
        files = [q for q, e in tree.items() if e.kind == "file"]
        if files and self.rng.random() < .15:
            tree[p] = tree[self.rng.choice(files)]
        else:
            tree[p] = self.entry(**kinds)

    def tree(self, n):
        tree = {}
        for _ in range(n):
            self.add(tree)
        links = [p for p, e in tree.items() if e.kind == "link"]
        own = random.Random(repr(links)) # the trees are those of earlier seeds
        for p in links[1:]: # further names of symbolic links
            if own.random() < .3:
                tree[p] = tree[links[0]]
        return tree

    def changed(self, tree, n):
        """A copy after n random changes."""
        tree = copy.deepcopy(tree) # hard links remain
        for _ in range(n):
            if not tree or self.rng.random() < .3:
                self.add(tree)
            else:
                self.change(tree, self.rng.choice(list(tree)))
        return tree

    def change(self, tree, p):
        e, rng = tree[p], self.rng
        what = rng.choice(["remove", "type", "mode", "time", "ns", "xattr", "owner", "content", "byte", "grow", "unlink", "case"])
        if what == "remove":
            remove(tree, p)
        elif what == "type":
            remove(tree, p)
            tree[p] = self.entry()
        elif what == "mode":
            e.mode = self.entry((e.kind,)).mode
        elif what == "time":
            e.mtime = new_time(rng)
        elif what == "ns":
            ns = rng.randrange(NS)
            e.mtime = e.mtime // NS * NS + ns + ns % 2 * (ns % 7 - 3) * NS # half of them some seconds apart
        elif what == "xattr":
            e.xattrs = {}
            if rng.random() < .7:
                new_xattr(e, rng)
        elif what == "owner" and self.root:
            e.ids = (rng.choice(IDS), rng.choice(IDS))
        elif what == "content": # of the same size
            e.seed, e.mtime = rng.randrange(1 << 30), new_time(rng)
        elif what == "byte": # of the same size and time
            e.seed = rng.randrange(1 << 30)
        elif what == "grow":
            e.size, e.mtime = e.size + rng.choice([1, 5000]), new_time(rng)
        elif what == "unlink": # no link of another file any more
            tree[p] = copy.deepcopy(e)
        elif what == "case" and e.kind != "dir" and list(tree.values()).count(e) == 1 and p.swapcase() not in tree and b"/" not in p:
            tree[p.swapcase()] = tree.pop(p)


def remove(tree, p):
    for q in [q for q in tree if q == p or q.startswith(p + b"/")]:
        del tree[q]


def write(tree, root, mode):
    """The tree below the new directory root, which is of 2002. Of what the file system cannot keep there is less."""
    os.mkdir(root, 0o700)
    made = {}
    for p in sorted(tree):
        e, at = tree[p], root + b"/" + p
        if e.kind == "dir":
            os.mkdir(at, 0o700)
        elif e.kind == "fifo":
            if_possible(os.mkfifo, at, 0o600)
        elif id(e) in made and if_possible(os.link, made[id(e)], at, follow_symlinks=False):
            pass
        elif e.kind == "link":
            if if_possible(os.symlink, e.target, at):
                made[id(e)] = at
        else:
            made[id(e)] = at
            with open(at, "xb") as f:
                f.write(e.bytes()[:e.size])
                if e.hole:
                    f.truncate(HOLE)
    for p in sorted(tree, reverse=True):
        if os.path.lexists(root + b"/" + p):
            finish(tree[p], root + b"/" + p)
    if_possible(os.chmod, root, mode)
    os.utime(root, (1012000000, 1012000000))


def if_possible(call, *args, **how):
    """Containers lack users, and file systems attributes: both programs have what is left."""
    try:
        call(*args, **how)
        return True
    except OSError:
        return False


def finish(e, at):
    if e.ids is not None:
        if_possible(os.chown, at, *e.ids, follow_symlinks=False)
    if e.kind in ("file", "dir"):
        if_possible(os.chmod, at, 0o700)
        for name, value in e.xattrs.items():
            if_possible(os.setxattr, at, name, value)
    if e.kind != "link":
        if_possible(os.chmod, at, e.mode)
        for name, value in e.acls.items():
            if e.kind == "dir" or name == ACL_ACCESS:
                if_possible(os.setxattr, at, name, value)
    if_possible(os.utime, at, ns=(e.mtime, e.mtime), follow_symlinks=False)


def has_attributes(folder):
    """Whether files there may have the attributes that trees have."""
    try:
        os.setxattr(folder, "user.probe", b"")
        os.removexattr(folder, "user.probe")
        os.setxattr(folder, ACL_DEFAULT, new_acl(random.Random(1)))
        os.removexattr(folder, ACL_DEFAULT)
    except OSError:
        return False
    return True


def erase(at):
    """Directories of any mode as well."""
    if not os.path.lexists(at):
        return
    if os.path.islink(at) or not os.path.isdir(at):
        os.unlink(at)
        return
    if_possible(os.chmod, at, 0o700)
    for name in os.listdir(at):
        erase(at + b"/" + name)
    os.rmdir(at)


def attributes(at):
    try:
        return os.listxattr(at)
    except OSError: # the file system has none
        return []


def describe(root):
    """What the tree is on disk: a dict from paths to dicts of properties. What the caller may not read becomes readable in
    passing."""
    found, groups = {}, {}

    def visit(p):
        at = root + b"/" + p if p else root
        st = os.lstat(at)
        kind = stat.S_IFMT(st.st_mode)
        is_link = kind == stat.S_IFLNK
        d = found[p] = {"type": {stat.S_IFDIR: "dir", stat.S_IFREG: "file", stat.S_IFLNK: "link"}.get(kind, "special"),
                        "mtime": st.st_mtime_ns, "owner": (st.st_uid, st.st_gid)}
        if is_link:
            d["target"] = os.readlink(at)
            groups.setdefault(st.st_ino, []).append(p)
        else:
            d["mode"] = oct(stat.S_IMODE(st.st_mode))
        if kind not in (stat.S_IFDIR, stat.S_IFREG):
            return
        named = attributes(at)
        d["acl"] = {n: os.getxattr(at, n) for n in named if n in (ACL_ACCESS, ACL_DEFAULT)}
        closed = os.geteuid() != 0 and st.st_mode & 0o500 != 0o500
        if closed:
            os.chmod(at, stat.S_IMODE(st.st_mode) | 0o700)
        d["xattrs"] = {n: hashlib.md5(os.getxattr(at, n)).hexdigest() for n in named if n.startswith("user.")}
        if kind == stat.S_IFREG:
            d["size"] = st.st_size
            d["holes"] = st.st_size >= HOLE and st.st_blocks * 512 <= st.st_size // 2 + 65536
            with open(at, "rb") as f:
                d["content"] = hashlib.md5(f.read()).hexdigest()
            groups.setdefault(st.st_ino, []).append(p)
        else:
            for name in sorted(os.listdir(at)):
                visit(p + b"/" + name if p else name)
        if closed:
            os.chmod(at, stat.S_IMODE(st.st_mode))

    if os.path.lexists(root):
        visit(b"")
    for names in groups.values():
        for p in names:
            found[p]["names"] = names
    return found
