"""Makes up a model of 64,000 weights and writes it as a GGUF file.

Its vocabulary is the 256 bytes and the pieces below. Weights are random and too
small to matter, but for those that join a token to the one before: what it says
next hangs on the last token alone, so that its answers are known beforehand.
The template ends with what the user said, whose last character decides.
"""

import array
import random
import struct

# What follows a last character. None ends an answer; a number goes on with the
# piece at that place, and so never ends.
ANSWERS = {
    "?": ["The", " crab", " walks", " side", "ways.", None],
    "!": ["la", " la,", " lo,", 1],
    "#": [
        "<tool_call>",
        '{"name": "read", ',
        '"arguments": ',
        '{"path": "notes',
        ".txt",
        '"}}',
        "</tool_call>",
        None,
    ],
}

TEMPLATE = """\
{%- if tools %}# Tools
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
Call one with <tool_call>{"name": NAME, "arguments": OBJECT}</tool_call>.
{% endif %}
{%- for message in messages %}
<|{{ message.role }}|>{{ message.content }}
{%- for call in message.tool_calls or [] %}
<tool_call>{{ call.function | tojson }}</tool_call>
{%- endfor %}
{%- endfor %}"""

WIDTH = 64
HEADS = 2
# Far above what the random weights add up to.
CERTAIN = 5.0

# Types of values and tokens in the file's format.
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
NORMAL, CONTROL, BYTE, UNKNOWN = 1, 3, 6, 2
BEGIN, END, FIRST_BYTE = 1, 2, 3


def spelled(piece):
    return piece.replace(" ", "\u2581")


def vocabulary():
    tokens = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    tokens += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    for pieces in ANSWERS.values():
        tokens += [(spelled(piece), NORMAL) for piece in pieces if isinstance(piece, str)]
    return tokens


def successors(tokens):
    """Token -> the one that follows it."""
    number = {text: place for place, (text, _) in enumerate(tokens)}
    follows = {}
    for character, pieces in ANSWERS.items():
        before = FIRST_BYTE + ord(character)
        for piece in pieces:
            if isinstance(piece, int):
                piece = pieces[piece]
            after = END if piece is None else number[spelled(piece)]
            follows[before] = before = after
    return follows


def tensors(tokens):
    """Name, shape with the innermost size first, weights."""
    chance = random.Random(1)

    def noise(*shape):
        return shape, [chance.uniform(-0.001, 0.001) for _ in range(shape[0] * shape[1])]

    def ones():
        return (WIDTH,), [1.0] * WIDTH

    follows = successors(tokens)
    # A place in the vector for each token that something follows, and one for
    # all others, which are answered like a question.
    places = {token: place for place, token in enumerate(follows)}
    other = WIDTH - 1
    assert len(places) <= other
    shape, reads = noise(WIDTH, len(tokens))
    for token in range(len(tokens)):
        reads[token * WIDTH + places.get(token, other)] = WIDTH**0.5
    yield "token_embd.weight", shape, reads
    shape, says = noise(WIDTH, len(tokens))
    for before, after in follows.items():
        says[after * WIDTH + places[before]] = CERTAIN
    says[follows[FIRST_BYTE + ord("?")] * WIDTH + other] = CERTAIN
    yield "output.weight", shape, says
    yield "output_norm.weight", *ones()
    yield "blk.0.attn_norm.weight", *ones()
    yield "blk.0.ffn_norm.weight", *ones()
    for part in ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]:
        yield f"blk.0.{part}.weight", *noise(WIDTH, WIDTH)


def fields(tokens, context):
    yield "general.architecture", STRING, "llama"
    yield "general.name", STRING, "A crab of few words"
    yield "llama.context_length", UINT32, context
    yield "llama.embedding_length", UINT32, WIDTH
    yield "llama.block_count", UINT32, 1
    yield "llama.feed_forward_length", UINT32, WIDTH
    yield "llama.attention.head_count", UINT32, HEADS
    yield "llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5
    yield "llama.rope.dimension_count", UINT32, WIDTH // HEADS
    yield "tokenizer.ggml.model", STRING, "llama"
    yield "tokenizer.ggml.tokens", (STRING,), [text for text, _ in tokens]
    yield "tokenizer.ggml.scores", (FLOAT32,), [0.0] * len(tokens)
    yield "tokenizer.ggml.token_type", (INT32,), [kind for _, kind in tokens]
    yield "tokenizer.ggml.bos_token_id", UINT32, BEGIN
    yield "tokenizer.ggml.eos_token_id", UINT32, END
    yield "tokenizer.ggml.unknown_token_id", UINT32, 0
    yield "tokenizer.ggml.add_space_prefix", BOOL, False
    yield "tokenizer.chat_template", STRING, TEMPLATE


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, content):
    if isinstance(kind, tuple):
        (of,) = kind
        head = struct.pack("<IQ", of, len(content))
        return head + b"".join(value(of, item) for item in content)
    if kind == STRING:
        return string(content)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}[kind], content)


def aligned(data):
    return data + bytes(-len(data) % 32)


def write(path, context):
    tokens = vocabulary()
    data, index, count = b"", b"", 0
    for name, shape, weights in tensors(tokens):
        index += string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        index += struct.pack("<IQ", 0, len(data))
        data += aligned(array.array("f", weights).tobytes())
        count += 1
    about = list(fields(tokens, context))
    head = b"GGUF" + struct.pack("<IQQ", 3, count, len(about))
    for key, kind, content in about:
        head += string(key) + struct.pack("<I", ARRAY if isinstance(kind, tuple) else kind)
        head += value(kind, content)
    with open(path, "wb") as file:
        file.write(aligned(head + index) + data)
