"""How the peer's Triton kernels tune themselves when time on a card is scarce.

FLA's kernels try dozens of configurations each, which Triton compiles one after
the other and times for 125 ms: two minutes for one model. Here the configurations
of a kernel are compiled side by side, and timed for 25 ms. What is chosen from,
and by what, stays the same.
"""

import concurrent.futures
import os

import triton.testing
from triton.runtime.autotuner import Autotuner


def compile_together(threads):
    """The configurations of a kernel are compiled on `threads` threads before the first of them is timed."""
    try:
        from triton.runtime._async_compile import AsyncCompileMode
    except ImportError:  # an older Triton compiles them one after the other
        return
    pool, prune = concurrent.futures.ThreadPoolExecutor(threads), Autotuner.prune_configs

    def prune_and_compile(self, kwargs):
        configs = prune(self, kwargs)
        arguments = {**kwargs, "warmup": True}
        with AsyncCompileMode(pool, ignore_errors=True):
            for config in configs:
                self.fn.run(*self.nargs.values(), **{**arguments, **config.all_kwargs()})
        return configs

    Autotuner.prune_configs = prune_and_compile


def tune_quickly(threads):
    """Compiles side by side and times for 25 ms a configuration."""
    compile_together(threads)
    Autotuner.do_bench = property(lambda self: lambda call, quantiles: triton.testing.do_bench(
        call, warmup=5, rep=25, quantiles=quantiles))


def compile_only(threads, part=0, parts=0):
    """Of every kernel the configurations part, part + parts, ... are compiled and launched once, for Triton's cache on
    disk; without `parts` the first few. Nothing is chosen: other programs share the card. To be called before FLA is
    imported."""
    os.environ["FLA_CACHE_RESULTS"] = "0"
    prune = Autotuner.prune_configs

    def prune_to_part(self, kwargs):
        configs = prune(self, kwargs)
        return (configs[part::parts] if parts else configs[:3]) or configs[:1]

    Autotuner.prune_configs = prune_to_part
    compile_together(threads)

    def launch(call, quantiles):
        call()
        return [0.0] * len(quantiles)

    Autotuner.do_bench = property(lambda self: launch)
