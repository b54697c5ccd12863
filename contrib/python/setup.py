"""Besides pyproject.toml: with the folder ptcp/bundled, which `make wheel` fills, the wheel is one of a platform."""

import os

from setuptools import setup
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel


class OfPlatform(Distribution):
    def has_ext_modules(self):
        return True


class OfAnyPython(bdist_wheel):
    """The libraries are called by ctypes, hence by any version of Python."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(**({"distclass": OfPlatform, "cmdclass": {"bdist_wheel": OfAnyPython}} if os.path.isdir("ptcp/bundled") else {}))
