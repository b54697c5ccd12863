"""Finds the places in src that refuse, and rewrites them so that each can be left out while the program runs.

A refusal names PTCP_EREFUSED, PTCP_EPROTO, PTCP_EVERIFY or a message with "malformed", or calls a function that always
refuses. Its place is the condition that decides about the refusal: of the `if` or `?:` around the refusal, or of
`if (ok) return 0;` before. Each operand of the condition whose absence lets something pass is a place of its own: the
operands of `||`, and of `&&` where the condition refuses by being false. A refusal that depends on no condition of its
function, such as `default:` in a `switch`, is a place as a statement.

refuses(N) stands for mutant_refuses(N) (refuses.h), which records that place N refuses, and is false if N is left out:

    if (a || b) return REFUSAL;   becomes   if (((a && refuses(1)) || (b && refuses(2))) && refuses(0)) return REFUSAL;
    return ok ? 0 : REFUSAL;      becomes   return ok || !refuses(3) ? 0 : REFUSAL;
    return REFUSAL;               becomes   return refuses(4) ? REFUSAL : 0;

The condition is evaluated in any case, with its effects.
"""

import re
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PLACES = 1 << 16            # numbers of places, also in refuses.c
CODES = {"PTCP_EREFUSED", "PTCP_EPROTO", "PTCP_EVERIFY"}
TOKEN = re.compile(
    r'(?P<skip>\s+|/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')|(?P<word>\w+)'
    r"|(?P<sign>->|\+\+|--|<<=|>>=|\.\.\.|&&|\|\||[-+*/%&|^<>=!]=|<<|>>|.)", re.S)
FUNCTION = re.compile(r"^([a-z][^;{}#]*?)\b(\w+)(\([^;{}]*\))(?:\n\{\n(.*?)^\}|[ ]\{ ([^\n]*) \}$)", re.M | re.S)
OPENING, CLOSING = "([{", ")]}"


@dataclass
class Token:
    text: str
    start: int
    end: int


@dataclass
class Function:
    file: str
    name: str
    static: bool
    text: str           # of the file,
    start: int          # and its body there
    end: int

    @cached_property
    def tokens(self):
        return tokenize(self.text, self.start, self.end)

    def mentions(self, pattern):
        return pattern.search(self.text, self.start, self.end) is not None


@dataclass
class Place:
    file: str
    function: str
    text: str           # of the condition, operand or statement; with "#2" if an earlier one is the same
    start: int          # in the file
    end: int
    refusing: object    # the value of the condition that refuses; None: a statement
    number: int = 0

    def key(self):
        return self.file, self.function, self.text


def tokenize(text, start, end):
    at = start
    out = []
    while at < end:
        m = TOKEN.match(text, at, end)
        if m.lastgroup != "skip":
            out.append(Token(m.group(), m.start(), m.end()))
        at = m.end()
    return out


def functions_of(file, text):
    """A body begins and ends with a brace in the first column, or is a line."""
    for m in FUNCTION.finditer(text):
        if m.group(1).startswith(("struct", "enum", "union")) and "(" not in m.group(3):
            continue
        body = 4 if m.group(4) is not None else 5
        yield Function(file, m.group(2), m.group(1).startswith("static"), text, m.start(body), m.end(body))


