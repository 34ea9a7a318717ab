"""Configuration of the lit suite: tools on the path, and what may be absent."""

import os
import shutil
import subprocess
import sys

sys.path.append(os.path.join(config.hybrid_source_root, "test"))
from processor_limit import LimitedShTest  # noqa: E402

config.name = "hybridc"
config.test_format = LimitedShTest(float(lit_config.params.get("seconds", 2)))
config.suffixes = [".mlir", ".test"]
config.excludes = ["gpu", "Inputs", "artefacts", "tools", "unit"]
config.test_source_root = os.path.join(config.hybrid_source_root, "test")
config.test_exec_root = os.path.join(config.hybrid_binary_root, "test")

# Our tools come first, then FileCheck, not and split-file of the same LLVM.
config.environment["PATH"] = os.pathsep.join(
    [
        os.path.join(config.hybrid_binary_root, "bin"),
        config.llvm_tools_dir,
        os.environ.get("PATH", ""),
    ]
)
config.substitutions.append(
    ("%specs", os.path.join(config.hybrid_source_root, "examples", "specs"))
)
config.substitutions.append(("%python", sys.executable))

# A library in the place of the NVIDIA driver.
config.substitutions.append(
    ("%fake_cuda", os.path.join(config.hybrid_binary_root, "test", "unit", "lib", "fake-cuda.so"))
)

# Tests of assembled GPU code say "REQUIRES: ptxas" and are reported as
# unsupported without the CUDA toolkit.
cuda_roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
search = [os.path.join(root, "bin") for root in cuda_roots if root]
ptxas = shutil.which("ptxas", path=os.pathsep.join([os.environ.get("PATH", "")] + search))
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))

# Mounts that no one else sees, for a machine without devices.
private = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs none /dev"]
if shutil.which("unshare") and subprocess.run(private, capture_output=True).returncode == 0:
    config.available_features.add("private-mounts")
