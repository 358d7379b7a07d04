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


class Asleep(Exception):
    """It sleeps, and answers after wake()."""


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
        self.started = False  # it had a slot before
        self.parked = None  # its keys and values, while they are on the host


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

    def bytes(self):
        return sum(t.numel() * t.element_size() for t in (*self.keys, *self.values))

    @torch.inference_mode()
    def resized(self, keep, count):
        """As many slots, the first of which are those that are kept, bit for bit."""
        other = Slots(self.model, count)
        for layer in range(len(self.keys)):
            other.keys[layer][:len(keep)] = self.keys[layer][keep]
            other.values[layer][:len(keep)] = self.values[layer][keep]
        other.positions[:len(keep)] = self.positions[keep]
        other.tokens[:len(keep)] = self.tokens[keep]
        return other

    @torch.inference_mode()
    def park(self, slot):
        """A copy of what the slot holds, to go on from with unpark()."""
        return ([k[slot].clone() for k in self.keys], [v[slot].clone() for v in self.values],
                int(self.positions[slot]), int(self.tokens[slot]))

    @torch.inference_mode()
    def unpark(self, slot, parked):
        keys, values, self.positions[slot], self.tokens[slot] = parked
        for layer, (k, v) in enumerate(zip(keys, values)):
            self.keys[layer][slot] = k
            self.values[layer][slot] = v

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


class Busy(Exception):
    """Requests run, or wait."""


class Engine:
    """What is said to it while it runs is done between two ticks, by its own thread."""

    def __init__(self, model, step, slots, queue_limit, token_seconds):
        self.step = step  # of the checkpoint that is served
        self.tokens_generated = 0
        self.prompt_tokens = 0
        self.busy_seconds = 0.0
        self.reloads = 0
        self.most_slots = slots
        self.sleeping = 0  # the level
        self._model = model
        self._slots = Slots(model, slots)
        self._running = [None] * slots
        self._waiting = []
        self._orders = []
        self._queue_limit = queue_limit
        self._token_seconds = token_seconds
        self._wake = threading.Condition()
        self._slots.step()  # the first run of a kernel is slow: before the first request
        threading.Thread(target=self._run, name="engine", daemon=True).start()

    def submit(self, sequence):
        with self._wake:
            if self.sleeping:
                raise Asleep()
            free = self._running.count(None)
            if len(self._waiting) >= free + self._queue_limit:
                raise Full()
            self._waiting.append(sequence)
            self.prompt_tokens += len(sequence.context)
            self._wake.notify()

    def swap(self, model, step):
        """Goes over to other weights between two ticks; running sequences go on with them."""
        self._order(lambda: self._change_model(model, step))

    def shrink(self, slots):
        """Gives back slots that nobody uses, down to so many. The new number."""
        return self._order(lambda: self._resize(max(slots, self.load()[0])))

    def offload(self, slots):
        """Down to so many: who has to leave waits, its keys and values on the host."""
        def act():
            for slot in self._used()[slots:]:
                self._leave(slot, self._slots.park(slot))
            return self._resize(slots)
        return self._order(act)

    def drop(self, slots):
        """Down to so many: who leaves, or has left, is computed again when it comes back."""
        def act():
            for slot in self._used()[slots:]:
                self._leave(slot, None)
            for sequence in self._waiting:
                sequence.parked = None
            return self._resize(slots)
        return self._order(act)

    def grow(self, slots):
        return self._order(lambda: self._resize(max(min(slots, self.most_slots),
                                                    len(self._running))))

    def sleep(self, level):
        """1: keys and values go, weights stay on the host. 2: the weights go too."""
        def act():
            with self._wake:
                if any(self._running) or self._waiting:
                    raise Busy()
                self.sleeping = max(self.sleeping, level)
            self._slots = None
            if self.sleeping == 2:
                self._model = None
        self._order(act)

    def wake(self, load):
        """load(): (model, step), for when the weights have gone."""
        def act():
            if not self.sleeping:
                return
            if self._model is None:
                self._model, self.step = load()
            self._slots = Slots(self._model, len(self._running))
            with self._wake:
                self.sleeping = 0
        self._order(act)

    def memory(self):
        """Bytes (on the device, on the host)."""
        with self._wake:
            slots, model = self._slots, self._model
            parked = [s.parked for s in self._waiting if s.parked]
        weights = 0 if model is None else sum(p.numel() * p.element_size()
                                              for p in model.parameters())
        host = sum(t.numel() * t.element_size() for p in parked for t in (*p[0], *p[1]))
        return (0, host + weights) if slots is None else (weights + slots.bytes(), host)

    def _order(self, act):
        """Has it done by the engine's thread; what it returns, or raises."""
        done, result = threading.Event(), []

        def run():
            try:
                result.append((act(), None))
            except Exception as error:
                result.append((None, error))
            done.set()
        with self._wake:
            self._orders.append(run)
            self._wake.notify()
        done.wait()
        value, error = result[0]
        if error is not None:
            raise error
        return value

    def _used(self):
        return [slot for slot, sequence in enumerate(self._running) if sequence is not None]

    def _leave(self, slot, parked):
        with self._wake:
            sequence, self._running[slot] = self._running[slot], None
            sequence.parked = parked
            sequence.started = True
            place = sum(1 for s in self._waiting if s.started)
            self._waiting.insert(place, sequence)  # before those who have not begun

    def _resize(self, count):
        keep = self._used()
        if count != len(self._running):
            if self._slots is not None:
                self._slots = self._slots.resized(keep, count)
            with self._wake:
                kept = [self._running[slot] for slot in keep]
                self._running = kept + [None] * (count - len(kept))
        return count

    def load(self):
        """(running, waiting)"""
        with self._wake:
            return len(self._running) - self._running.count(None), len(self._waiting)

    def _run(self):
        while True:
            orders, joined = self._next_work()
            began = time.monotonic()
            for order in orders:
                order()
            for slot in joined:
                self._join(slot, self._running[slot])
            if any(self._running):
                chosen = choose(self._slots.step(), self._running)
                self._slots.push(chosen)
                rest = began + self._token_seconds - time.monotonic()
                if rest > 0:
                    time.sleep(rest)  # the simulated device is still computing
                self._give_out(chosen)
                self.busy_seconds += time.monotonic() - began

    def _next_work(self):
        """Orders, else the slots that sequences have joined."""
        with self._wake:
            while not (self._orders or any(self._running)
                       or (self._waiting and self._running and not self.sleeping)):
                self._wake.wait()
            if self._orders:
                orders, self._orders = self._orders, []
                return orders, []
            self._waiting = [s for s in self._waiting if not s.cancelled]
            joined = []
            for slot, sequence in enumerate(self._running):
                if sequence is None and self._waiting:
                    self._running[slot] = self._waiting.pop(0)
                    joined.append(slot)
            return [], joined

    def _join(self, slot, sequence):
        if sequence.parked is not None:
            self._slots.unpark(slot, sequence.parked)
            sequence.parked = None
        else:
            self._slots.fill(slot, sequence.context)

    def _change_model(self, model, step):
        self._model = model
        if not self.sleeping:
            self._slots = Slots(model, len(self._running))
        elif self.sleeping == 2:
            self._model = None  # wake() loads what is newest then
        for slot, sequence in enumerate(self._running):
            if sequence is not None:
                self._slots.fill(slot, sequence.context)
        for sequence in self._waiting:
            sequence.parked = None  # of the weights before
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
