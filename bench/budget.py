"""Time on a card is scarce: measurements that stop when it is over, and say what they left out."""

import json
import subprocess
import tempfile
import time


class Budget:
    """Seconds for everything that is run; 0: no limit."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds if seconds else None

    def left(self):
        return max(self.end - time.monotonic(), 0.0) if self.end else None

    def is_spent(self):
        return self.end is not None and time.monotonic() >= self.end

    def answers(self, command, at_most=None):
        """The JSON objects that a program printed, a line each, and why there are no more: empty when it ended well.
        It has what is left, and no more than `at_most` seconds."""
        if self.is_spent():
            return [], "no time left"
        limits = [limit for limit in (self.left(), at_most) if limit]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as problems:
            try:
                code = subprocess.run([str(part) for part in command], stdout=out, stderr=problems,
                                      timeout=min(limits) if limits else None).returncode
                problems.seek(0)
                lines = [line.strip() for line in problems if line.strip()]
                reason = (lines[-1][:160] if lines else f"exit code {code}") if code else ""
            except subprocess.TimeoutExpired:
                reason = "no time left" if self.is_spent() else f"more than {at_most:.0f} s"
            out.seek(0)
            return [json.loads(line) for line in out if line.startswith("{") and line.endswith("}\n")], reason

    def answer(self, command, at_most=None):
        """What a program that prints one JSON object found, or a dictionary whose `missing` says why there is
        nothing."""
        found, reason = self.answers(command, at_most)
        return {"missing": reason} if reason else found[-1]
