"""Programs that fight over a machine, for tests and shows of host limits. Each prints one JSON
object when it is done: what it got."""

# Writes without cache for so long: bytes a second.
WRITER = '''
import json, mmap, os, sys, time
path, seconds, block = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o600)
buffer = mmap.mmap(-1, block)
begin = time.monotonic()
count = 0
while time.monotonic() - begin < seconds:
    os.pwrite(fd, buffer, count % 64 * block)
    count += 1
took = time.monotonic() - begin
os.unlink(path)
print(json.dumps({"bytes_per_s": count * block / took}), flush=True)
'''
# Reads blocks of 4 KiB without cache: reads a second.
READER = '''
import json, mmap, os, sys, time
path, seconds = sys.argv[1], float(sys.argv[2])
fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o600)
big = mmap.mmap(-1, 1 << 20)
for i in range(16):
    os.pwrite(fd, big, i << 20)
buffer = mmap.mmap(-1, 4096)
begin = time.monotonic()
count = 0
while time.monotonic() - begin < seconds:
    os.preadv(fd, [buffer], count * 7919 % 4096 * 4096)
    count += 1
took = time.monotonic() - begin
os.unlink(path)
print(json.dumps({"reads_per_s": count / took}), flush=True)
'''
# Counts on one processor: rounds a second.
COUNTER = '''
import json, os, sys, time
seconds, workers = float(sys.argv[1]), int(sys.argv[2])
for _ in range(workers - 1):
    if os.fork() == 0:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass
        os._exit(0)
begin = time.monotonic()
count = 0
while time.monotonic() - begin < seconds:
    for _ in range(1000):
        count += 1
print(json.dumps({"rounds_per_s": count / (time.monotonic() - begin)}), flush=True)
'''
# Takes so many MiB, then says so.
EATER = '''
import json, sys, time
mib, seconds = int(sys.argv[1]), float(sys.argv[2])
kept = []
for _ in range(mib):
    kept.append(bytearray(b"x" * (1 << 20)))
time.sleep(seconds)
print(json.dumps({"mib": mib}), flush=True)
'''
# Sends to a port of loopback for so long.
SENDER = '''
import json, socket, sys, time
port, seconds = int(sys.argv[1]), float(sys.argv[2])
s = socket.create_connection(("127.0.0.1", port))
block = b"x" * 65536
end = time.monotonic() + seconds
sent = 0
while time.monotonic() < end:
    s.sendall(block)
    sent += len(block)
print(json.dumps({"bytes": sent}), flush=True)
'''
PYTHON = "/usr/bin/python3"


def command(program, *arguments):
    return [PYTHON, "-S", "-c", program] + [str(one) for one in arguments]
