#!/usr/bin/python3
"""Trains a small language model, and can be stopped and resumed bit for bit.

Four ways to live with a pool, by --contract:
  sdk      neap_task: steps, checkpoints and yields over the pool's socket; SIGTERM yields too
  signals  no SDK: SIGTERM means checkpoint and exit with code 75
  watch    no code at all for the pool: files checkpoint-* appear, the pool watches for them
  none     no checkpoints; what an interrupted run has done is lost
"""

import argparse
import dataclasses
import json
import os
import signal
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before torch is loaded; one thread, one order of sums

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

import corpus  # noqa: E402
import model as models  # noqa: E402
import state as states  # noqa: E402
import neap_task  # noqa: E402

EXIT_YIELDED = 75


class Trainer:
    """Everything that a step reads or changes, and therefore everything that is saved."""

    def __init__(self, options):
        torch.manual_seed(options.seed)
        self.options = options
        self.shape = models.SHAPES[options.size]
        self.model = models.Model(self.shape, dropout=options.dropout)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.rate,
                                           betas=(0.9, 0.95), weight_decay=0.1)
        self.batches = corpus.Batches(corpus.read_texts(options.texts), self.shape.context,
                                      options.batch, options.seed)
        self.done = 0  # completed steps
        os.makedirs(options.dir, exist_ok=True)
        self.log_path = os.path.join(options.dir, "losses.log")
        self.log = None

    def step(self):
        inputs, targets = self.batches.next()
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.rate * min(1.0, (self.done + 1) / 20)
        logits = self.model(inputs)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.done += 1
        self.log.write("%d %s %.4f\n" % (self.done, loss.item().hex(), loss.item()))
        if self.done % self.options.report_every == 0:
            print("step %d loss %.4f" % (self.done, loss.item()), flush=True)
        if self.options.step_sleep:
            time.sleep(self.options.step_sleep)

    def save(self, path, _step=None):
        self.log.flush()
        os.fsync(self.log.fileno())  # the log reaches at least as far as the checkpoint
        torch.save({
            "format": states.FORMAT, "step": self.done,
            "shape": dataclasses.asdict(self.shape),
            "model": dict(self.model.state_dict()),
            "optimizer": self.optimizer.state_dict()["state"],  # the rest is options
            "random": torch.get_rng_state(),
            "data": self.batches.state(),
            "text": self.batches.text_hash,
        }, path)

    def restore(self, path):
        state = states.load(path)
        if models.Shape.from_dict(state["shape"]) != self.shape:
            raise SystemExit("error: %s is of another --size" % path)
        if state["text"] != self.batches.text_hash:
            print("warning: the training text is not the one %s was made with; the run goes on "
                  "but is not the one it would have been" % path, file=sys.stderr)
        self.model.load_state_dict(state["model"])
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state["optimizer"], "param_groups": groups})
        torch.set_rng_state(state["random"])
        self.batches.restore(state["data"])
        self.done = state["step"]
        print("resumed from %s at step %d" % (path, self.done), flush=True)

    def open_log(self):
        """Losses of steps after the checkpoint are cut off: these steps will be made again."""
        kept = []
        if self.done and os.path.exists(self.log_path):
            with open(self.log_path) as file:
                kept = [line for line in file
                        if line.endswith("\n") and int(line.split()[0]) <= self.done]
        with open(self.log_path + ".tmp", "w") as file:
            file.writelines(kept)
        os.replace(self.log_path + ".tmp", self.log_path)
        self.log = open(self.log_path, "a", buffering=1)

    def finish(self):
        self.log.close()
        result = {"steps": self.done, "weights": models.weights_hash(self.model)}
        with open(os.path.join(self.options.dir, "final.json"), "w") as file:
            json.dump(result, file)
        print("finished step %d weights %s" % (self.done, result["weights"]), flush=True)


def train_with_sdk(trainer, options):
    with neap_task.Task(save=trainer.save, interval_steps=options.checkpoint_every,
                        interval_seconds=options.checkpoint_seconds, keep=options.keep,
                        directory=options.dir, suffix=states.SUFFIX) as task:
        path = task.restore_path(states.is_whole)
        if path:
            trainer.restore(path)
        trainer.open_log()
        for _ in task.steps(trainer.done, options.steps):
            trainer.step()


def train_with_signals(trainer, options):
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    interval = Interval(options)
    resume(trainer, options)
    while trainer.done < options.steps:
        trainer.step()
        if asked or interval.over(trainer.done):
            save_plainly(trainer, options, durable=True)
        if asked and trainer.done < options.steps:
            sys.exit(EXIT_YIELDED)
    save_plainly(trainer, options, durable=True)


