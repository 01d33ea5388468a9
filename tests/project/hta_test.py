"""Opens a simulated trace in Holistic Trace Analysis and holds its numbers against ours.

Usage: hta_test.py PROGRAM SCENARIO...   Exit code 77: HolisticTraceAnalysis is not installed (the test is skipped).
"""
import json
import logging
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
try:
    from hta.trace_analysis import TraceAnalysis
except ImportError:
    print("skipped: HolisticTraceAnalysis is not installed; scripts/install_dependencies --python does it")
    sys.exit(77)

TOLERANCE = 0.01


def close(name, theirs, ours, whole):
    print(f"  {name}: HTA {theirs:.1f} us, Foretrain {ours:.1f} us")
    if abs(theirs - ours) > TOLERANCE * whole:
        sys.exit(f"{name} differs by more than 1 % of the step")


def check(program, scenario):
    print(scenario)
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "trace", scenario, "--hta", folder, "--ops", "--json", "-"]
        report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        analysis = TraceAnalysis(trace_dir=folder)
        times = analysis.get_temporal_breakdown(visualize=False)
        overlap = analysis.get_comm_comp_overlap(visualize=False)
    step = report["step_time_ms"]["value"] * 1e3
    ranks = {entry["rank"]: entry for entry in report["ranks"]}
    assert sorted(times["rank"]) == sorted(ranks), "ranks differ"
    for _, row in times.iterrows():
        ours = ranks[row["rank"]]
        computing, communicating, both = (1e3 * ours[k] for k in ("computing_ms", "communicating_ms", "both_ms"))
        if row["rank"] in (0, max(ranks)):
            close(f"rank {row['rank']} computing", row["compute_time(us)"], computing, step)
            close(f"rank {row['rank']} only communicating", row["non_compute_time(us)"], communicating - both, step)
    for _, row in overlap.iterrows():
        ours = ranks[row["rank"]]
        if ours["communicating_ms"] > 0:
            share = 100 * ours["both_ms"] / ours["communicating_ms"]
            if abs(row["comp_comm_overlap_pctg"] - share) > 1:
                sys.exit(f"rank {row['rank']}: overlap {row['comp_comm_overlap_pctg']} %, ours {share:.2f} %")


for path in sys.argv[2:]:
    check(sys.argv[1], path)
print("HTA agrees")
