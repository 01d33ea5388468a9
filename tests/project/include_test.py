"""Layers and headers: includes point down only, and every header compiles alone.

Usage: include_test.py SOURCE_DIR COMPILER [compiler options...]
"""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

TOP = ["model", "sim", "runtime", "calibrate", "viz", "cli"]
MODEL = ["base", "json", "hardware", "arch", "plan", "ops", "program", "scenario"]
# Folders of model/ that stand beside the chain, and what they may include besides themselves.
BESIDE = {"timeline": {"base", "hardware", "json"}}
NEVER = {("runtime", "sim"), ("runtime", "calibrate"), ("calibrate", "runtime")}


def sources(root):
    for top in TOP:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in files:
                if name.endswith((".h", ".cpp")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def direction_errors(root):
    errors = []
    for path in sources(root):
        parts = path.split(os.sep)
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                match = re.match(r'#include "([^"]+)"', line)
                if not match:
                    continue
                target = match.group(1).split("/")
                if target[0] not in TOP or len(target) < 2:
                    errors.append(f"{path}:{number}: {match.group(1)} is not a path from the root")
                elif TOP.index(target[0]) > TOP.index(parts[0]) or (parts[0], target[0]) in NEVER:
                    errors.append(f"{path}:{number}: {parts[0]} includes {target[0]}")
                elif parts[0] == "model" and target[0] == "model" and parts[1] != target[1]:
                    mine, theirs = parts[1], target[1]
                    if mine in BESIDE:
                        allowed = theirs in BESIDE[mine]
                    elif theirs in BESIDE:
                        allowed = mine == "scenario"
                    else:
                        allowed = MODEL.index(theirs) < MODEL.index(mine)
                    # The op list names the mesh dimensions and collectives only.
                    if not allowed:
                        errors.append(f"{path}:{number}: model/{mine} includes model/{theirs}")
    return errors


def header_errors(root, compiler):
    headers = sorted(p for p in sources(root) if p.endswith(".h"))

    def compile_alone(header):
        text = f'#include "{header}"\n#include "{header}"\n'
        run = subprocess.run(compiler + ["-std=c++20", "-fsyntax-only", f"-I{root}", "-x", "c++", "-"],
                             input=text, capture_output=True, text=True)
        return f"{header} does not compile alone:\n{run.stderr}" if run.returncode else None

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        return [e for e in pool.map(compile_alone, headers) if e]


root, compiler = sys.argv[1], sys.argv[2:]
found = direction_errors(root) + header_errors(root, compiler)
print("\n".join(found) if found else "all includes point down, every header compiles alone")
sys.exit(1 if found else 0)