class Body:
    """Walks through the statements of a function, and collects the conditions that decide about refusals.

    A condition, or a statement without, is (first token, token behind the last one, refusing value)."""

    def __init__(self, function, is_refusal):
        self.t, self.is_refusal = function.tokens, is_refusal
        self.pair = {}          # opening bracket -> closing bracket
        stack = []
        for i, t in enumerate(self.t):
            if t.text in OPENING:
                stack.append(i)
            elif t.text in CLOSING:
                self.pair[stack.pop()] = i
        self.found = []
        self.leaves = False     # a statement before may leave the function
        self.always = False     # the function refuses whatever happens
        self.depth = 0
        self.prepared = set()   # names of reasons that are set before the condition

    def walk(self):
        self.block(0, len(self.t), None)
        return self

    def block(self, at, end, guard):
        """Behind `if (ok) return 0;` a refusal depends on ok."""
        while at < end:
            behind = self.statement(at, guard)
            if self.t[at].text == "if" and self.lets_pass(at, behind):
                guard = (at + 2, self.pair[at + 1], False)
            at = behind

    def lets_pass(self, i, end):
        """An `if` without `else` whose end leaves, but not with an error."""
        said = " ".join(t.text for t in self.t[self.pair[i + 1] + 1:end])
        return re.search(r"\b(return( 0| 1| true)?|continue) ;( })?$", said) is not None and " else " not in said

    def statement(self, i, guard):
        """guard: the condition that decides about this statement, or None. Returns the index behind the statement."""
        self.depth += 1
        try:
            return self.walk_statement(i, guard)
        finally:
            self.depth -= 1

    def walk_statement(self, i, guard):
        t = self.t
        word = t[i].text
        if word == "{":
            self.block(i + 1, self.pair[i], guard)
            return self.pair[i] + 1
        if word in ("if", "while", "for", "switch") or "_EACH" in word and t[i + 1].text == "(":
            close = self.pair[i + 1]
            self.expression(i + 2, close, guard)
            if word == "if":
                at = self.statement(close + 1, (i + 2, close, True))
                if at < len(t) and t[at].text == "else":
                    at = self.statement(at + 1, (i + 2, close, False))
                return at
            if word == "while" and close + 1 < len(t) and t[close + 1].text != ";":
                return self.statement(close + 1, guard)
            return self.statement(close + 1, None if word == "switch" else guard)
        if word == "do":
            at = self.statement(i + 1, guard)
            return self.pair[at + 1] + 2
        if word in ("case", "default"):
            while t[i].text != ":":
                i += 1
            return i + 1
        if word.isupper() and t[i + 1].text == "(" and t[self.pair[i + 1] + 1].text.isidentifier():
            return self.pair[i + 1] + 1     # a macro that is a statement
        end = i
        while end < len(t) and t[end].text != ";":
            end = self.pair[end] + 1 if t[end].text in OPENING else end + 1
        self.expression(i, end, guard, True)
        if word in ("return", "goto"):
            self.leaves = True
        return end + 1

    def expression(self, first, end, guard, whole=False):
        for at in range(first, end):
            if not self.is_refusal(self.t, at) and not self.uses_prepared(at):
                continue
            inner = self.ternary(first, end, at, 0)
            if inner == "choice":
                continue
            if self.in_advance(first, at, guard):
                self.prepared.add(self.t[first + 3].text)
                continue
            if inner is not None:
                self.add(inner)
            elif guard is not None:
                if not any(t.text in CODES for t in self.t[guard[0]:guard[1]]):
                    self.add(guard)
            elif whole:
                self.add((first, end, None))
                if self.depth == 1 and not self.leaves and self.answers(at):
                    self.always = True

    def in_advance(self, first, at, guard):
        t = self.t
        return guard is None and t[first].text == "err_set" and t[first + 2].text == "&" and at < self.pair[first + 1]

    def uses_prepared(self, i):
        t = self.t
        return t[i].text in self.prepared and t[i - 1].text == "&" and t[i - 2].text in ("(", ",")

    def answers(self, at):
        """The refusal at `at` is made here; a code may also be an argument of a function that refuses itself."""
        if self.t[at].text not in CODES:
            return True
        t = self.t
        calls = [a for a, b in self.pair.items() if a < at < b and t[a].text == "(" and t[a - 1].text.isidentifier()]
        return not calls or t[max(calls) - 1].text.endswith(("err_set", "fail", "fail_at_hop"))

    def add(self, where):
        if where not in self.found:
            self.found.append(where)

    def ternary(self, first, end, at, depth):
        """The condition of the innermost `?:` around the token `at`, or None; "choice" if the `?:` merely chooses a code
        or text among the arguments of a call."""
        if self.t[first].text == "return":
            first += 1
        start, question, colon, level, i = first, None, None, 0, first
        parts = []          # (condition start, ?, :, end)
        while i < end:
            text = self.t[i].text
            if text in OPENING:
                i = self.pair[i] + 1
                continue
            if text in (",", "=", "return") and level == 0 and question is None:
                start = i + 1
            elif text == "," and question is not None and level == 0 and colon is not None:
                parts.append((start, question, colon, i))
                start, question, colon = i + 1, None, None
            elif text == "?":
                if question is None:
                    question = i
                else:
                    level += 1
            elif text == ":" and question is not None:
                if level > 0:
                    level -= 1
                elif colon is None:     # the rest of a chain, a ? b : c ? d : e, is the last part
                    colon = i
            i += 1
        if question is not None and colon is not None:
            parts.append((start, question, colon, end))
        for start, question, colon, stop in parts:
            if question < at < stop:
                low, high = (question + 1, colon) if at < colon else (colon + 1, stop)
                inner = self.ternary(low, high, at, depth)
                if inner is not None:
                    return inner
                if depth > 0 and (high - low == 1 or self.t[at].text[0] == '"'):
                    return "choice"     # the code or text of another check is passed on
                return (start, question, at < colon)
        for i in range(first, end):
            if self.t[i].text in OPENING and i < at < self.pair[i]:
                return self.ternary(i + 1, self.pair[i], at, depth + 1)
        return None


