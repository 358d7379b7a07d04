#!/usr/bin/python3
"""Turns a checkpoint of train.py into a GGUF file, which llama.cpp and what is built on it serve.

  ./export_gguf.py --checkpoints out --to model.gguf      the newest whole checkpoint
  ./export_gguf.py --checkpoint out/checkpoint-300.pt --to model.gguf

The model is a Llama, so its architecture is "llama" in GGUF; weights stay 32-bit floats. Three
things differ between the two:
- llama.cpp turns neighbouring pairs of a head's values by one angle, this example pairs each value
  of the first half with one of the second: rows of the query and key weights are reordered.
- One matrix here holds queries, keys and values, and one both halves of the hidden layer; there
  each is a tensor of its own.
- A token here is a byte. That is byte-level BPE without a single merge.
The file is written beside the target and renamed, so that no server sees half of one.
"""

import argparse
import os
import struct
import sys

import torch

import model as models
import state as states

import neap_task  # noqa: E402  (after state, which finds it)

MAGIC = b"GGUF"
VERSION = 3
ALIGNMENT = 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # types of values in GGUF
F32 = 0  # type of a tensor
NORMAL, CONTROL = 1, 3  # types of tokens
END = 0  # the byte that no text holds stands for its end
ROPE_BASE = 10000.0
EPSILON = 1e-5


def byte_letters():
    """The letter that stands for each byte in byte-level BPE: itself where it can be printed."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters, beyond = [], 0
    for byte in range(256):
        if byte in printable:
            letters.append(chr(byte))
        else:
            letters.append(chr(256 + beyond))
            beyond += 1
    return letters


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, content):
    if kind == STRING:
        return string(content)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}[kind], content)


def entry(key, kind, content):
    return string(key) + struct.pack("<I", kind) + value(kind, content)


def array(key, kind, contents):
    return (string(key) + struct.pack("<IIQ", ARRAY, kind, len(contents))
            + b"".join(value(kind, content) for content in contents))


def metadata(shape, name):
    head = shape.width // shape.heads
    kinds = [CONTROL if token == END else NORMAL for token in range(models.VOCABULARY)]
    return [
        entry("general.architecture", STRING, "llama"),
        entry("general.name", STRING, name),
        entry("general.file_type", UINT32, F32),
        entry("llama.vocab_size", UINT32, models.VOCABULARY),
        entry("llama.context_length", UINT32, shape.context),
        entry("llama.embedding_length", UINT32, shape.width),
        entry("llama.block_count", UINT32, shape.layers),
        entry("llama.feed_forward_length", UINT32, shape.hidden),
        entry("llama.attention.head_count", UINT32, shape.heads),
        entry("llama.attention.head_count_kv", UINT32, shape.heads),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, EPSILON),
        entry("llama.rope.dimension_count", UINT32, head),
        entry("llama.rope.freq_base", FLOAT32, ROPE_BASE),
        entry("tokenizer.ggml.model", STRING, "gpt2"),
        entry("tokenizer.ggml.pre", STRING, "gpt-2"),
        array("tokenizer.ggml.tokens", STRING, byte_letters()),
        array("tokenizer.ggml.token_type", INT32, kinds),
        array("tokenizer.ggml.merges", STRING, []),
        entry("tokenizer.ggml.bos_token_id", UINT32, END),
        entry("tokenizer.ggml.eos_token_id", UINT32, END),
        entry("tokenizer.ggml.add_bos_token", BOOL, False),
        entry("tokenizer.ggml.add_eos_token", BOOL, False),
    ]


def paired(rows, heads):
    """[width, width] with the rows of each head as llama.cpp turns them: 0, h/2, 1, h/2 + 1, ..."""
    width = rows.shape[0]
    halves = rows.reshape(heads, 2, width // heads // 2, rows.shape[1])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def tensors(weights, shape):
    """(name, tensor) in the order of the file; weights as in a checkpoint."""
    yield "token_embd.weight", weights["embedding.weight"]
    for layer in range(shape.layers):
        of = "blocks.%d." % layer
        to = "blk.%d." % layer
        q, k, v = weights[of + "qkv.weight"].chunk(3)
        gate, up = weights[of + "gate_up.weight"].chunk(2)
        yield to + "attn_norm.weight", weights[of + "norm_attention"]
        yield to + "attn_q.weight", paired(q, shape.heads)
        yield to + "attn_k.weight", paired(k, shape.heads)
        yield to + "attn_v.weight", v
        yield to + "attn_output.weight", weights[of + "out.weight"]
        yield to + "ffn_norm.weight", weights[of + "norm_hidden"]
        yield to + "ffn_gate.weight", gate
        yield to + "ffn_up.weight", up
        yield to + "ffn_down.weight", weights[of + "down.weight"]
    yield "output_norm.weight", weights["norm"]  # the embedding is the output matrix too


def padding(size):
    return b"\0" * (-size % ALIGNMENT)


def write(path, weights, shape, name):
    """The whole file, or none. Its size."""
    listed = [(n, t.contiguous().to(torch.float32)) for n, t in tensors(weights, shape)]
    entries = metadata(shape, name)
    head = [MAGIC, struct.pack("<IQQ", VERSION, len(listed), len(entries)), *entries]
    offset = 0
    for tensor_name, tensor in listed:
        sizes = list(reversed(tensor.shape))  # the fastest dimension first
        head.append(string(tensor_name) + struct.pack("<I", len(sizes))
                    + struct.pack("<%dQ" % len(sizes), *sizes) + struct.pack("<IQ", F32, offset))
        offset += tensor.numel() * 4
        offset += -offset % ALIGNMENT
    head = b"".join(head)
    beside = "%s.%d" % (path, os.getpid())
    try:
        with open(beside, "wb") as file:
            file.write(head + padding(len(head)))
            for _, tensor in listed:
                data = tensor.numpy().tobytes()
                file.write(data + padding(len(data)))
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
    return os.path.getsize(path)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--checkpoints", metavar="DIR", help="the newest whole one of these")
    source.add_argument("--checkpoint", metavar="FILE")
    source.add_argument("--fresh", choices=list(models.SHAPES),
                        help="a seeded model that nobody has trained, as serve.py has")
    parser.add_argument("--seed", type=int, default=1, help="of --fresh")
    parser.add_argument("--to", required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    if options.fresh:
        torch.manual_seed(options.seed)
        fresh = models.Model(models.SHAPES[options.fresh])
        shape, weights, step = fresh.shape, fresh.state_dict(), 0
    else:
        path = options.checkpoint
        if path is None:
            found = neap_task.newest_valid(options.checkpoints, states.PREFIX, states.is_whole)
            if found is None:
                print("%s: there is no whole checkpoint" % options.checkpoints, file=sys.stderr)
                return 2
            path = found.path
        try:
            state = states.load(path)
        except Exception as error:  # torch raises what it likes for a file that is none
            print("%s: %s" % (path, error), file=sys.stderr)
            return 2
        shape, weights, step = models.Shape.from_dict(state["shape"]), state["model"], state["step"]
    size = write(options.to, weights, shape, "neap-llm step %d" % step)
    print("%s: step %d, %d bytes" % (options.to, step, size), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
