"""Runs the client's verifier over a folder of vectors: corpus.py DIR. testdata/vectors/README.md has the format.

The last line is "N passed, N failed". The exit code is 1 if a vector failed or there is none.
"""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "src"))

from test_vectors import JUDGES, Vectors  # noqa: E402


def run(folder: pathlib.Path) -> int:
    """Print the vectors that fail and the counts, and return the exit code."""
    passed = failed = 0
    for file in sorted(folder.glob("*.json")):
        vectors = json.loads(file.read_text(encoding="utf-8"))
        for v in vectors["vectors"]:
            try:
                Vectors().check(JUDGES[vectors["kind"]], v)
                passed += 1
            except unittest.TestCase.failureException as why:
                failed += 1
                print(f"{vectors['kind']}: {v['name']}: {why}")
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(run(pathlib.Path(sys.argv[1])))
