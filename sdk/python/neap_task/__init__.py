"""The task contract of neap for Python: how a training job and the pool agree on safe points.

    with neap_task.Task(save=save, interval_seconds=600) as task:
        for step in task.steps(start, total):
            train(step)

Standard library only. Without a pool (no NEAP_SOCKET) the same loop runs and nothing is sent.
"""

from .checkpoints import (Checkpoint, is_valid, newest_valid, prune, restore_path, step_of,
                          write_checkpoint)
from .task import EXIT_YIELDED, Due, Task, Yielded
from .wire import LINE_LIMIT, PROTOCOL_VERSION

__version__ = "0.1.0"

__all__ = [
    "Checkpoint", "Due", "EXIT_YIELDED", "LINE_LIMIT", "PROTOCOL_VERSION", "Task", "Yielded",
    "is_valid", "newest_valid", "prune", "restore_path", "step_of", "write_checkpoint",
]
