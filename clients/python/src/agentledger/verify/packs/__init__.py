"""Evidence packs: ZIP files that prove what a log holds in a range of events (docs/evidence.md).

- No file counts before its digest in the manifest is compared, and each byte of the ZIP is checked.
- A report asserts recomputed facts only, and nothing about the parts that are the operator's word.
"""
