"""The command ptcp of a wheel that carries the executable."""

import os
import sys

BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundled")


def main():
    os.execv(os.path.join(BUNDLED, "ptcp"), [sys.argv[0], *sys.argv[1:]])
