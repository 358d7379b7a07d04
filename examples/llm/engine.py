"""Continuous batching on a device with a fixed number of slots and a fixed time per token.

One thread runs the model. At every tick each running sequence gets one token, all of them in
one batch; new sequences join and finished ones leave between ticks, as on a GPU.
"""

import math
import queue
import random
import threading
import time

import torch

import model as models


class Full(Exception):
    """Too many sequences are waiting."""


class Sequence:
    """One generation. `tokens` yields byte values, then None at the end."""

    def __init__(self, prompt, max_tokens, temperature, top_p, seed):
        self.context = list(prompt)
        self.left = max_tokens
        self.temperature = temperature
        self.top_p = top_p
        self.random = random.Random(seed)
        self.tokens = queue.SimpleQueue()
        self.cancelled = False
        self.submitted = time.monotonic()
        self.first_token_seconds = None


class Slots:
    """Keys and values of every slot, a ring over the context; the model's state on the device."""

    def __init__(self, model, count):
        shape = model.shape
        self.model = model
        self.count = count
        size = (count, shape.heads, shape.context, shape.width // shape.heads)
        self.keys = [torch.zeros(size) for _ in range(shape.layers)]
        self.values = [torch.zeros(size) for _ in range(shape.layers)]
        self.positions = torch.zeros(count, dtype=torch.long)
        self.tokens = torch.zeros(count, dtype=torch.long)
        self._all = torch.arange(count)
        self._ring = torch.arange(shape.context)

    @torch.inference_mode()
    def fill(self, slot, tokens):
        """Puts all tokens but the last into the slot's cache; the last is the next input."""
        tokens = tokens[-self.model.shape.context:]
        before = len(tokens) - 1
        if before:
            _, caches = self.model.run(torch.tensor([tokens[:-1]]))
            for layer, (k, v) in enumerate(caches):
                self.keys[layer][slot, :, :before] = k[0]
                self.values[layer][slot, :, :before] = v[0]
        self.positions[slot] = before
        self.tokens[slot] = tokens[-1]

    @torch.inference_mode()
    def step(self):
        """Logits of the next token for every slot, used or not: [count, vocabulary]."""
        model = self.model
        cos, sin = models.rotation(model.shape, self.positions)
        cos, sin = cos[:, None, None, :], sin[:, None, None, :]
        place = self.positions % model.shape.context
        unseen = self._ring[None, :] > self.positions[:, None]
        mask = torch.zeros(unseen.shape).masked_fill(unseen, -math.inf)[:, None, None, :]
        x = model.embedding(self.tokens)[:, None, :]
        for block, keys, values in zip(model.blocks, self.keys, self.values):
            q, k, v = block.project(x, cos, sin)
            keys[self._all, :, place] = k[:, :, 0]
            values[self._all, :, place] = v[:, :, 0]
            x = block.finish(x, models.attend(q, keys, values, mask))
        return model.logits(x)[:, 0]

    @torch.inference_mode()
    def push(self, tokens):
        self.tokens = torch.tensor(tokens)
        self.positions += 1


class Engine:
    def __init__(self, model, step, slots, queue_limit, token_seconds):
        self.step = step  # of the checkpoint that is served
        self.tokens_generated = 0
        self.prompt_tokens = 0
        self.busy_seconds = 0.0
        self.reloads = 0
        self._slots = Slots(model, slots)
        self._running = [None] * slots
        self._waiting = []
        self._queue_limit = queue_limit
        self._token_seconds = token_seconds
        self._new_model = None
        self._wake = threading.Condition()
        self._slots.step()  # the first run of a kernel is slow: before the first request
        threading.Thread(target=self._run, name="engine", daemon=True).start()

    def submit(self, sequence):
        with self._wake:
            free = self._running.count(None)
            if len(self._waiting) >= free + self._queue_limit:
                raise Full()
            self._waiting.append(sequence)
            self.prompt_tokens += len(sequence.context)
            self._wake.notify()

    def swap(self, model, step):
        """Goes over to other weights between two ticks; running sequences go on with them."""
        with self._wake:
            self._new_model = (model, step)
            self._wake.notify()

    def load(self):
        """(running, waiting)"""
        with self._wake:
            return len(self._running) - self._running.count(None), len(self._waiting)

    def _run(self):
        while True:
            joined, new_model = self._next_work()
            began = time.monotonic()
            if new_model is not None:
                self._change_model(*new_model)
            for slot in joined:
                self._slots.fill(slot, self._running[slot].context)
            if any(self._running):
                chosen = choose(self._slots.step(), self._running)
                self._slots.push(chosen)
                rest = began + self._token_seconds - time.monotonic()
                if rest > 0:
                    time.sleep(rest)  # the simulated device is still computing
                self._give_out(chosen)
                self.busy_seconds += time.monotonic() - began

    def _next_work(self):
        with self._wake:
            while not (any(self._running) or self._waiting or self._new_model):
                self._wake.wait()
            self._waiting = [s for s in self._waiting if not s.cancelled]
            joined = []
            for slot, sequence in enumerate(self._running):
                if sequence is None and self._waiting:
                    self._running[slot] = self._waiting.pop(0)
                    joined.append(slot)
            new_model, self._new_model = self._new_model, None
            return joined, new_model

    def _change_model(self, model, step):
        self._slots = Slots(model, len(self._running))
        for slot, sequence in enumerate(self._running):
            if sequence is not None:
                self._slots.fill(slot, sequence.context)
        self.step = step
        self.reloads += 1

    def _give_out(self, chosen):
        now = time.monotonic()
        for slot, sequence in enumerate(self._running):
            if sequence is None:
                continue
            sequence.context.append(chosen[slot])
            sequence.left -= 1
            self.tokens_generated += 1
            if sequence.first_token_seconds is None:
                sequence.first_token_seconds = now - sequence.submitted
            sequence.tokens.put(chosen[slot])
            if sequence.left <= 0 or sequence.cancelled:
                sequence.tokens.put(None)
                with self._wake:
                    self._running[slot] = None


@torch.inference_mode()
def choose(logits, running):
    """The next token of every slot; the whole batch in a few operations."""
    hot = torch.tensor([s.temperature if s and s.temperature > 0 else 1.0 for s in running])
    chances = (logits / hot[:, None]).softmax(dim=-1)
    for slot, sequence in enumerate(running):
        if sequence and sequence.top_p < 1:
            ordered, order = chances[slot].sort(descending=True)
            beyond = ordered.cumsum(0) - ordered >= sequence.top_p
            chances[slot, order[beyond]] = 0
            chances[slot] /= chances[slot].sum()
    drawn = torch.tensor([s.random.random() if s else 0.0 for s in running])
    sampled = (chances.cumsum(-1) <= drawn[:, None]).sum(-1).clamp(max=models.VOCABULARY - 1)
    best = logits.argmax(-1)
    return [int(s if q and q.temperature > 0 else b)
            for q, s, b in zip(running, sampled.tolist(), best.tolist())]