def train_watched(trainer, options):
    """Like training code that has never heard of a pool."""
    interval = Interval(options)
    resume(trainer, options)
    while trainer.done < options.steps:
        trainer.step()
        if interval.over(trainer.done):
            save_plainly(trainer, options, durable=False)
    save_plainly(trainer, options, durable=False)


def train_without(trainer, options):
    trainer.open_log()
    while trainer.done < options.steps:
        trainer.step()


CONTRACTS = {"sdk": train_with_sdk, "signals": train_with_signals, "watch": train_watched,
             "none": train_without}


class Interval:
    """When the next checkpoint is due, for the loops that do it themselves."""

    def __init__(self, options):
        self._steps = options.checkpoint_every
        self._seconds = options.checkpoint_seconds
        self._began = time.monotonic()

    def over(self, done):
        by_steps = self._steps is not None and done % self._steps == 0
        by_time = (self._seconds is not None
                   and time.monotonic() - self._began >= self._seconds)
        if by_steps or by_time:
            self._began = time.monotonic()
        return by_steps or by_time


def checkpoint_dir(options):
    if options.contract == "watch":
        return options.dir  # it knows nothing of a pool
    return os.environ.get("NEAP_CHECKPOINT_DIR") or options.dir


def checkpoint_files(options):
    directory = checkpoint_dir(options)
    if not os.path.isdir(directory):
        return []
    return sorted((os.path.join(directory, name) for name in os.listdir(directory)
                   if name.startswith(states.PREFIX) and name.endswith(states.SUFFIX)),
                  reverse=True)


def resume(trainer, options):
    """From the newest checkpoint that is whole; from the start if there is none."""
    named = os.environ.get("NEAP_RESTORE_FROM") if options.contract != "watch" else None
    for path in checkpoint_files(options) + ([named] if named else []):
        if states.is_whole(path):
            trainer.restore(path)
            break
        print("skipped %s, which is torn" % path, file=sys.stderr)
    trainer.open_log()


def save_plainly(trainer, options, durable):
    directory = checkpoint_dir(options)
    os.makedirs(directory, exist_ok=True)
    name = "%s%08d%s" % (states.PREFIX, trainer.done, states.SUFFIX)
    aside = os.path.join(directory, "." + name + ".tmp")
    trainer.save(aside)
    if durable:  # in the watched case the pool does this when it counts the file as a boundary
        sync(aside, os.O_RDONLY)
    os.replace(aside, os.path.join(directory, name))
    if durable:
        sync(directory, os.O_RDONLY | os.O_DIRECTORY)
    for old in checkpoint_files(options)[options.keep:]:
        os.unlink(old)


def sync(path, flags):
    descriptor = os.open(path, flags)
    os.fsync(descriptor)
    os.close(descriptor)


def read_options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default="out", help="losses.log, final.json, and checkpoints "
                        "where NEAP_CHECKPOINT_DIR is not set (default: out)")
    parser.add_argument("--contract", choices=sorted(CONTRACTS), default="sdk")
    parser.add_argument("--steps", type=positive(int), default=300)
    parser.add_argument("--checkpoint-every", type=positive(int), metavar="STEPS")
    parser.add_argument("--checkpoint-seconds", type=positive(float), metavar="SECONDS",
                        help="default: 600, where --checkpoint-every is not given")
    parser.add_argument("--keep", type=positive(int), default=3, help="checkpoints that stay")
    parser.add_argument("--size", choices=list(models.SHAPES), default="small")
    parser.add_argument("--batch", type=positive(int), default=8)
    parser.add_argument("--rate", type=positive(float), default=3e-3)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", default=corpus.DEFAULT_TEXTS, help="directory of text files")
    parser.add_argument("--step-sleep", type=float, default=0.0, metavar="SECONDS",
                        help="simulated device time of each step, on top of the real computation")
    parser.add_argument("--report-every", type=positive(int), default=20, metavar="STEPS")
    options = parser.parse_args(arguments)
    if options.checkpoint_every is None and options.checkpoint_seconds is None:
        options.checkpoint_seconds = 600.0
    return options


def positive(kind):
    def convert(text):
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError("must be above 0")
        return value
    return convert


def main(arguments=None):
    options = read_options(arguments)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    trainer = Trainer(options)
    CONTRACTS[options.contract](trainer, options)
    trainer.finish()


if __name__ == "__main__":
    main()
