"""An agent for the kill drill: agent.py FOLDER ACTS, with the client's settings in APS_*.

It runs acts in four threads, each of which appends a line to FOLDER/done, and exits when all are done and recorded.
"""

import os
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "src"))

from agentledger import Client, Journal, OutcomeUnknown  # noqa: E402


def main(folder: pathlib.Path, acts: int) -> None:
    """Run the acts."""
    done = os.open(folder / "done", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    numbers, lock = iter(range(acts)), threading.Lock()

    def work(client: Client) -> None:
        while True:
            with lock:
                n = next(numbers, None)
            if n is None:
                return

            def act(permit: object, n: int = n) -> None:
                os.write(done, f"{n}\n".encode())
                os.fsync(done)
                time.sleep(n % 5 / 1000)

            try:
                client.act("acme.mail.send", {"n": n}, act, key=f"act-{n}")
            except OutcomeUnknown:
                pass

    with Client(journal=Journal(folder / "journal"), queue_file=folder / "queue") as client:
        client.resume()
        threads = [threading.Thread(target=work, args=(client,)) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        client.flush()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
