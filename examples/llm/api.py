"""The OpenAI-style request and response bodies: checked on the way in, built on the way out."""

import codecs
import time
import uuid

MODEL_NAME = "neap-llm"
MAX_TOKENS_LIMIT = 4096
STOPS_LIMIT = 4


class BadRequest(Exception):
    def __init__(self, field, expected):
        super().__init__("%s: expected %s" % (field, expected))
        self.field = field


class Query:
    """A checked request. prompt is bytes."""

    def __init__(self, body, chat):
        if not isinstance(body, dict):
            raise BadRequest("body", "a JSON object")
        self.chat = chat
        self.prompt = chat_prompt(body) if chat else plain_prompt(body)
        self.max_tokens = number(body, "max_tokens", 16, 1, MAX_TOKENS_LIMIT, int)
        if chat and "max_completion_tokens" in body:
            self.max_tokens = number(body, "max_completion_tokens", 16, 1, MAX_TOKENS_LIMIT, int)
        self.temperature = number(body, "temperature", 1.0, 0, 2, float)
        self.top_p = number(body, "top_p", 1.0, 0, 1, float)
        self.seed = number(body, "seed", None, -2 ** 63, 2 ** 63, int)
        number(body, "n", 1, 1, 1, int)
        self.stream = flag(body, "stream")
        options = body.get("stream_options") or {}
        if not isinstance(options, dict):
            raise BadRequest("stream_options", "an object")
        self.usage_at_end = flag(options, "include_usage")
        self.stops = stops(body)


def plain_prompt(body):
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise BadRequest("prompt", "a string")
    return encode(prompt)


def chat_prompt(body):
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages", "a list of at least one message")
    lines = []
    for i, message in enumerate(messages):
        where = "messages[%d]" % i
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise BadRequest(where + ".role", "a string")
        content = message.get("content")
        if isinstance(content, list):
            parts = [p.get("text") if isinstance(p, dict) else None for p in content]
            content = "".join(parts) if all(isinstance(p, str) for p in parts) else None
        if not isinstance(content, str):
            raise BadRequest(where + ".content", "a string, or a list of text parts")
        lines.append("%s: %s\n" % (message["role"], content))
    return encode("".join(lines) + "assistant:")


def encode(text):
    return text.encode("utf-8", "replace") or b"\n"  # there is always a last token to go on from


def number(body, field, default, low, high, kind):
    value = body.get(field)
    if value is None:
        return default
    right = isinstance(value, int) if kind is int else isinstance(value, (int, float))
    if not right or isinstance(value, bool) or not low <= value <= high:
        raise BadRequest(field, "%s from %s to %s" % (
            "a whole number" if kind is int else "a number", low, high))
    return kind(value)


def flag(body, field):
    value = body.get(field)
    if value is not None and not isinstance(value, bool):
        raise BadRequest(field, "true or false")
    return bool(value)


def stops(body):
    value = body.get("stop")
    value = [value] if isinstance(value, str) else value or []
    if (not isinstance(value, list) or len(value) > STOPS_LIMIT
            or not all(isinstance(s, str) and 0 < len(s) <= 256 for s in value)):
        raise BadRequest("stop", "up to %d strings of 1 to 256 characters" % STOPS_LIMIT)
    return value


class Text:
    """Bytes to text as they come: whole characters only, cut at the first stop string."""

    def __init__(self, stop_strings):
        self._stops = stop_strings
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # could be the beginning of a stop string
        self.stopped = False

    def add(self, byte):
        return self._cut(self._decoder.decode(bytes((byte,))))

    def end(self):
        rest = self._cut(self._decoder.decode(b"", True))
        if not self.stopped:
            rest, self._held = rest + self._held, ""
        return rest

    def _cut(self, new):
        text = self._held + new
        at = min((text.find(s) for s in self._stops if s in text), default=-1)
        if at >= 0:
            self.stopped = True
            self._held = ""
            return text[:at]
        hold = max((n for s in self._stops for n in range(1, len(s)) if text.endswith(s[:n])),
                   default=0)
        self._held = text[len(text) - hold:]
        return text[:len(text) - hold]


class Answer:
    """Builds the bodies of one answer."""

    def __init__(self, query, step):
        self._query = query
        self._base = {
            "id": ("chatcmpl-" if query.chat else "cmpl-") + uuid.uuid4().hex[:24],
            "created": int(time.time()), "model": MODEL_NAME,
            "system_fingerprint": "step-%d" % step}

    def whole(self, text, reason, generated):
        if self._query.chat:
            choice = {"message": {"role": "assistant", "content": text}}
        else:
            choice = {"text": text, "logprobs": None}
        choice.update(index=0, finish_reason=reason)
        kind = "chat.completion" if self._query.chat else "text_completion"
        return dict(self._base, object=kind, choices=[choice], usage=self.usage(generated))

    def piece(self, text, reason=None):
        if self._query.chat:
            choice = {"delta": {"content": text} if text or reason is None else {}}
        else:
            choice = {"text": text, "logprobs": None}
        choice.update(index=0, finish_reason=reason)
        return dict(self._base, object=self._kind_of_piece(), choices=[choice])

    def usage_piece(self, generated):
        return dict(self._base, object=self._kind_of_piece(), choices=[],
                    usage=self.usage(generated))

    def usage(self, generated):
        prompt = len(self._query.prompt)
        return {"prompt_tokens": prompt, "completion_tokens": generated,
                "total_tokens": prompt + generated}

    def _kind_of_piece(self):
        return "chat.completion.chunk" if self._query.chat else "text_completion"


def error(message, kind="invalid_request_error", field=None):
    return {"error": {"message": message, "type": kind, "param": field, "code": None}}
