"""How requests leave this process: one description of each call, run by blocking sockets or by asyncio.

- Calls are generators that yield effects and get their results, so each is written once.
- A connection is kept alive and reused; redirects are not followed, so a token is sent to one address only.
"""