def operands(t, pair, first, end, refusing):
    """Parts of a condition without which less is refused."""
    while t[first].text == "(" and pair[first] == end - 1:
        first, end = first + 1, end - 1
    if t[first].text == "!" and t[first + 1].text == "(" and pair[first + 1] == end - 1:
        yield from operands(t, pair, first + 2, end - 1, not refusing)
        return
    for sign in ("||", "&&"):
        parts, at, start = [], first, first
        while at < end:
            if t[at].text in OPENING:
                at = pair[at] + 1
                continue
            if t[at].text in ("?", ",", "=") :
                return
            if t[at].text == sign:
                parts.append((start, at))
                start = at + 1
            at += 1
        if parts:
            parts.append((start, end))
            for a, b in parts:
                if (sign == "||") == refusing:
                    yield a, b, refusing
                yield from operands(t, pair, a, b, refusing)
            return


def normal(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"\s+", " ", text).strip()


def read(root):
    functions = []
    for path in sorted(Path(root, "src").rglob("*.c")):
        file = str(path.relative_to(root))
        text = path.read_text()
        functions += functions_of(file, text)
    return functions


def direct(t, i):
    """The token names a code of refusals or a message of a malformed text, and is not compared."""
    word = t[i].text
    if word in CODES:
        around = {t[i - 1].text if i > 0 else "", t[i + 1].text if i + 1 < len(t) else ""}
        return not around & {"==", "!=", "case"}
    return word[0] == '"' and "malformed" in word


def find(root):
    """All places, in the order of the files."""
    functions = read(root)
    refusers = set()        # (file or None, name)

    def is_refusal_in(f):
        def is_refusal(t, i):
            if direct(t, i):
                return True
            called = i + 1 < len(t) and t[i + 1].text == "("
            return called and ((f.file, t[i].text) in refusers or (None, t[i].text) in refusers)
        return is_refusal

    def is_refuser(f, b):
        """Its callers have the places; a callback has its own."""
        call = re.compile(rf"\b{f.name}\(")
        return b.always and any(g.mentions(call) for g in functions if not f.static or g.file == f.file)

    while True:
        mentioned = re.compile("|".join([*CODES, "malformed", *(rf"\b{name}\(" for _, name in refusers)]))
        walked = [(f, Body(f, is_refusal_in(f)).walk()) for f in functions if f.mentions(mentioned)]
        more = {(f.file if f.static else None, f.name) for f, b in walked if is_refuser(f, b)}
        if more <= refusers:
            break
        refusers |= more
    places = []
    for f, b in walked:
        if is_refuser(f, b):
            b.found = [w for w in b.found if w[2] is not None]
        seen, spans = {}, []
        for where in b.found:
            spans.append(where)
            if where[2] is not None:
                spans += operands(f.tokens, b.pair, *where)
        for first, end, refusing in spans:
            start, stop = f.tokens[first].start, f.tokens[end - 1].end
            said = normal(f.text[start:stop])
            seen[said] = seen.get(said, 0) + 1
            if seen[said] > 1:
                said += f" #{seen[said]}"
            places.append(Place(f.file, f.name, said, start, stop, refusing))
    places.sort(key=lambda p: (p.file, p.start, -p.end))
    used = set()
    for p in places:        # the same number while other places come and go: only changed files are compiled again
        p.number = zlib.crc32("\t".join(p.key()).encode()) % PLACES
        while p.number in used:
            p.number = (p.number + 1) % PLACES
        used.add(p.number)
    return places


def instrument(text, places):
    """The text of a file with its places rewritten."""
    inserts = []            # (offset, order, text): an outer place opens first and closes last
    for p in places:
        width = p.end - p.start
        if p.refusing is not None:
            before, after = "((", f") {'&& ' if p.refusing else '|| !'}mutant_refuses({p.number}))"
        elif text.startswith("return", p.start):
            inserts.append((p.start + len("return"), 1, -width, f" mutant_refuses({p.number}) ? ("))
            inserts.append((p.end, 0, width, ") : 0"))
            continue
        else:
            before, after = f"if (mutant_refuses({p.number})) ", ""
        inserts.append((p.start, 1, -width, before))
        inserts.append((p.end, 0, width, after))
    for at, _, _, what in sorted(inserts, reverse=True):
        text = text[:at] + what + text[at:]
    return '#include "mutants/refuses.h"\n#line 1\n' + text
