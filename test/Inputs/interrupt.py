"""Interrupts a command that works, and prints how it ended.

    interrupt.py SIGNAL FILE COMMAND...

The signal (INT, TERM) is sent once FILE is there and not empty; where FILE is `-`,
once the command has written a byte. Prints the exit code as a shell would see it,
then the last line that the command wrote.
"""

import os
import signal
import subprocess
import sys
import time


def has_begun(path, output):
    path = output if path == "-" else path
    return os.path.exists(path) and os.path.getsize(path) > 0


def main():
    name, path, *command = sys.argv[1:]
    output = f"interrupt-output-{os.getpid()}"
    with open(output, "wb") as sink:
        # A shell's background job would have the signal ignored.
        child = subprocess.Popen(
            command,
            stdout=sink,
            stderr=sink,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    while child.poll() is None and not has_begun(path, output):
        time.sleep(0.01)
    if child.poll() is not None:
        sys.exit(f"ended with {child.returncode} before it could be interrupted")
    child.send_signal(getattr(signal, f"SIG{name}"))
    code = child.wait(timeout=60)
    print("exit code", code if code >= 0 else 128 - code)
    with open(output, "rb") as written:
        lines = written.read().decode(errors="replace").splitlines()
    os.remove(output)
    print(lines[-1] if lines else "nothing")


main()
