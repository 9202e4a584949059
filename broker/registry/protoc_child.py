"""``python -I -c TEXT_OF_THIS ARGUMENTS``: protoc, within bounds. It imports nothing of Dovetail."""

from __future__ import annotations

import resource
import sys

from grpc_tools import _protoc_compiler

_BOUNDS = {
    resource.RLIMIT_AS: 1 << 30,
    resource.RLIMIT_CPU: 20,
    resource.RLIMIT_FSIZE: 64 << 20,
    resource.RLIMIT_CORE: 0,
}


def main(arguments: list[str]) -> int:
    for bounded, most in _BOUNDS.items():
        resource.setrlimit(bounded, (most, most))
    return int(_protoc_compiler.run_main([one.encode() for one in arguments]))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
