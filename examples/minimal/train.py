#!/usr/bin/python3
"""The contract in ten lines: a sum that can be interrupted and resumed. No torch needed."""
import json
import time

import neap_task  # pip install ./sdk/python, or PYTHONPATH=sdk/python

state = {"sum": 0, "step": 0}


def save(path, step):
    with open(path, "w") as file:
        json.dump(dict(state, step=step), file)


with neap_task.Task(save=save, interval_seconds=60) as task:
    if task.restore_path():
        with open(task.restore_path()) as file:
            state = json.load(file)
    for step in task.steps(state["step"], 300):
        state["sum"] += step
        time.sleep(0.01)
print("sum", state["sum"])
