"""Put each fault of faults.yaml into a copy of the project, where its test must fail.

python -m tests.faults --only allocator --jobs 2
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from analysis import ROOT
from analysis.base.cli import at_least, fail_in_one_line, program
from analysis.base.errors import HotpathError
from analysis.base.reading import read_yaml

LIMIT_S = {(): 180, ("--long",): 900}
"""Seconds that a test may take, by its options."""
CAUGHT, SKIPPED = "caught", "skipped"
NO_CODE = re.compile(r"\.(h|cu|cpp)(:\d+:\d+|\(\d+\)): error|\b(Syntax|Indentation|Name)Error")
"""Output of a test whose fault does not compile, which finds nothing."""
DEFINED = re.compile(r"^def (test_\w+)\(", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """An entry of the list, whose head explains it. `options` are those of pytest."""

    area: str
    where: str
    test: str
    options: tuple[str, ...]
    says: str
    old: str
    new: str = ""

    def __str__(self) -> str:
        return f"{self.area}: {self.where}: {self.says}"

    def outcome(self, root: Path, number: int) -> str:
        """What becomes of the fault below `root`. Every number gives the file another time of
        change, so that Python compiles it again."""
        path = root / self.where
        text, status = path.read_bytes().decode(), path.stat()
        path.write_bytes(text.replace(self.old, self.new).encode())
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + number * 10**9))
        try:
            words = "-x", *self.options, self.test
            code, output = run_tests(root, *words, limit_s=LIMIT_S[self.options])
        finally:
            path.write_bytes(text.encode())
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        if code == 0:
            return "MISSED" if " passed" in output[-200:] else SKIPPED
        return "IS NO CODE" if NO_CODE.search(output) else "NO SUCH TEST" if code > 2 else CAUGHT


def read_faults() -> list[Fault]:
    """All entries of the list. HotpathError for a test that does not exist, or twice."""
    paths = [path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")]
    tests = [(name, path) for path in paths for name in DEFINED.findall((ROOT / path).read_text())]
    found: list[Fault] = []
    for area, groups in read_yaml(ROOT / "tests" / "faults.yaml").items():
        for group, faults in groups.items():
            where, _, test = group.partition(" ")  # parameters may have spaces
            options = ("--long",) * test.endswith(" --long")
            test = test.removesuffix(" --long")
            files = [path for name, path in tests if name == test.partition("[")[0]]
            if len(files) != 1:
                raise HotpathError(f"faults.yaml: {test}: expected one test, got {len(files)}")
            node = f"{files[0]}::{test}"
            found += [Fault(area, where, node, options, says, *of) for says, of in faults.items()]
    return found


def copy_project(folder: Path) -> Path:
    """Copy the files that git does not ignore, into a repository of their own."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=ROOT, text=True).rstrip("\0").split("\0"):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    author = ["-c", "user.name=faults", "-c", "user.email=faults@localhost"]
    for step in (["init", "-q"], ["add", "-A"], [*author, "commit", "-q", "-m", "A copy"]):
        subprocess.run(["git", *step], cwd=folder, check=True)
    return folder


def run_tests(root: Path, *words: str, limit_s: float | None = None) -> tuple[int, str]:
    """Exit code and output of pytest below `root`; code 1 if it takes longer than `limit_s`."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with subprocess.Popen(
        command,
        cwd=root,
        env=os.environ | {"PATH": path, "PYTHONPATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as started:
        try:
            output = started.communicate(timeout=limit_s)[0]
            return started.returncode, output
        except subprocess.TimeoutExpired:
            return 1, f"no end within {limit_s} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)


def main() -> None:
    parser = program("tests.faults", __doc__)
    parser.add_argument("--only", default="", help="faults whose area, file or words contain this")
    parser.add_argument("--jobs", type=at_least(1), default=1, help="number of copies to use")
    given = parser.parse_args()
    faults = [fault for fault in read_faults() if given.only in str(fault)]
    copies: SimpleQueue[Path] = SimpleQueue()

    def run(number: int) -> str:
        copy = copies.get()
        found = faults[number].outcome(copy, number + 1)
        copies.put(copy)
        print(f"{found}: {faults[number]}", flush=True)
        return found

    with TemporaryDirectory(prefix="faults-") as folder:
        roots = [copy_project(Path(folder, f"{one}", ROOT.name)) for one in range(given.jobs)]
        workers = ["-n", f"{given.jobs}", "--dist", "loadfile"] * (given.jobs > 1)
        for options in LIMIT_S:
            tests = dict.fromkeys(one.test for one in faults if one.options == options)
            code, output = run_tests(roots[0], *workers, *options, *tests) if tests else (0, "")
            if code:
                raise HotpathError(f"tests of the list fail without a fault:\n{output[-5000:]}")
        for root in roots:
            copies.put(root)
        with ThreadPoolExecutor(given.jobs) as pool:
            counts = Counter(pool.map(run, range(len(faults))))
    print(f"{len(faults)} faults: " + ", ".join(f"{counts[found]} {found}" for found in counts))
    sys.exit(counts[CAUGHT] + counts[SKIPPED] < len(faults))


if __name__ == "__main__":
    fail_in_one_line(main)
