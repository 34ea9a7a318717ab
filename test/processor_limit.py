"""A lit test format that holds every test to a limit of processor time.

A module of its own because lit hands its test format to worker processes.
"""

import resource

import lit.formats
import lit.Test


def processor_seconds():
    """What the finished children of this process took."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class LimitedShTest(lit.formats.ShTest):
    """Fails a test that passes but takes too long. Waiting for a busy machine does
    not count. A worker runs one test at a time, so what its children took meanwhile
    is what the test took."""

    def __init__(self, limit):
        super().__init__(execute_external=False)
        self.limit = limit

    def execute(self, test, litConfig):
        before = processor_seconds()
        result = super().execute(test, litConfig)
        taken = processor_seconds() - before
        if taken > self.limit and result.code == lit.Test.PASS:
            result.code = lit.Test.FAIL
            result.output += (
                f"error: took {taken:.1f} s of processor time, more than "
                f"{self.limit:g} s; give the test smaller shapes or split it\n"
            )
        return result
