"""Time on a card is scarce: measurements that stop when it is over, and say what they left out."""

import json
import subprocess
import time


class Budget:
    """Seconds for everything that is run; 0: no limit."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds if seconds else None

    def left(self):
        return max(self.end - time.monotonic(), 0.0) if self.end else None

    def is_spent(self):
        return self.end is not None and time.monotonic() >= self.end

    def answer(self, command, at_most=None):
        """What a program that prints one JSON object found, or a dictionary whose `missing` says why there is
        nothing. Takes no longer than what is left, and than `at_most` seconds."""
        if self.is_spent():
            return {"missing": "no time left"}
        limits = [limit for limit in (self.left(), at_most) if limit]
        try:
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                                  timeout=min(limits) if limits else None)
        except subprocess.TimeoutExpired:
            return {"missing": "no time left" if self.is_spent() else f"more than {at_most} s"}
        if done.returncode:
            lines = [line for line in (done.stderr or done.stdout).strip().splitlines() if line.strip()]
            return {"missing": lines[-1][:160] if lines else f"exit code {done.returncode}"}
        return json.loads(done.stdout.strip().splitlines()[-1])
