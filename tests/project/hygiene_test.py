"""House rules of the tree: short files, no paths of one machine, formatted sources, READMEs where they are due.

Usage: hygiene_test.py SOURCE_DIR
"""
import os
import re
import shutil
import subprocess
import sys

ROOT = sys.argv[1]
TOP = ["model", "sim", "runtime", "calibrate", "viz", "cli", "scenarios", "tests", "docs", "cmake", "scripts"]
MOST_LINES = 900
# Split so that this file does not find itself.
PATHS = re.compile("|".join(["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/[a-z]", "/tm" + "p/"]))


def tracked():
    if shutil.which("git"):
        run = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True)
        if run.returncode == 0 and run.stdout:
            return run.stdout.split("\n")[:-1]
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        found += [os.path.relpath(os.path.join(folder, n), ROOT) for n in names]
    return found


errors = []
files = tracked()
for path in files:
    full = os.path.join(ROOT, path)
    if not os.path.isfile(full):
        continue
    try:
        with open(full, encoding="utf-8") as file:
            lines = file.read().split("\n")
    except UnicodeDecodeError:
        continue
    if path.endswith((".h", ".cpp", ".py")) and len(lines) > MOST_LINES:
        errors.append(f"{path}: {len(lines)} lines, at most {MOST_LINES}")
    for number, line in enumerate(lines, 1):
        if PATHS.search(line):
            errors.append(f"{path}:{number}: a path of one machine: {line.strip()[:80]}")
for folder in TOP:
    if not os.path.isfile(os.path.join(ROOT, folder, "README.md")):
        errors.append(f"{folder}/README.md is missing")
formatter = shutil.which("clang-format-14") or shutil.which("clang-format")
if formatter:
    sources = [os.path.join(ROOT, p) for p in files if p.endswith((".h", ".cpp")) and os.path.isfile(os.path.join(ROOT, p))]
    run = subprocess.run([formatter, "--dry-run", "-Werror"] + sources, capture_output=True, text=True)
    if run.returncode:
        bad = sorted({m.group(1) for m in re.finditer(r"^(\S+?):\d+:\d+: error", run.stderr, re.M)})
        errors += [f"{os.path.relpath(b, ROOT)}: not formatted (run clang-format -i)" for b in bad]
print("\n".join(errors) if errors else "the tree keeps the house rules")
sys.exit(1 if errors else 0)
