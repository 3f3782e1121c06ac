"""Verifies a file with the client, for tests of the service.

  verify.py bundle FILE VKEY [--keys FILE] [--directory VKEY]
  verify.py tlog-proof FILE ENTRY VKEY

It prints the report, and the reason on standard error. The exit code is 0 if the file is proved, 1 if it is wrong, 2 if that can't be told.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "src"))

from agentledger import verify  # noqa: E402

parser = argparse.ArgumentParser()
commands = parser.add_subparsers(dest="command", required=True)
bundle, proof = commands.add_parser("bundle"), commands.add_parser("tlog-proof")
bundle.add_argument("file", type=pathlib.Path)
bundle.add_argument("key")
bundle.add_argument("--keys", type=pathlib.Path)
bundle.add_argument("--directory")
proof.add_argument("file", type=pathlib.Path)
proof.add_argument("entry", type=pathlib.Path)
proof.add_argument("key")
args = parser.parse_args()

if args.command == "bundle":
    result = verify.bundle(
        args.file.read_bytes(),
        key=args.key,
        keys=args.keys.read_bytes() if args.keys else None,
        directory=verify.read_trust(args.directory) if args.directory else None,
    )
else:
    result = verify.tlog_proof(args.file.read_bytes(), args.entry.read_bytes(), key=args.key)
print(result)
print(result.reason or "", file=sys.stderr)
sys.exit(result.outcome.value)
