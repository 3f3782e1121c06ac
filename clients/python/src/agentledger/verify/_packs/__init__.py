"""Evidence packs: ZIP files that prove the content of a log in a range of events (docs/spec/evidence-pack.md).

- No file counts before its digest in the manifest is compared, and every byte of the ZIP is checked.
- A report asserts only recomputed facts, and nothing about the parts that are unverified operator claims.
"""
